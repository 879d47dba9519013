from __future__ import annotations

from typing import Any

from holokube.workloads.endpoint_mirroring_decisions import MANAGER, MAX_PER_SUBSET, mirror, should_mirror
from tests.workloads.objects import an_owner

JsonObject = dict[str, Any]
HTTP = [{"name": "http", "port": 80, "protocol": "TCP"}]


def endpoints(*subsets: JsonObject, **meta: Any) -> JsonObject:
    made = an_owner("Endpoints", "outside")
    return {**made, "metadata": {**made["metadata"], **meta}, "subsets": list(subsets)}


def named(slices: list[JsonObject]) -> list[JsonObject]:
    return [
        {**s, "metadata": {**s["metadata"], "name": s["metadata"].get("name", f"s{number}"), "uid": f"s{number}"}}
        for number, s in enumerate(slices)
    ]


def test_only_services_without_a_selector_are_mirrored_and_locks_and_the_unwilling_are_not() -> None:
    without, with_selector = an_owner("Service", "outside"), an_owner("Service", "outside", selector={"app": "a"})
    assert should_mirror(endpoints(), without)
    assert not should_mirror(endpoints(), with_selector) and not should_mirror(endpoints(), None)
    assert not should_mirror(None, without)
    assert not should_mirror(endpoints(labels={"endpointslice.kubernetes.io/skip-mirror": "true"}), without)
    assert not should_mirror(endpoints(annotations={"control-plane.alpha.kubernetes.io/leader": "{}"}), without)


def test_families_and_states_are_told_apart() -> None:
    subset = {
        "addresses": [{"ip": "192.0.2.1", "nodeName": "n1"}, {"ip": "2001:db8::1"}],
        "notReadyAddresses": [{"ip": "192.0.2.2", "hostname": "two"}], "ports": HTTP,
    }  # fmt: skip
    made = {s["addressType"]: s for s in mirror(endpoints(subset, labels={"team": "x"}), []).changes.create}
    assert made["IPv4"]["endpoints"] == [
        {"addresses": ["192.0.2.1"], "conditions": {"ready": True}, "nodeName": "n1"},
        {"addresses": ["192.0.2.2"], "conditions": {"ready": False}, "hostname": "two"},
    ]
    assert made["IPv6"]["endpoints"] == [{"addresses": ["2001:db8::1"], "conditions": {"ready": True}}]
    assert made["IPv4"]["metadata"]["labels"] == {
        "team": "x", "kubernetes.io/service-name": "outside", "endpointslice.kubernetes.io/managed-by": MANAGER,
    }  # fmt: skip


def test_what_is_mirrored_already_is_left_and_the_rest_reused_or_deleted() -> None:
    old = endpoints({"addresses": [{"ip": "192.0.2.1"}], "ports": HTTP})
    slices = named(mirror(old, []).changes.create)
    same = mirror(old, slices).changes
    assert (same.create, same.update, same.delete) == ([], [], [])
    other = endpoints({"addresses": [{"ip": "192.0.2.1"}], "ports": [{"name": "dns", "port": 53}]})
    changed = mirror(other, slices).changes
    assert [s["metadata"]["name"] for s in changed.update] == ["s0"] and changed.update[0]["ports"][0]["port"] == 53
    assert mirror(endpoints(), slices).changes.delete == slices


def test_annotations_are_mirrored_but_for_those_about_the_object_itself() -> None:
    notes = {"a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}"}
    subset = {"addresses": [{"ip": "192.0.2.1"}], "ports": HTTP}
    (made,) = mirror(endpoints(subset, annotations=notes), []).changes.create
    assert made["metadata"]["annotations"] == {"a": "b"}
    bare = mirror(endpoints(subset), named([made])).changes
    assert "annotations" not in bare.update[0]["metadata"]


def test_nonsense_and_what_is_too_much_is_counted_and_left_out() -> None:
    many = [{"ip": f"10.{n // 250}.0.{n % 250}"} for n in range(MAX_PER_SUBSET + 3)]
    result = mirror(endpoints({"addresses": [{"ip": "0.0.nonsense"}, *many], "ports": HTTP}), [])
    assert (result.invalid, result.too_many) == (1, 3)
    assert len(result.changes.create[0]["endpoints"]) == MAX_PER_SUBSET
