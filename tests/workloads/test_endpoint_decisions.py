from __future__ import annotations

from typing import Any

from holokube.workloads.endpoint_decisions import MAX_PER_SLICE, has_endpoints, slice_changes, wanted_endpoints
from tests.workloads.objects import a_pod, an_owner

JsonObject = dict[str, Any]

NODES = {"n1": {"metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "z1"}}}}
NAMED = [{"name": "web", "port": 80, "targetPort": "web"}, {"name": "dns", "port": 53, "targetPort": 5353}]


def service(**spec: Any) -> JsonObject:
    body = {"selector": {"app": "a"}, "clusterIP": "10.96.0.9", "ports": [{"port": 80, "targetPort": 8080}], **spec}
    return an_owner("Service", "web", **body)


def endpoint_pod(number: int, *, port: int = 8080, ready: bool = True, **more: Any) -> JsonObject:
    pod = a_pod(f"p{number}", ready_s=5 if ready else None, node="n1", ip=f"10.1.0.{number}", **more)
    pod["spec"]["containers"][0]["ports"] = [{"name": "web", "containerPort": port}]
    return pod


def written(changes: Any, slices: list[JsonObject]) -> list[JsonObject]:
    """What is there after the changes."""
    by_name = {s["metadata"]["name"]: s for s in slices}
    for gone in changes.delete:
        del by_name[gone["metadata"]["name"]]
    for new in changes.update:
        by_name[new["metadata"]["name"]] = new
    for number, new in enumerate(changes.create):
        name = f"new-{len(by_name)}-{number}"
        by_name[name] = {**new, "metadata": {**new["metadata"], "name": name, "uid": name}}
    return list(by_name.values())


def test_ports_with_the_same_addresses_share_a_subset_and_others_have_their_own() -> None:
    pods = [endpoint_pod(1, port=8080), endpoint_pod(2, port=9090)]
    wanted = wanted_endpoints(service(ports=NAMED), pods, None)
    assert wanted is not None
    found = [
        ([address["ip"] for address in subset["addresses"]], [(p["name"], p["port"]) for p in subset["ports"]])
        for subset in wanted["subsets"]
    ]
    assert found == [
        (["10.1.0.1", "10.1.0.2"], [("dns", 5353)]), (["10.1.0.1"], [("web", 8080)]), (["10.1.0.2"], [("web", 9090)]),
    ]  # fmt: skip


def test_ready_and_unready_pods_of_one_port_stand_in_one_subset() -> None:
    wanted = wanted_endpoints(service(), [endpoint_pod(2, ready=False), endpoint_pod(1)], None)
    assert wanted is not None
    (subset,) = wanted["subsets"]
    assert [a["ip"] for a in subset["addresses"]] == ["10.1.0.1"]
    assert [a["ip"] for a in subset["notReadyAddresses"]] == ["10.1.0.2"]
    assert subset["ports"] == [{"port": 8080, "protocol": "TCP"}]


def test_a_headless_service_without_ports_lists_bare_addresses() -> None:
    wanted = wanted_endpoints(service(clusterIP="None", ports=[]), [endpoint_pod(1)], None)
    assert wanted is not None and "ports" not in wanted["subsets"][0]


def test_endpoints_that_are_right_are_not_written() -> None:
    wanted = wanted_endpoints(service(), [endpoint_pod(1)], None)
    assert wanted is not None and wanted_endpoints(service(), [endpoint_pod(1)], wanted) is None


def test_pods_without_an_address_and_those_that_ended_or_leave_are_no_endpoints() -> None:
    pods = [a_pod("new", ready_s=1), endpoint_pod(1, phase="Failed"), endpoint_pod(2, leaving=True)]
    wanted = wanted_endpoints(service(), pods, None)
    assert wanted is not None and "subsets" not in wanted
    (made,) = slice_changes(service(), pods, NODES, []).create
    assert [e["conditions"] for e in made["endpoints"]] == [{"ready": False, "serving": True, "terminating": True}]


def test_a_service_without_pods_has_one_empty_slice_which_the_first_pod_fills() -> None:
    (empty,) = written(slice_changes(service(), [], {}, []), [])
    assert (empty["ports"], empty["endpoints"]) == ([], [])
    assert slice_changes(service(), [], {}, [empty]) == slice_changes(service(), [], {}, [empty]).__class__()
    (filled,) = written(slice_changes(service(), [endpoint_pod(1)], NODES, [empty]), [empty])
    assert filled["metadata"]["name"] == empty["metadata"]["name"]
    assert filled["endpoints"][0]["zone"] == "z1"


def test_slices_are_filled_up_before_new_ones_are_made_and_kept_where_nothing_changed() -> None:
    pods = [endpoint_pod(number) for number in range(MAX_PER_SLICE + 20)]
    slices = written(slice_changes(service(), pods, NODES, []), [])
    assert sorted(len(s["endpoints"]) for s in slices) == [20, MAX_PER_SLICE]
    more = [*pods, endpoint_pod(200)]
    changes = slice_changes(service(), more, NODES, slices)
    assert (len(changes.create), len(changes.update), len(changes.delete)) == (0, 1, 0)
    assert len(changes.update[0]["endpoints"]) == 21


def test_services_without_a_selector_and_external_names_are_left_alone() -> None:
    assert has_endpoints(service())
    assert not has_endpoints(service(selector=None)) and not has_endpoints(service(type="ExternalName"))
