"""metrics.k8s.io as a virtual, read-only group."""

from __future__ import annotations

import orjson
import pytest

from holokube.apiserver import tables
from holokube.apiserver.metrics_api import Amounts, Measurement
from holokube.apiserver.openapi import OpenApi
from holokube.client.resources import NODES, PODS, Resource
from holokube.kube.errors import BadRequest, MethodNotAllowed, NotFound
from holokube.kube.types import JsonObject
from holokube.testing import Cluster
from tests.builders import node, pod

ROOT = "/apis/metrics.k8s.io/v1beta1"
NODE_METRICS = Resource("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics", False)
POD_METRICS = Resource("metrics.k8s.io", "v1beta1", "pods", "PodMetrics", True)


class Fixed:
    """Everything uses the same; objects labelled ``young`` are not measured yet."""

    def measure_node(self, subject: JsonObject) -> Measurement | None:
        if "young" in (subject["metadata"].get("labels") or {}):
            return None
        return Measurement(1_767_225_615.0, 15.0, amounts=Amounts(250_000_001, 3 * 1024 * 1024))

    def measure_pod(self, subject: JsonObject) -> Measurement | None:
        if "young" in (subject["metadata"].get("labels") or {}):
            return None
        amounts = {"c": Amounts(250_000_000, 1024), "d": Amounts(0, 1023)}
        return Measurement(1_767_225_615.0, 15.0, containers=amounts)


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster()
    for name, labels in (("p1", {"app": "a"}), ("p2", {"app": "b"}), ("p3", {"app": "a", "young": ""})):
        body = pod(name)
        body["metadata"]["labels"] = labels
        made.run(made.client.create(PODS, body))
    made.run(made.client.create(NODES, node("n1", zone="z")))
    return made


def test_without_a_source_nobody_knows_the_group(cluster: Cluster) -> None:
    with cluster:
        groups = cluster.run(cluster.client.request("GET", "/apis"))["groups"]
        assert "metrics.k8s.io" not in {group["name"] for group in groups}
        with pytest.raises(NotFound):
            cluster.run(cluster.client.list(POD_METRICS, "default"))


def test_discovery_shows_the_group_while_somebody_measures(cluster: Cluster) -> None:
    with cluster:
        cluster.registry.metrics.use(Fixed())
        listing = cluster.run(cluster.client.request("GET", ROOT))
        assert listing["resources"] == [
            {"name": "nodes", "singularName": "", "namespaced": False, "kind": "NodeMetrics", "verbs": ["get", "list"]},
            {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]},
        ]  # fmt: skip
        cluster.registry.metrics.use(None)
        with pytest.raises(NotFound):
            cluster.run(cluster.client.request("GET", ROOT))


def test_metrics_look_as_metrics_server_gives_them(cluster: Cluster) -> None:
    with cluster:
        cluster.registry.metrics.use(Fixed())
        assert cluster.run(cluster.client.get(NODE_METRICS, "n1")) == {
            "kind": "NodeMetrics", "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": {"name": "n1", "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"zone": "z"}},
            "timestamp": "2026-01-01T00:00:15Z", "window": "15s", "usage": {"cpu": "250000001n", "memory": "3Mi"},
        }  # fmt: skip
        found = cluster.run(cluster.client.get(POD_METRICS, "p1", "default"))
        assert found["containers"] == [
            {"name": "c", "usage": {"cpu": "250m", "memory": "1Ki"}},
            {"name": "d", "usage": {"cpu": "0", "memory": "1023"}},
        ]
        assert found["metadata"]["namespace"] == "default"


def test_lists_follow_label_selectors_and_leave_out_what_is_not_measured(cluster: Cluster) -> None:
    def names(**query: str) -> list[str]:
        answer = cluster.run(cluster.client.request("GET", f"{ROOT}/namespaces/default/pods", query=query))
        assert answer["kind"] == "PodMetricsList" and answer["metadata"] == {}
        return [item["metadata"]["name"] for item in answer["items"]]

    with cluster:
        cluster.registry.metrics.use(Fixed())
        assert names() == ["p1", "p2"]
        assert names(labelSelector="app=a") == ["p1"]
        assert names(fieldSelector="metadata.name=p2") == ["p2"]
        with pytest.raises(BadRequest, match="field label not supported"):
            names(fieldSelector="status.phase=Running")
        assert cluster.run(cluster.client.list(POD_METRICS, "other")).items == []
        assert len(cluster.run(cluster.client.list(POD_METRICS)).items) == 2
        with pytest.raises(NotFound, match=r'pods.metrics.k8s.io "default/p3" not found'):
            cluster.run(cluster.client.get(POD_METRICS, "p3", "default"))


def test_metrics_can_only_be_read(cluster: Cluster) -> None:
    with cluster:
        cluster.registry.metrics.use(Fixed())
        with pytest.raises(MethodNotAllowed):
            cluster.run(cluster.client.delete(POD_METRICS, "p1", "default"))
        with pytest.raises(MethodNotAllowed):
            cluster.run(cluster.client.create(NODE_METRICS, {"metadata": {"name": "x"}}))


def test_tables_have_a_column_for_each_resource(cluster: Cluster) -> None:
    with cluster:
        cluster.registry.metrics.use(Fixed())
        served = cluster.registry.resolve("metrics.k8s.io", "v1beta1", "pods")
        item = cluster.run(cluster.client.get(POD_METRICS, "p1", "default"))
        table = tables.table(served, [item], cluster.clock.now(), "None")
        assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "cpu", "memory", "Window"]
        assert table["rows"][0]["cells"] == ["p1", "250m", "2047", "15s"]


def test_openapi_describes_the_group(cluster: Cluster) -> None:
    with cluster:
        cluster.registry.metrics.use(Fixed())
        document = OpenApi(cluster.registry).document("apis/metrics.k8s.io/v1beta1")
        assert document is not None
        found = orjson.loads(document.raw)
        assert f"{ROOT}/nodes/{{name}}" in found["paths"]
        fields = found["components"]["schemas"]["io.k8s.metrics.pkg.apis.metrics.v1beta1.PodMetrics"]["properties"]
        assert set(fields) == {"apiVersion", "kind", "metadata", "timestamp", "window", "containers"}
        assert orjson.loads(OpenApi(cluster.registry).v2().raw)["paths"][f"{ROOT}/pods"]
