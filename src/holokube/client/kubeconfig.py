"""Kubeconfig files: found, merged and read by upstream's rules.

``--kubeconfig`` names one file, and it must exist. Otherwise the files listed in ``KUBECONFIG`` are merged,
or ``~/.kube/config`` is read; missing ones are skipped. An entry (cluster, user, context) is taken whole from
the first file that has its name, the current context from the first file that sets one. If no file says
anything, the service account of the pod that we are in is used.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import yaml

from holokube.base.errors import ConfigError
from holokube.client.access import SERVICE_ACCOUNT_FOLDER, ClusterAccess, UserSettings, in_cluster_access
from holokube.client.auth import Impersonation
from holokube.client.exec_plugin import API_VERSIONS, GROUP, INTERACTIVE_MODES, ExecPlugin
from holokube.client.proxy import check_proxy
from holokube.client.tls import TlsSettings

_EXEC_EXTENSION = f"{GROUP}/exec"


def load_access(
    kubeconfig: str = "",
    context: str = "",
    *,
    environ: Mapping[str, str] | None = None,
    service_account_folder: Path = SERVICE_ACCOUNT_FOLDER,
) -> ClusterAccess:
    """How to reach the cluster that the flags, the environment and the files name."""
    environ = os.environ if environ is None else environ
    config = load_kubeconfig(kubeconfig, environ=environ)
    if context or config.current_context or kubeconfig:
        return config.access(context)
    inside = in_cluster_access(environ, service_account_folder)
    return inside if inside is not None else config.access()


def load_kubeconfig(path: str = "", *, environ: Mapping[str, str] | None = None) -> Kubeconfig:
    """Reads and merges the files; an empty ``Kubeconfig`` if there are none."""
    environ = os.environ if environ is None else environ
    if path:
        if not Path(path).exists():
            raise ConfigError(
                f"kubeconfig {path} does not exist",
                hint="Check --kubeconfig, or leave it out to use the default.",
            )
        return _merge([path])
    if environ.get("KUBECONFIG"):
        listed = dict.fromkeys(part for part in environ["KUBECONFIG"].split(os.pathsep) if part)
    else:
        home = environ.get("HOME") or str(Path("~").expanduser())
        listed = dict.fromkeys([str(Path(home, ".kube", "config"))])
    return _merge([name for name in listed if Path(name).exists()], looked_at=list(listed))


@dataclass(frozen=True, slots=True)
class Kubeconfig:
    """The merged content of kubeconfig files."""

    clusters: Mapping[str, Entry] = field(default_factory=dict)
    users: Mapping[str, Entry] = field(default_factory=dict)
    contexts: Mapping[str, Entry] = field(default_factory=dict)
    current_context: str = ""
    looked_at: tuple[str, ...] = ()
    """The files that were, or would have been, read."""

    def access(self, context: str = "") -> ClusterAccess:
        """Everything that a context (by default the current one) says."""
        name = context or self.current_context
        if not name:
            raise self._no_context()
        entry = self.contexts.get(name)
        if entry is None:
            raise ConfigError(
                f"context {name!r} does not exist in {self._files()}",
                hint=f"{_known('Contexts', self.contexts)} Choose one with --context.",
            )
        cluster = self._refer(entry, "cluster", self.clusters)
        if cluster is None:
            raise entry.error("cluster", "is not set", hint="Name one of the clusters of the file.")
        user = self._refer(entry, "user", self.users)
        server = _server(cluster)
        return ClusterAccess(
            server=server,
            namespace=entry.text("namespace") or "default",
            context=name,
            tls=_tls(cluster, user) if urlsplit(server).scheme == "https" else TlsSettings(),
            user=_user(user) if user is not None else UserSettings(),
            proxy_url=_proxy(cluster),
            disable_compression=cluster.flag("disable-compression"),
            exec_config=_extension(cluster),
        )

    def _refer(self, context: Entry, key: str, entries: Mapping[str, Entry]) -> Entry | None:
        name = context.text(key)
        if not name:
            return None
        if name not in entries:
            raise context.error(
                key, f"names {name!r}, which no file defines", hint=_known(f"{key.title()}s", entries)
            )
        return entries[name]

    def _no_context(self) -> ConfigError:
        if self.contexts:
            return ConfigError(
                f"no current-context is set in {self._files()}",
                hint=f"{_known('Contexts', self.contexts)} Choose one with --context.",
            )
        return ConfigError(
            f"no cluster to talk to: nothing found in {self._files()}, and this is not a pod of a cluster",
            hint="Give --kubeconfig FILE, or set KUBECONFIG; `holokube up` prints the one it made.",
        )

    def _files(self) -> str:
        return ", ".join(self.looked_at)


@dataclass(frozen=True, slots=True)
class Entry:
    """One mapping of a kubeconfig, which knows where it stands."""

    file: str
    where: str
    """``users[alice].exec``: how messages name it."""
    values: Mapping[str, Any] = field(repr=False)

    def error(self, key: str, what: str, *, hint: str) -> ConfigError:
        return ConfigError(f"{self.file}: {self.where}.{key} {what}", hint=hint)

    def text(self, key: str) -> str:
        value = self.values.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(key, f"is {value!r}, not a string", hint="Put the value into quotes.")
        return value

    def flag(self, key: str) -> bool:
        value = self.values.get(key)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.error(key, f"is {value!r}, not true or false", hint="Write it without quotes.")
        return value

    def data(self, key: str) -> bytes:
        try:
            # Base64 of several lines is common in hand-made files, and upstream's decoder skips line breaks.
            return base64.b64decode("".join(self.text(key).split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise self.error(
                key, f"is not base64: {error}", hint="Encode the PEM file with `base64 -w0`."
            ) from error

    def path(self, key: str) -> str:
        """A path, made absolute: relative ones start at the file's own folder."""
        value = self.text(key)
        return os.path.normpath(Path(self.file).absolute().parent / value) if value else ""

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(key, "is not a list of strings", hint="Write one quoted string per list item.")
        return tuple(value)

    def child(self, key: str) -> Entry | None:
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(key, "is not a mapping", hint="Indent its keys under it.")
        return Entry(self.file, f"{self.where}.{key}", value)


def _merge(files: list[str], looked_at: list[str] | None = None) -> Kubeconfig:
    merged: dict[str, dict[str, Entry]] = {"clusters": {}, "users": {}, "contexts": {}}
    current = ""
    for file in files:
        document = _read(file)
        for section, key in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            for name, entry in _named_entries(file, document, section, key).items():
                merged[section].setdefault(name, entry)
        current = current or Entry(file, "", document).text("current-context")
    return Kubeconfig(
        merged["clusters"], merged["users"], merged["contexts"], current, tuple(looked_at or files)
    )


def _read(file: str) -> dict[str, Any]:
    hint = "A kubeconfig is a YAML or JSON file with `kind: Config`; see `kubectl config view`."
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        why = error.strerror or error
        raise ConfigError(f"kubeconfig {file} cannot be read: {why}", hint=hint) from error
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        document = yaml.load(content, Loader=loader)  # noqa: S506 - both loaders are the safe ones
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"kubeconfig {file} is not valid YAML: {error}", hint=hint) from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"kubeconfig {file} is not a mapping", hint=hint)
    kind, version = document.get("kind") or "Config", document.get("apiVersion") or "v1"
    if (kind, version) != ("Config", "v1"):
        raise ConfigError(f"{file} is a {version} {kind}, not a v1 Config", hint=hint)
    return document


def _named_entries(file: str, document: Mapping[str, Any], section: str, key: str) -> dict[str, Entry]:
    listed = document.get(section)
    hint = f"It is a list of mappings with `name` and `{key}`."
    if listed is None:
        return {}
    if not isinstance(listed, list):
        raise ConfigError(f"{file}: {section} is not a list", hint=hint)
    entries: dict[str, Entry] = {}
    for index, item in enumerate(listed):
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise ConfigError(f"{file}: {section}[{index}] has no name", hint=hint)
        name, body = item["name"], item.get(key)
        if not isinstance(body, dict | None):
            raise ConfigError(f"{file}: {section}[{name}].{key} is not a mapping", hint=hint)
        if name in entries:
            raise ConfigError(f"{file}: {section} has {name!r} twice", hint="Remove or rename one of them.")
        entries[name] = Entry(file, f"{section}[{name}]", body or {})
    return entries


def _server(cluster: Entry) -> str:
    server = cluster.text("server").strip()
    hint = "Give the API server's address, such as https://10.0.0.1:6443."
    if not server:
        raise cluster.error("server", "is not set", hint=hint)
    if "://" not in server:
        server = f"http://{server}"
    try:
        parts = urlsplit(server)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise cluster.error("server", f"is {server!r}, which is no http or https URL", hint=hint)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def _proxy(cluster: Entry) -> str:
    proxy = cluster.text("proxy-url")
    return check_proxy(proxy, f"{cluster.file}: {cluster.where}.proxy-url") if proxy else ""


def _tls(cluster: Entry, user: Entry | None) -> TlsSettings:
    _not_both(cluster, "certificate-authority", "certificate-authority-data")
    settings = TlsSettings(
        ca_file=cluster.path("certificate-authority"),
        ca_data=cluster.data("certificate-authority-data"),
        insecure_skip_verify=cluster.flag("insecure-skip-tls-verify"),
        server_name=cluster.text("tls-server-name"),
        certificate_file=user.path("client-certificate") if user else "",
        certificate_data=user.data("client-certificate-data") if user else b"",
        key_file=user.path("client-key") if user else "",
        key_data=user.data("client-key-data") if user else b"",
    )
    if settings.insecure_skip_verify and (settings.ca_file or settings.ca_data):
        raise cluster.error(
            "insecure-skip-tls-verify",
            "is set beside a certificate authority",
            hint="Remove one of them: either the server is verified or it is not.",
        )
    if user is not None and settings.has_certificate:
        _not_both(user, "client-certificate", "client-certificate-data")
        _not_both(user, "client-key", "client-key-data")
        if not (settings.key_file or settings.key_data):
            raise user.error("client-key", "is not set", hint="A client certificate needs its private key.")
    return settings


def _not_both(entry: Entry, key: str, data_key: str) -> None:
    if entry.values.get(key) and entry.values.get(data_key):
        raise entry.error(key, f"and {data_key} are both set", hint="Remove one of them.")


def _user(user: Entry) -> UserSettings:
    if user.values.get("auth-provider") is not None:
        provider = user.child("auth-provider")
        name = provider.text("name") if provider is not None else ""
        raise user.error(
            "auth-provider",
            f"({name or 'no name'}) is not supported",
            hint="Log in with a credential plugin (`exec`) instead; cloud tools write one, for example"
            " gke-gcloud-auth-plugin, kubelogin.",
        )
    settings = UserSettings(
        token=user.text("token"),
        token_file=user.path("tokenFile"),
        username=user.text("username"),
        password=user.text("password"),
        exec_plugin=_exec(user),
        impersonation=_impersonation(user),
    )
    if settings.token and (settings.username or settings.password):
        raise user.error("token", "and username/password are both set", hint="Keep one way to log in.")
    return settings


def _exec(user: Entry) -> ExecPlugin | None:
    section = user.child("exec")
    if section is None:
        return None
    command, api_version = section.text("command"), section.text("apiVersion")
    if not command:
        raise section.error("command", "is not set", hint="Name the program that prints the credential.")
    if api_version not in API_VERSIONS:
        raise section.error(
            "apiVersion", f"is {api_version!r}", hint=f"Use {' or '.join(API_VERSIONS)}: what it prints."
        )
    mode = section.text("interactiveMode")
    if not mode and api_version == f"{GROUP}/v1beta1":
        mode = "IfAvailable"
    if mode not in INTERACTIVE_MODES:
        raise section.error(
            "interactiveMode", f"is {mode!r}", hint=f"Set it to one of {', '.join(INTERACTIVE_MODES)}."
        )
    return ExecPlugin(
        # A bare name is looked up on PATH; one with a slash is a path like any other in the file.
        command=section.path("command") if os.sep in command else command,
        api_version=api_version,
        args=section.texts("args"),
        env=_environment(section),
        install_hint=section.text("installHint"),
        provide_cluster_info=section.flag("provideClusterInfo"),
        interactive_mode=mode,
        origin=f"{section.where} in {section.file}",
    )


def _environment(section: Entry) -> tuple[tuple[str, str], ...]:
    listed = section.values.get("env") or []
    hint = "It is a list of mappings with `name` and `value`."
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        raise section.error("env", "is not a list of mappings", hint=hint)
    pairs = []
    for index, item in enumerate(listed):
        variable = Entry(section.file, f"{section.where}.env[{index}]", item)
        if not variable.text("name"):
            raise variable.error("name", "is not set", hint=hint)
        pairs.append((variable.text("name"), variable.text("value")))
    return tuple(pairs)


def _impersonation(user: Entry) -> Impersonation | None:
    name, uid, groups = user.text("as"), user.text("as-uid"), user.texts("as-groups")
    extra_section = user.child("as-user-extra")
    extra = {key: extra_section.texts(key) for key in extra_section.values} if extra_section else {}
    if name:
        return Impersonation(name, uid, groups, extra)
    if uid or groups or extra:
        raise user.error("as", "is not set, but other as-... keys are", hint="Name the user to act as.")
    return None


def _extension(cluster: Entry) -> Any:
    for item in cluster.values.get("extensions") or ():
        if isinstance(item, dict) and item.get("name") == _EXEC_EXTENSION:
            return item.get("extension")
    return None


def _known(title: str, entries: Mapping[str, Entry]) -> str:
    return f"{title}: {', '.join(sorted(entries))}." if entries else f"There are no {title.lower()}."
