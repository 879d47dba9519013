from __future__ import annotations

from typing import Any

import pytest

from holokube.client.discovery import Discovered
from holokube.client.resources import CONFIG_MAPS, DEPLOYMENTS, NODES, PODS, Resource
from holokube.workloads.namespace_decisions import (
    Content,
    deletable,
    discovery_failure,
    is_doomed,
    next_look_s,
    pods_estimate_s,
    settles_in_s,
    status_of,
)
from tests.workloads.objects import NOW, a_pod, ago

JsonObject = dict[str, Any]


def namespace(age_s: float = 10, **spec: Any) -> JsonObject:
    meta = {"name": "shop", "deletionTimestamp": ago(age_s)}
    return {"metadata": meta, "spec": {"finalizers": ["kubernetes"], **spec}}


def conditions(content: Content, *, pods_only: bool = False) -> dict[str, tuple[str, str]]:
    status = status_of(namespace(), content, NOW, pods_only=pods_only)
    return {c["type"]: (c["status"], c["message"]) for c in status["conditions"]}


def test_a_namespace_is_ours_while_it_is_deleted_and_has_our_finalizer() -> None:
    assert is_doomed(namespace())
    assert not is_doomed(namespace(finalizers=["other"])) and not is_doomed({"metadata": {"name": "shop"}})


def test_servers_have_five_seconds_to_notice() -> None:
    assert settles_in_s(namespace(2), NOW) == 3 and settles_in_s(namespace(9), NOW) < 0


@pytest.mark.parametrize(("age_s", "expected"), [(10, 60), (59, 60), (60, 0)])
def test_pods_are_given_their_longest_grace_period(age_s: float, expected: int) -> None:
    pods = [
        a_pod("a", terminationGracePeriodSeconds=30), a_pod("b", terminationGracePeriodSeconds=60),
        a_pod("over", "Failed", terminationGracePeriodSeconds=900),
    ]  # fmt: skip
    assert pods_estimate_s(pods, namespace(age_s), NOW) == expected


def test_finalizers_are_given_fifteen_seconds_and_the_next_look_comes_half_way() -> None:
    content = Content()
    content.found(CONFIG_MAPS, [{"metadata": {"finalizers": ["a/b"]}}, {"metadata": {"finalizers": ["a/b"]}}], 0)
    assert (content.finalizers, content.estimate_s, next_look_s(content)) == ({"a/b": 2}, 15, 8)
    content.found(PODS, [a_pod()], 30)
    assert next_look_s(content) == 16 and not content.complete


def test_what_remains_is_listed_but_not_while_only_pods_were_looked_at() -> None:
    content = Content({CONFIG_MAPS: 1, DEPLOYMENTS: 2}, {"a/b": 3})
    assert conditions(content)["NamespaceContentRemaining"] == (
        "True",
        ("Some resources are remaining: configmaps. has 1 resource instances, "
        "deployments.apps has 2 resource instances"),
    )
    assert conditions(content)["NamespaceFinalizersRemaining"][1].endswith("remaining: a/b in 3 resource instances")
    assert {status for status, _ in conditions(content, pods_only=True).values()} == {"False"}


def test_a_group_that_did_not_answer_is_named_with_its_reason() -> None:
    assert discovery_failure({}) == ""
    content = Content(discovery_failure=discovery_failure({"b/v1": "down", "a/v1": "late"}))
    assert not content.complete
    assert conditions(content)["NamespaceDeletionDiscoveryFailure"] == (
        "True",
        ("Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: "
        "a/v1: late, b/v1: down"),
    )


def test_a_condition_that_stays_keeps_its_time() -> None:
    before = status_of(namespace(), Content(), NOW, pods_only=False)
    for condition in before["conditions"]:
        condition["lastTransitionTime"] = ago(99)
    after = status_of({**namespace(), "status": before}, Content(failures=["x"]), NOW, pods_only=False)
    times = {c["type"]: c["lastTransitionTime"] for c in after["conditions"]}
    assert times.pop("NamespaceDeletionContentFailure") == ago(0) and set(times.values()) == {ago(99)}


def test_each_resource_is_deleted_once_in_its_preferred_version() -> None:
    old = Resource("apps", "v1beta1", "deployments", "Deployment", True)
    found = deletable([
        Discovered(DEPLOYMENTS, verbs=("delete",)), Discovered(old, verbs=("delete",)),
        Discovered(NODES, verbs=("delete",)), Discovered(PODS, verbs=("list",)),
    ])  # fmt: skip
    assert [item.resource for item in found] == [DEPLOYMENTS]
