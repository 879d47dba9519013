"""The comparison must be blind to chance, and to nothing else."""

from __future__ import annotations

from typing import Any

from tests.workload_parity.normalize import Names, differences

JsonObject = dict[str, Any]


def pod(name: str, digest: str, phase: str = "Running") -> JsonObject:
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"web-{digest}-{name}", "generateName": f"web-{digest}-", "uid": f"uid-of-{name}",
            "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"pod-template-hash": digest},
            "ownerReferences": [{"kind": "ReplicaSet", "name": f"web-{digest}"}],
        },
        "status": {"phase": phase, "startTime": "2026-01-01T00:00:00Z"},
    }  # fmt: skip


def replica_set(digest: str, revision: int) -> JsonObject:
    return {
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"web-{digest}", "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"pod-template-hash": digest}, "ownerReferences": [{"kind": "Deployment", "name": "web"}],
            "annotations": {"deployment.kubernetes.io/revision": str(revision)},
        },
    }  # fmt: skip


def event(message: str, count: int) -> JsonObject:
    return {
        "metadata": {"name": "e"}, "involvedObject": {"kind": "ReplicaSet", "name": "web-7f8"}, "count": count,
        "type": "Normal", "reason": "SuccessfulCreate", "message": message, "source": {"component": "rs"},
    }  # fmt: skip


def test_hashes_suffixes_and_times_do_not_count() -> None:
    one = Names().snapshot({"replicasets.apps": [replica_set("7f8", 1)], "pods": [pod("bcdfg", "7f8")]})
    other = Names().snapshot({"replicasets.apps": [replica_set("9c6", 1)], "pods": [pod("xz245", "9c6")]})
    assert differences(one, other) == []
    assert one["pods"][0]["metadata"]["name"] == "web-{h1}-*"


def test_a_phase_counts_and_the_order_of_pods_does_not() -> None:
    one = Names().snapshot({"pods": [pod("bcdfg", "7f8"), pod("xz245", "7f8", "Pending")]})
    swapped = Names().snapshot({"pods": [pod("bcdfg", "7f8", "Pending"), pod("xz245", "7f8")]})
    other = Names().snapshot({"pods": [pod("bcdfg", "7f8"), pod("xz245", "7f8")]})
    assert differences(one, swapped) == []
    (line,) = differences(one, other)
    assert line.endswith('status.phase: real "Pending", ours "Running"')


def test_hashes_are_numbered_by_revision() -> None:
    names = Names()
    names.snapshot({"replicasets.apps": [replica_set("7f8", 2), replica_set("9c6", 1)]})
    assert names.plain_text("web-9c6 then web-7f8") == "web-{h1} then web-{h2}"


def test_only_what_was_told_since_the_last_snapshot_is_shown_with_its_count() -> None:
    names = Names()
    rs = {"replicasets.apps": [replica_set("7f8", 1)]}
    first = names.snapshot({**rs, "events": [event("Created pod: web-7f8-bcdfg", 1)]})
    second = names.snapshot({
        **rs, "events": [event("Created pod: web-7f8-bcdfg", 1), event("Created pod: web-7f8-xz245", 2)]
    })  # fmt: skip
    assert [(e["message"], e["count"]) for e in first["events"]] == [("Created pod: web-{h1}-*", 1)]
    assert [(e["message"], e["count"]) for e in second["events"]] == [("Created pod: web-{h1}-*", 2)]


def test_missing_fields_objects_and_events_are_all_reported() -> None:
    real = {"pods": [{"metadata": {"name": "a"}, "spec": {"x": 1}}], "events": [{"reason": "A"}]}
    ours = {"pods": [{"metadata": {"name": "a"}, "spec": {}}], "events": [{"reason": "B"}], "jobs.batch": []}
    assert differences(real, ours) == [
        'events[]: only real {"reason": "A"}', 'events[]: only ours {"reason": "B"}', "jobs.batch: only ours []",
        "pods[a].spec.x: only real 1",
    ]  # fmt: skip
