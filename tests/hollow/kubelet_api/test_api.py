"""The kubelet's API in process, through nodes/proxy of the embedded server."""

from __future__ import annotations

import json

import pytest

from holokube.client.resources import NODES, PODS
from holokube.hollow.kubelet_api.view import KubeletView
from holokube.hollow.node_life import Fault
from holokube.kube.errors import ApiError, NotFound, ServiceUnavailable
from tests.hollow.kubelet_api.worlds import KubeletWorld

MI = 1024 * 1024
GI = 1024 * MI
PROXY = "/api/v1/nodes/n0/proxy"


def samples(text: str) -> dict[str, float]:
    """Samples of Prometheus' text form, without their times."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, value, *_ = line.rsplit(" ", 2) if line.count(" ") > 1 else line.rsplit(" ", 1)
            found[name] = float(value)
    return found


def test_the_summary_tells_what_node_pods_and_containers_use() -> None:
    with KubeletWorld() as world:
        world.make_pod(requests={"cpu": "1", "memory": "1Gi"})
        world.make_pod("elsewhere-pending", node="n9")
        world.pass_time(100)
        found = world.get(f"{PROXY}/stats/summary")
        found = json.loads(found) if isinstance(found, str) else found
        (only,) = found["pods"]
        assert only["podRef"]["name"] == "p" and only["podRef"]["uid"]
        assert only["containers"][0]["name"] == "c"
        assert only["cpu"]["usageNanoCores"] == 300_000_000
        assert only["cpu"]["usageCoreNanoSeconds"] == pytest.approx(30e9, rel=0.02)
        assert only["memory"]["workingSetBytes"] == pytest.approx(0.6 * GI, abs=1)
        own = found["node"]
        assert own["nodeName"] == "n0"
        assert own["cpu"]["usageNanoCores"] == 400_000_000
        assert own["memory"]["availableBytes"] + own["memory"]["workingSetBytes"] == 10 * GI


def test_resource_metrics_are_what_metrics_server_scrapes() -> None:
    with KubeletWorld() as world:
        world.make_pod(annotations={"kwok.x-k8s.io/usage-cpu": "500m", "kwok.x-k8s.io/usage-memory": "64Mi"})
        world.pass_time(100)
        text = world.get(f"{PROXY}/metrics/resource")
        found = samples(text)
        labels = '{container="c",namespace="default",pod="p"}'
        assert found[f"container_cpu_usage_seconds_total{labels}"] == pytest.approx(50, rel=0.02)
        assert found[f"container_memory_working_set_bytes{labels}"] == 64 * MI
        assert found['pod_cpu_usage_seconds_total{namespace="default",pod="p"}'] == pytest.approx(50, rel=0.02)
        assert found["node_memory_working_set_bytes"] == pytest.approx(64 * MI + 0.2 * GI, abs=2)
        assert found["resource_scrape_error"] == 0
        types = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
        assert types == [*sorted(types[:-1]), "resource_scrape_error"] and len(types) == 8


def test_the_counter_of_a_node_does_not_fall_when_pods_restart_or_go() -> None:
    with KubeletWorld() as world:
        annotations = {"kwok.x-k8s.io/usage-cpu": "4", "holokube.dev/run-time": "30s"}
        world.make_pod("restarts", annotations=annotations)
        world.make_pod("goes", annotations={"kwok.x-k8s.io/usage-cpu": "2"})
        before, own_ns_per_s = 0, 100_000_000
        for second in range(20):
            if second == 10:
                world.cluster.run(world.client.delete(PODS, "goes", "default", grace_s=0))
            world.pass_time(7)
            now = world.view.node_core_ns(world.view.node("n0"))
            assert now >= before + 7 * own_ns_per_s
            before = now
        # Both pods have used far more than what runs now could have since its last start.
        assert before > (70 * 2 + 60 * 4) * 10**9
        world.cluster.run(world.client.delete(NODES, "n0"))
        world.pass_time(1)
        assert world.view._ended_core_ns == {}


def test_pods_are_listed_and_running_ones_as_the_runtime_knows_them() -> None:
    with KubeletWorld() as world:
        world.make_pod()
        world.make_pod("done", annotations={"holokube.dev/run-time": "1s"}, restartPolicy="Never")
        world.pass_time(60)
        pods = json.loads(world.get(f"{PROXY}/pods"))
        assert [item["metadata"]["name"] for item in pods["items"]] == ["done", "p"]
        running = json.loads(world.get(f"{PROXY}/runningpods/"))
        (item,) = running["items"]
        assert item["metadata"]["name"] == "p" and [c["name"] for c in item["spec"]["containers"]] == ["c"]
        assert world.get(f"{PROXY}/healthz") == "ok"


def test_what_hollow_kubelets_do_not_have_is_refused_clearly() -> None:
    with KubeletWorld() as world:
        world.make_pod()
        world.pass_time(5)
        with pytest.raises(NotFound, match="does not serve /metrics/cadvisor"):
            world.get(f"{PROXY}/metrics/cadvisor")
        with pytest.raises(ApiError, match="hollow pods have no processes: exec is not possible"):
            world.get(f"{PROXY}/exec/default/p/c")
        with pytest.raises(NotFound, match='pod "q" not found'):
            world.get(f"{PROXY}/containerLogs/default/q/c")
        with pytest.raises(NotFound, match='container "x" not found in pod "p"'):
            world.get(f"{PROXY}/containerLogs/default/p/x")
        with pytest.raises(NotFound):
            world.get("/api/v1/nodes/n9/proxy/pods")


def test_a_silent_node_does_not_answer() -> None:
    with KubeletWorld(2) as world:
        world.make_pod()
        world.pass_time(60)
        world.fleet.inject("n0", Fault.SILENT)
        with pytest.raises(ServiceUnavailable, match='kubelet of node "n0" does not answer'):
            world.get(f"{PROXY}/stats/summary")
        with pytest.raises(ServiceUnavailable):
            world.get("/api/v1/namespaces/default/pods/p/log")
        measured = world.get("/apis/metrics.k8s.io/v1beta1/nodes")["items"]
        assert [item["metadata"]["name"] for item in measured] == ["n1"]
        assert world.get("/apis/metrics.k8s.io/v1beta1/pods")["items"] == []
        world.fleet.heal("n0")
        world.pass_time(60)
        assert world.get(f"{PROXY}/healthz") == "ok"


def test_a_path_names_its_node_or_its_pod_does() -> None:
    with KubeletWorld() as world:
        world.make_pod()
        world.pass_time(5)
        assert world.api.node_in("/nodes/n0/stats/summary") == ("n0", "stats/summary")
        assert world.api.node_in("/metrics/nodes/n0/metrics/resource") == ("n0", "metrics/resource")
        assert world.api.node_in("/containerLogs/default/p/c") == ("n0", "containerLogs/default/p/c")
        assert world.api.node_in("/containerLogs/default/none/c") == ("", "containerLogs/default/none/c")
        assert world.api.node_in("/pods") == ("", "pods")


def test_a_counter_that_counts_when_asked_does_not_fall_for_whoever_has_asked() -> None:
    with KubeletWorld() as world:
        view = KubeletView(
            world.clock, world.fleet.node_informer, world.fleet.pod_informer, name="second", counts_when_asked=True
        )
        for name in ("first", "second"):
            world.make_pod(name, annotations={"kwok.x-k8s.io/usage-cpu": "4"})
        world.pass_time(30)
        world.cluster.run(world.client.delete(PODS, "first", "default", grace_s=0))
        world.pass_time(1)
        assert view._ended_core_ns == {}, "nobody has asked"
        before = view.node_core_ns(view.node("n0"))
        world.cluster.run(world.client.delete(PODS, "second", "default", grace_s=0))
        world.pass_time(10)
        after = view.node_core_ns(view.node("n0"))
        assert after > before
        assert view._ended_core_ns["n0"] > 100 * 10**9
        view.close()
        world.make_pod("third", annotations={"kwok.x-k8s.io/usage-cpu": "4"})
        world.pass_time(5)
        world.cluster.run(world.client.delete(PODS, "third", "default", grace_s=0))
        world.pass_time(5)
        assert view.node_core_ns(view.node("n0")) < after + 10 * 4 * 10**9
