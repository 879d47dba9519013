"""``holokube snapshot``: everything, nothing secret, and back again."""

from __future__ import annotations

import base64
import gzip
import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from holokube.client.client import Client
from holokube.client.resources import CONFIG_MAPS, LEASES, NODES, PODS, SECRETS
from holokube.kube.types import JsonObject
from holokube.testing import Server, serve
from tests.cli.program import Inside, assert_two_lines, run

TOKEN = base64.b64encode(b"very secret").decode()
CRD: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.lab.example.com"},
    "spec": {
        "group": "lab.example.com",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Cluster",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
OBJECTS: list[JsonObject] = [
    CRD,
    {"apiVersion": "lab.example.com/v1", "kind": "Widget", "metadata": {"name": "w"}},
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "4"}}},
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "s",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": TOKEN, "keep": "me"},
        },
        "data": {"token": TOKEN},
    },
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/dockerconfigjson",
        "metadata": {"name": "pull"},
        "data": {".dockerconfigjson": base64.b64encode(b'{"auths":{}}').decode()},
    },
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "odd"},
        "data": {
            "exp": "1e3",
            "yes": "y",
            "octal": "0o17",
            "null": "null",
            "lines": "a\nb\n",
            "time": "2020-02-02",
        },
    },
    {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}},
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"containers": [{"name": "c", "image": "nginx"}], "nodeName": "n1"},
        "status": {"phase": "Running"},
    },
    {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "shop"},
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web"},
        "reason": "Started",
        "type": "Normal",
    },
]


def items(text: str) -> dict[tuple[str, str], JsonObject]:
    document: Any = yaml.safe_load(text)
    assert document["kind"] == "List"
    return {(obj["kind"], obj["metadata"]["name"]): obj for obj in document["items"]}


def take(server: Server, inside: Inside, *arguments: str) -> str:
    done = inside("snapshot", "--kubeconfig", str(server.kubeconfig), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_everything_is_read_but_events_leases_and_secret_values(inside: Inside) -> None:
    with serve(objects=OBJECTS) as server:
        found = items(take(server, inside))
        everything = take(
            server, inside, "-o", "json", "--include-events", "--include-leases", "--include-secret-data"
        )
    kinds = {kind for kind, _ in found}
    assert {
        "CustomResourceDefinition",
        "Widget",
        "Node",
        "Secret",
        "Pod",
        "Namespace",
        "ServiceAccount",
    } <= kinds
    assert not kinds & {"Event", "Lease"}
    secret = found["Secret", "s"]
    assert secret["data"] == {"token": ""}
    assert TOKEN not in json.dumps(secret)
    assert secret["metadata"]["annotations"] == {"keep": "me", "holokube.dev/secret-data": "removed"}
    assert found["ConfigMap", "odd"]["data"] == OBJECTS[5]["data"]
    pod = found["Pod", "web"]
    assert pod["status"]["phase"] == "Running"
    assert pod["metadata"]["uid"]
    whole = items(everything)
    assert whole["Secret", "s"]["data"] == {"token": TOKEN}
    assert ("Lease", "l") in whole
    assert [kind for kind, _ in whole].count("Event") == 1, "served in two groups, taken once"


def test_a_snapshot_comes_back_as_it_was(tmp_path: Path, inside: Inside) -> None:
    file = tmp_path / "cluster.json.gz"
    with serve(objects=OBJECTS) as server:
        take(server, inside, "-o", str(file), "--include-secret-data", "--include-leases", "--include-events")
        first = items(gzip.decompress(file.read_bytes()).decode())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    restored: list[JsonObject] = json.loads(gzip.decompress(file.read_bytes()))["items"]
    with serve(objects=restored) as server:
        second = items(take(server, inside, "-o", "json", "--include-secret-data", "--include-leases",
                            "--include-events"))  # fmt: skip
    assert second.keys() == first.keys()
    for key, obj in second.items():
        assert comparable(obj) == comparable(first[key])


def comparable(obj: JsonObject) -> JsonObject:
    """Without what is new in another cluster: uids, versions, and the times of this server's own doings."""
    meta = {k: v for k, v in obj["metadata"].items() if k not in ("uid", "resourceVersion", "managedFields")}
    bare = {**obj, "metadata": meta}
    if obj["kind"] == "CustomResourceDefinition":
        del bare["status"]
    return bare


def test_a_redacted_snapshot_can_be_loaded(inside: Inside) -> None:
    with serve(objects=OBJECTS) as server:
        found = items(take(server, inside))
    with serve(objects=list(found.values())) as server:

        async def secrets(client: Client) -> list[JsonObject]:
            return (await client.list(SECRETS, "default")).items

        assert {obj["metadata"]["name"] for obj in server.run(secrets)} == {"s", "pull"}


def test_namespaces_and_exclusions_narrow_it(inside: Inside) -> None:
    with serve(objects=OBJECTS) as server:
        definitions = "customresourcedefinitions.apiextensions.k8s.io"
        found = items(take(server, inside, "-n", "shop", "--exclude", definitions))
    assert ("Pod", "web") in found
    assert ("Node", "n1") in found, "what has no namespace stays"
    assert ("ConfigMap", "odd") not in found
    assert not any(kind == "CustomResourceDefinition" for kind, _ in found)
    assert [name for kind, name in found if kind == "Namespace"] == ["shop"]


def test_large_lists_are_read_in_pages(inside: Inside) -> None:
    many = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{i}"}} for i in range(1201)]
    with serve(objects=many) as server:
        found = items(take(server, inside, "-o", "json"))
    assert sum(kind == "ConfigMap" for kind, _ in found) == 1201


def test_nothing_in_the_cluster_changes(inside: Inside) -> None:
    async def revision(client: Client) -> str:
        return (await client.list(PODS)).resource_version

    with serve(objects=OBJECTS) as server:
        before = server.run(revision)
        take(server, inside)
        assert server.run(revision) == before


@pytest.mark.parametrize("output", ["cluster.txt", "no/such/folder/c.yaml", "."])
def test_a_bad_output_is_refused_before_anything_is_read(inside: Inside, output: str) -> None:
    done = inside("snapshot", "-o", output)
    assert done.returncode == 2
    assert "'-o'" in assert_two_lines(done.stderr)[0]


def test_progress_and_data_go_their_own_ways(tmp_path: Path) -> None:
    with serve() as server:
        done = run(tmp_path, "snapshot", KUBECONFIG=str(server.kubeconfig))
    assert done.returncode == 0
    assert ("Namespace", "default") in items(done.stdout)
    assert done.stderr.endswith(" objects\n")


def test_errors_of_the_cluster_are_two_lines(tmp_path: Path, inside: Inside) -> None:
    done = inside("snapshot", "--kubeconfig", str(tmp_path / "none"))
    assert done.returncode == 1
    assert "does not exist" in assert_two_lines(done.stderr)[0]
    with serve() as server:
        config = server.kubeconfig.read_text()
        unknown = inside("snapshot", "--kubeconfig", str(server.kubeconfig), "--exclude", "unicorns")
    assert unknown.returncode == 2
    assert "no resource unicorns" in assert_two_lines(unknown.stderr)[0]
    file = tmp_path / "gone"
    file.write_text(config)
    out = tmp_path / "out.yaml"
    done = inside("snapshot", "--kubeconfig", str(file), "-o", str(out))
    assert done.returncode == 1
    assert_two_lines(done.stderr)
    assert list(tmp_path.glob("*out.yaml*")) == [], "no half-written file stays"


def test_lists_of_the_fixture_are_what_they_seem() -> None:
    """Guards the test data: an object that were refused would make the tests above say nothing."""
    with serve(objects=OBJECTS) as server:

        async def count(client: Client) -> list[int]:
            return [len((await client.list(kind)).items) for kind in (CONFIG_MAPS, NODES, LEASES, PODS)]

        assert server.run(count) == [1, 1, 1, 1]
