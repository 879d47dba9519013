from __future__ import annotations

from typing import Any

import pytest

from holokube.client.resources import ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES
from holokube.workloads import endpoint_controller, garbage_controller
from tests.builders import node, pod
from tests.workloads.housekeeping import STORM, House

JsonObject = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"


def house(*objects: JsonObject, **options: Any) -> House:
    nodes = [node(name, **{ZONE: zone}) for name, zone in (("n1", "a"), ("n2", "b"))]
    return House(
        endpoint_controller.build, endpoint_controller.build_endpoints, garbage_controller.build,
        objects=[*nodes, *objects], **options,
    )  # fmt: skip


def service(name: str = "web", **spec: Any) -> JsonObject:
    body = {"selector": {"app": "a"}, "ports": [{"name": "http", "port": 80, "targetPort": 8080}], **spec}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default",
            "labels": {"team": "x"}}, "spec": body}  # fmt: skip


def backend(number: int, *, ready: bool = True, node: str = "n1", **spec: Any) -> JsonObject:
    obj = pod(f"p{number}", node=node, **spec)
    obj["metadata"]["labels"] = {"app": "a"}
    ip = f"10.0.{number // 250}.{number % 250 + 1}"
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {**obj, "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": conditions}}


def slices(home: House, name: str = "web") -> list[JsonObject]:
    listed = home.run(home.client.list(ENDPOINT_SLICES, "default")).items
    return [s for s in listed if s["metadata"]["labels"].get("kubernetes.io/service-name") == name]


def endpoints(home: House) -> dict[str, JsonObject]:
    return {e["targetRef"]["name"]: e for s in slices(home) for e in s.get("endpoints") or ()}


def set_ready(home: House, name: str, ready: bool) -> None:
    patch = {"status": {"conditions": [{"type": "Ready", "status": str(ready)}]}}
    home.patch(PODS, name, patch, subresource="status")


def test_a_service_lists_its_pods_with_their_state_node_and_zone() -> None:
    with house(backend(0), backend(1, ready=False, node="n2")) as home:
        made = home.create(SERVICES, service())
        home.pass_time(1)
        (only,) = slices(home)
        assert only["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
        assert only["metadata"]["generateName"] == "web-"
        assert only["metadata"]["labels"] == {
            "team": "x", "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        }  # fmt: skip
        assert only["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
        found = endpoints(home)
        assert found["p0"]["addresses"] == ["10.0.0.1"]
        assert found["p0"]["conditions"] == {"ready": True, "serving": True, "terminating": False}
        assert (found["p1"]["nodeName"], found["p1"]["zone"]) == ("n2", "b")
        assert found["p1"]["conditions"]["ready"] is False
        (subset,) = home.get(ENDPOINTS, "web")["subsets"]
        assert [a["ip"] for a in subset["addresses"]] == ["10.0.0.1"]
        assert [a["ip"] for a in subset["notReadyAddresses"]] == ["10.0.0.2"]
        assert subset["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]


def test_readiness_and_deletion_show_at_once() -> None:
    with house(backend(0), backend(1)) as home:
        home.create(SERVICES, service())
        home.pass_time(1)
        set_ready(home, "p0", False)
        home.delete(PODS, "p1")
        home.pass_time(1)
        found = endpoints(home)
        assert found["p0"]["conditions"]["ready"] is False
        assert found["p1"]["conditions"] == {"ready": False, "serving": True, "terminating": True}
        (subset,) = home.get(ENDPOINTS, "web")["subsets"]
        assert "addresses" not in subset and len(subset["notReadyAddresses"]) == 1
        for name in ("p0", "p1"):
            home.delete(PODS, name, grace_s=0)
        home.pass_time(1)
        (placeholder,) = slices(home)
        assert not placeholder.get("endpoints") and not placeholder.get("ports")
        assert "subsets" not in home.get(ENDPOINTS, "web")


def test_slices_hold_a_hundred_each_and_are_refilled() -> None:
    with house(*(backend(n) for n in range(250))) as home:
        home.create(SERVICES, service())
        home.pass_time(1)
        assert sorted(len(s["endpoints"]) for s in slices(home)) == [50, 100, 100]
        before = {s["metadata"]["name"]: s["metadata"]["resourceVersion"] for s in slices(home)}
        for n in range(250, 270):
            obj = backend(n)
            home.load([obj])
        home.pass_time(1)
        assert sorted(len(s["endpoints"]) for s in slices(home)) == [70, 100, 100]
        after = {s["metadata"]["name"]: s["metadata"]["resourceVersion"] for s in slices(home)}
        assert sum(before[name] != after[name] for name in before) == 1, "only one slice had to change"


def test_named_ports_that_differ_make_slices_of_their_own() -> None:
    def with_port(number: int, port: int) -> JsonObject:
        container = {"name": "c", "image": "i", "ports": [{"name": "web", "containerPort": port}]}
        return backend(number, containers=[container])

    with house(with_port(0, 1000), with_port(1, 2000), backend(2)) as home:
        home.create(SERVICES, service(ports=[{"name": "http", "port": 80, "targetPort": "web"}]))
        home.pass_time(1)
        by_port = {tuple(p["port"] for p in s.get("ports") or ()): len(s["endpoints"]) for s in slices(home)}
        assert by_port == {(1000,): 1, (2000,): 1, (): 1}
        subsets = home.get(ENDPOINTS, "web")["subsets"]
        assert sorted(s["ports"][0]["port"] for s in subsets) == [1000, 2000]


def test_headless_services_carry_hostnames_and_unready_addresses_if_asked() -> None:
    named = backend(0, ready=False, hostname="zero", subdomain="web")
    with house(named) as home:
        home.create(SERVICES, service(clusterIP="None", publishNotReadyAddresses=True))
        home.pass_time(1)
        (only,) = slices(home)
        assert only["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
        assert endpoints(home)["p0"]["hostname"] == "zero"
        assert endpoints(home)["p0"]["conditions"] == {"ready": True, "serving": False, "terminating": False}
        (subset,) = home.get(ENDPOINTS, "web")["subsets"]
        assert subset["addresses"][0]["hostname"] == "zero"


def test_traffic_distribution_gives_each_endpoint_to_its_zone() -> None:
    with house(backend(0), backend(1, node="n2")) as home:
        home.create(SERVICES, service(trafficDistribution="PreferSameZone"))
        home.pass_time(1)
        hints = {name: e["hints"]["forZones"][0]["name"] for name, e in endpoints(home).items()}
        assert hints == {"p0": "a", "p1": "b"}


def test_services_without_a_selector_are_left_to_others() -> None:
    with house(backend(0)) as home:
        home.create(SERVICES, service(selector=None))
        home.pass_time(1)
        assert slices(home) == [] and not home.exists(ENDPOINTS, "web")


def test_what_is_deleted_behind_our_back_is_made_again_and_all_goes_with_the_service() -> None:
    with house(backend(0)) as home:
        home.create(SERVICES, service())
        home.pass_time(1)
        home.delete(ENDPOINT_SLICES, slices(home)[0]["metadata"]["name"])
        home.delete(ENDPOINTS, "web")
        home.pass_time(1)
        assert len(slices(home)) == 1 and home.exists(ENDPOINTS, "web")
        home.delete(SERVICES, "web")
        home.pass_time(5)
        assert slices(home) == [] and not home.exists(ENDPOINTS, "web")


@pytest.mark.parametrize("seed", range(3))
def test_every_pod_is_listed_once_whatever_the_network_does(seed: int) -> None:
    with house(*(backend(n) for n in range(120)), faults=STORM, seed=seed) as home:
        home.create(SERVICES, service())
        for n in range(0, 120, 3):
            home.delete(PODS, f"p{n}", grace_s=0)
            set_ready(home, f"p{n + 1}", False)
            home.pass_time(2)
        home.calm()
        home.pass_time(1100)
        listed = [e["targetRef"]["name"] for s in slices(home) for e in s["endpoints"]]
        assert sorted(listed) == sorted(f"p{n}" for n in range(120) if n % 3)
        assert all(e["conditions"]["ready"] == (int(name[1:]) % 3 == 2) for name, e in endpoints(home).items())
        (subset,) = home.get(ENDPOINTS, "web")["subsets"]
        assert (len(subset["addresses"]), len(subset["notReadyAddresses"])) == (40, 40)
        assert home.faulty.injected.total() > 5


def test_endpoints_carry_the_time_of_the_change_they_were_written_for() -> None:
    name = "endpoints.kubernetes.io/last-change-trigger-time"
    with house() as home:
        made = home.create(SERVICES, service())
        home.pass_time(10)
        created = made["metadata"]["creationTimestamp"]
        for found in (slices(home)[0], home.get(ENDPOINTS, "web")):
            assert found["metadata"]["annotations"] == {name: created}
        home.patch(SERVICES, "web", {"metadata": {"labels": {"more": "labels"}}})
        home.pass_time(1)
        for found in (slices(home)[0], home.get(ENDPOINTS, "web")):
            assert "annotations" not in found["metadata"]
