from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from holokube.base.errors import ConfigError
from holokube.client.kubeconfig import load_access, load_kubeconfig

from .servers import kubeconfig, write_kubeconfig


def access_of(tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any] | None = None, **context: Any) -> Any:
    file = write_kubeconfig(tmp_path / "config", kubeconfig({"server": "https://h:6443", **cluster}, user, **context))
    return load_access(file, environ={})


def refused(tmp_path: Path, cluster: dict[str, Any], user: dict[str, Any] | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        access_of(tmp_path, cluster, user)
    assert str(tmp_path / "config") in caught.value.message
    assert caught.value.hint
    return caught.value


def test_reads_what_a_context_names(tmp_path: Path) -> None:
    access = access_of(
        tmp_path,
        {
            "certificate-authority": "pki/ca.crt",
            "tls-server-name": "kubernetes",
            "proxy-url": "http://proxy:3128",
            "disable-compression": True,
        },
        {
            "client-certificate-data": base64.b64encode(b"cert").decode(),
            "client-key": "/keys/key.pem",
            "tokenFile": "token",
            "token": "t",
            "as": "root",
            "as-uid": "7",
            "as-groups": ["g"],
            "as-user-extra": {"scope": ["a", "b"]},
        },
        namespace="ns",
    )
    assert (access.server, access.namespace, access.context) == ("https://h:6443", "ns", "main")
    assert access.tls.ca_file == str(tmp_path / "pki/ca.crt")
    assert access.tls.server_name == "kubernetes"
    assert access.tls.certificate_data == b"cert"
    assert access.tls.key_file == "/keys/key.pem"
    assert access.user.token_file == str(tmp_path / "token")
    assert access.proxy_url == "http://proxy:3128"
    assert access.disable_compression
    assert access.user.impersonation.headers() == (
        ("Impersonate-User", "root"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "g"),
        ("Impersonate-Extra-scope", "a"),
        ("Impersonate-Extra-scope", "b"),
    )


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("https://h:6443/", "https://h:6443"),
        ("https://h/k8s/clusters/c-1/?x=1#f", "https://h/k8s/clusters/c-1"),
        ("localhost:8080", "http://localhost:8080"),
        ("https://[::1]:6443", "https://[::1]:6443"),
    ],
)
def test_server_addresses_are_made_whole(tmp_path: Path, given: str, read: str) -> None:
    assert access_of(tmp_path, {"server": given}).server == read


def entry(name: str, key: str, **values: Any) -> dict[str, Any]:
    return {"name": name, key: values}


def test_files_are_merged_first_one_wins_entry_by_entry(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    first = write_kubeconfig(
        tmp_path / "a" / "one",
        {
            "clusters": [entry("red", "cluster", server="https://first")],
            "users": [entry("red", "user", **{"client-certificate": "c.pem", "client-key": "k.pem"})],
        },
    )
    second = write_kubeconfig(
        tmp_path / "b" / "two",
        {
            "current-context": "two",
            "clusters": [
                entry("red", "cluster", server="https://second", **{"tls-server-name": "not merged in"}),
                entry("blue", "cluster", server="https://blue", **{"certificate-authority": "ca.pem"}),
            ],
            "contexts": [
                entry("two", "context", cluster="red", user="red"),
                entry("three", "context", cluster="blue", user="red"),
            ],
        },
    )
    third = write_kubeconfig(tmp_path / "three", {"current-context": "three"})
    files = [str(tmp_path / "missing"), first, "", second, first, third]
    environ = {"KUBECONFIG": os.pathsep.join(files)}

    access = load_access(environ=environ)
    assert (access.context, access.server, access.tls.server_name) == ("two", "https://first", "")
    assert access.tls.certificate_file == str(tmp_path / "a" / "c.pem")
    other = load_access(context="three", environ=environ)
    assert (other.server, other.tls.ca_file) == ("https://blue", str(tmp_path / "b" / "ca.pem"))


def test_the_flag_wins_over_the_environment_and_that_over_home(tmp_path: Path) -> None:
    (tmp_path / ".kube").mkdir()
    files = {}
    for name, path in (("flag", "flag"), ("env", "env"), ("home", ".kube/config")):
        files[name] = write_kubeconfig(tmp_path / path, kubeconfig({"server": f"https://{name}"}))
    environ = {"HOME": str(tmp_path), "KUBECONFIG": files["env"]}
    assert load_access(files["flag"], environ=environ).server == "https://flag"
    assert load_access(environ=environ).server == "https://env"
    assert load_access(environ={"HOME": str(tmp_path)}).server == "https://home"


def service_account(tmp_path: Path) -> Path:
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("t")
    (folder / "ca.crt").write_text("pem")
    (folder / "namespace").write_text("apps\n")
    return folder


def test_in_a_pod_the_service_account_is_used_when_no_file_says_otherwise(tmp_path: Path) -> None:
    folder = service_account(tmp_path)
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = load_access(environ=environ, service_account_folder=folder)
    assert (access.server, access.namespace) == ("https://[fd00::1]:443", "apps")
    assert (access.tls.ca_file, access.user.token_file) == (str(folder / "ca.crt"), str(folder / "token"))
    named = load_access(environ={**environ, "POD_NAMESPACE": "mine"}, service_account_folder=folder)
    assert named.namespace == "mine"

    file = write_kubeconfig(tmp_path / "config", kubeconfig({"server": "https://file"}))
    environ["KUBECONFIG"] = file
    assert load_access(environ=environ, service_account_folder=folder).server == "https://file"


def test_without_anything_it_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no cluster to talk to") as caught:
        load_access(environ={"HOME": str(tmp_path)}, service_account_folder=tmp_path / "none")
    assert str(tmp_path / ".kube" / "config") in caught.value.message
    with pytest.raises(ConfigError, match="does not exist"):
        load_access(str(tmp_path / "nowhere"), environ={})


def test_an_unknown_or_missing_context_lists_the_known_ones(tmp_path: Path) -> None:
    document = kubeconfig({"server": "https://h"})
    file = write_kubeconfig(tmp_path / "config", document)
    with pytest.raises(ConfigError, match="context 'prod' does not exist") as caught:
        load_access(file, "prod", environ={})
    assert "Contexts: main." in caught.value.hint
    del document["current-context"]
    write_kubeconfig(tmp_path / "config", document)
    with pytest.raises(ConfigError, match="no current-context"):
        load_access(file, environ={})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", "not valid YAML"),
        ("- a", "not a mapping"),
        ("kind: Pod\napiVersion: v1", "is a v1 Pod"),
        ("clusters: {}", "clusters is not a list"),
        ("users: [{user: {}}]", r"users\[0\] has no name"),
        ("users: [{name: a, user: 1}]", r"users\[a\]\.user is not a mapping"),
        ("users: [{name: a}, {name: a}]", "users has 'a' twice"),
        ("current-context: 1", "current-context is 1, not a string"),
    ],
)
def test_a_broken_file_is_named_with_what_is_wrong(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "config"
    file.write_text(content)
    with pytest.raises(ConfigError, match=message) as caught:
        load_kubeconfig(str(file))
    assert str(file) in caught.value.message
    assert caught.value.hint


def test_an_empty_file_is_an_empty_config(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("# nothing\n")
    assert load_kubeconfig(str(tmp_path / "config")).contexts == {}


@pytest.mark.parametrize(
    ("cluster", "key"),
    [
        ({"server": ""}, "server is not set"),
        ({"server": "ftp://h"}, "no http or https URL"),
        ({"server": "https://h:notaport"}, "no http or https URL"),
        ({"certificate-authority-data": "%%%"}, "certificate-authority-data is not base64"),
        ({"certificate-authority-data": "YQ==", "certificate-authority": "x"}, "are both set"),
        ({"insecure-skip-tls-verify": True, "certificate-authority": "x"}, "beside a certificate authority"),
        ({"insecure-skip-tls-verify": "yes"}, "not true or false"),
        ({"proxy-url": "socks5://h:1"}, "proxy-url: the proxy 'socks5://h:1' cannot be used"),
    ],
)
def test_a_bad_cluster_is_refused(tmp_path: Path, cluster: dict[str, Any], key: str) -> None:
    assert key in refused(tmp_path, cluster).message


EXEC = {"command": "login", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never"}


@pytest.mark.parametrize(
    ("user", "key"),
    [
        ({"token": "t", "username": "u", "password": "p"}, "both set"),
        ({"token": 5}, "users[u].token is 5, not a string"),
        ({"client-certificate": "c"}, "client-key is not set"),
        ({"client-certificate": "c", "client-certificate-data": "YQ==", "client-key": "k"}, "are both set"),
        ({"auth-provider": {"name": "gcp"}}, "auth-provider (gcp) is not supported"),
        ({"as-groups": ["g"]}, "as is not set"),
        ({"as": "u", "as-groups": "g"}, "not a list of strings"),
        ({"exec": {**EXEC, "command": ""}}, "exec.command is not set"),
        ({"exec": {**EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"}}, "v1alpha1"),
        ({"exec": {**EXEC, "interactiveMode": ""}}, "interactiveMode is ''"),
        ({"exec": {**EXEC, "env": [{"value": "x"}]}}, "env[0].name is not set"),
        ({"exec": "login"}, "exec is not a mapping"),
    ],
)
def test_a_bad_user_is_refused(tmp_path: Path, user: dict[str, Any], key: str) -> None:
    assert key in refused(tmp_path, {}, user).message


def test_references_to_nowhere_are_refused(tmp_path: Path) -> None:
    document = kubeconfig({"server": "https://h"}, cluster="gone")
    file = write_kubeconfig(tmp_path / "config", document)
    with pytest.raises(ConfigError, match=r"contexts\[main\]\.cluster names 'gone'") as caught:
        load_access(file, environ={})
    assert "Clusters: c." in caught.value.hint


def test_exec_commands_with_a_slash_are_paths_and_others_are_on_path(tmp_path: Path) -> None:
    user = {"exec": {**EXEC, "command": "./bin/login", "args": ["-x"], "env": [{"name": "A", "value": "b"}]}}
    plugin = access_of(tmp_path, {}, user).user.exec_plugin
    assert plugin.command == str(tmp_path / "bin" / "login")
    assert (plugin.args, plugin.env) == (("-x",), (("A", "b"),))
    assert access_of(tmp_path, {}, {"exec": EXEC}).user.exec_plugin.command == "login"
    beta = {"command": "login", "apiVersion": "client.authentication.k8s.io/v1beta1"}
    assert access_of(tmp_path, {}, {"exec": beta}).user.exec_plugin.interactive_mode == "IfAvailable"


def test_secrets_are_not_in_the_printed_form(tmp_path: Path) -> None:
    key = base64.b64encode(b"private").decode()
    user = {"token": "hidden", "client-certificate-data": key, "client-key-data": key}
    printed = repr(access_of(tmp_path, {}, user))
    assert "hidden" not in printed
    assert "private" not in printed
