"""Launch, registration, initialization and liveness, as decisions."""

from __future__ import annotations

import asyncio

import pytest

from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.conditions import CLAIM_CONDITIONS
from holokube.karpenter.lifecycle.initialization import initialize, why_not_initialized
from holokube.karpenter.lifecycle.launch import Ending, Launcher, launched
from holokube.karpenter.lifecycle.liveness import Liveness, liveness
from holokube.karpenter.lifecycle.registration import register
from holokube.karpenter.provider.protocol import (
    Instance,
    InsufficientCapacity,
    LaunchFailed,
    NodeClassNotReady,
    ProviderError,
)
from holokube.kube.conditions import get_condition
from holokube.kube.types import JsonObject
from tests.karpenter.objects import NOW_S, claim, condition, node

UNREGISTERED = {"key": "karpenter.sh/unregistered", "effect": "NoExecute"}
INSTANCE = Instance(
    "kwok://n", labels={"zone": "a", "team": "theirs"}, annotations={"note": "theirs"}, capacity={"cpu": "4"},
    allocatable={"cpu": "3900m"},
)  # fmt: skip


class Cloud:
    def __init__(self, *answers: Instance | ProviderError) -> None:
        self.answers = list(answers)
        self.calls = 0

    async def create(self, _claim: NodeClaim) -> Instance:
        self.calls += 1
        answer = self.answers.pop(0)
        if isinstance(answer, ProviderError):
            raise answer
        return answer


def launcher(*answers: Instance | ProviderError) -> tuple[Cloud, Launcher]:
    cloud = Cloud(*answers)
    return cloud, Launcher(cloud)  # type: ignore[arg-type] # the part of a provider that is used


def test_a_launched_claim_takes_over_what_the_provider_tells_but_its_own_labels_win() -> None:
    made = launched(claim(labels={"team": "mine"}, annotations={"note": "mine"}), INSTANCE, NOW_S)
    assert made["metadata"]["labels"] == {"karpenter.sh/nodepool": "default", "zone": "a", "team": "mine"}
    assert made["metadata"]["annotations"] == {"note": "theirs"}
    view = NodeClaim.of(made)
    assert (view.provider_id, view.allocatable, view.is_launched) == ("kwok://n", {"cpu": 3900}, True)


def test_an_instance_is_not_launched_twice_when_its_claim_was_not_written() -> None:
    cloud, launch = launcher(INSTANCE)

    async def scenario() -> None:
        for _ in range(3):
            result = await launch.launch(claim(), NOW_S)
            assert result.ending is Ending.DONE
        assert cloud.calls == 1
        assert (await launch.launch(result.claim, NOW_S)).claim is result.claim

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (InsufficientCapacity("none", hint="-"), Ending.NO_CAPACITY),
        (NodeClassNotReady("no", hint="-"), Ending.CLASS_NOT_READY),
        (LaunchFailed("bad", reason="Quota"), Ending.FAILED),
    ],
)
def test_what_goes_wrong_decides_what_becomes_of_the_claim(error: ProviderError, ending: Ending) -> None:
    _, launch = launcher(error)
    result = asyncio.run(launch.launch(claim(), NOW_S))
    assert (result.ending, result.error) == (ending, error)
    found = get_condition(result.claim, "Launched")
    assert found is None if ending is not Ending.FAILED else found is not None and found["reason"] == "Quota"


def test_a_node_is_taken_over_with_labels_taints_finalizer_and_owner() -> None:
    kept = {"key": "kept", "effect": "NoSchedule", "timeAdded": "x"}
    old = node("n", labels={"own": "1"}, taints=[UNREGISTERED, kept])
    wanted = claim(
        annotations={"a": "1"}, labels={"team": "blue"}, taints=[{"key": "kept", "effect": "NoSchedule"}],
        startupTaints=[{"key": "starting", "effect": "NoExecute"}],
    )  # fmt: skip
    step = register(wanted, [old], NOW_S)
    assert step.node is not None
    metadata, spec = step.node["metadata"], step.node["spec"]
    assert metadata["labels"] == {
        "own": "1", "team": "blue", "karpenter.sh/nodepool": "default", "karpenter.sh/registered": "true",
    }  # fmt: skip
    assert metadata["finalizers"] == ["karpenter.sh/termination"]
    assert metadata["ownerReferences"][0]["uid"] == "uid-c"
    assert spec["taints"] == [
        kept, {"key": "starting", "effect": "NoExecute"},
    ]  # fmt: skip
    assert NodeClaim.of(step.claim).is_registered
    assert step.claim["status"]["nodeName"] == "n"
    assert not step.lacks_taint


def test_a_node_whose_taints_are_somebody_elses_business_keeps_them() -> None:
    wanted = claim(taints=[{"key": "mine", "effect": "NoSchedule"}])
    step = register(wanted, [node(labels={"karpenter.sh/do-not-sync-taints": "true"}, taints=[UNREGISTERED])], NOW_S)
    assert step.node is not None
    assert "taints" not in step.node["spec"]


def test_a_node_without_the_unregistered_taint_is_registered_and_told_of() -> None:
    step = register(claim(), [node()], NOW_S)
    assert step.lacks_taint
    assert NodeClaim.of(step.claim).is_registered
    assert not register(claim(), [node(labels={"karpenter.sh/registered": "true"})], NOW_S).lacks_taint


@pytest.mark.parametrize(
    ("nodes", "status", "reason"),
    [([], "Unknown", "NodeNotFound"), ([node("a"), node("b")], "False", "MultipleNodesFound")],
)
def test_without_exactly_one_node_nothing_is_registered(nodes: list[JsonObject], status: str, reason: str) -> None:
    step = register(claim(), nodes, NOW_S)
    found = get_condition(step.claim, "Registered")
    assert found is not None
    assert (found["status"], found["reason"], step.node) == (status, reason, None)


READY = condition("Ready")
BASE = NodeClaim.of(claim(
    startupTaints=[{"key": "starting", "effect": "NoExecute"}],
    resources={"requests": {"cpu": "1", "gpu": "1", "x": "0"}},
))  # fmt: skip


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "NodeNotFound"),
        (node(), "NodeNotReady"),
        (node("n", READY, taints=[{"key": "starting", "effect": "NoExecute"}]), "StartupTaintsExist"),
        (node("n", READY, taints=[UNREGISTERED]), "KnownEphemeralTaintsExist"),
        (node("n", READY, taints=[{"key": "readiness.k8s.io/x", "effect": "NoSchedule"}]), "KnownEphemeralTaintsExist"),
        (node("n", READY, capacity={"cpu": "4", "gpu": "0"}), "ResourceNotRegistered"),
        (node("n", READY, capacity={"cpu": "4", "gpu": "1"}), None),
    ],
)
def test_a_node_is_initialized_when_nothing_is_missing_any_more(found: JsonObject | None, reason: str | None) -> None:
    obstacle = why_not_initialized(BASE, found)
    assert (obstacle.reason if obstacle is not None else None) == reason


def test_initialization_waits_for_registration_and_labels_the_node() -> None:
    assert initialize(claim(), node("n", READY), NOW_S).node is None
    registered = CLAIM_CONDITIONS.with_true(claim(), "Registered", NOW_S)
    step = initialize(registered, node("n", READY, labels={"a": "b"}), NOW_S)
    assert step.node is not None
    assert step.node["metadata"]["labels"] == {"a": "b", "karpenter.sh/initialized": "true"}
    assert NodeClaim.of(step.claim).is_initialized
    assert initialize(step.claim, None, NOW_S).node is None


def test_a_claim_has_five_minutes_to_launch_and_fifteen_to_register() -> None:
    assert liveness(claim(created_s=-299), NOW_S) == Liveness(look_again_s=1.0)
    assert liveness(claim(created_s=-300), NOW_S) == Liveness(timed_out="launch_timeout")
    up = condition("Launched", since_s=-100)
    assert liveness(claim("c", up, created_s=-899), NOW_S) == Liveness(look_again_s=1.0)
    assert liveness(claim("c", up, created_s=-900), NOW_S) == Liveness(timed_out="registration_timeout")
    assert liveness(claim("c", up, condition("Registered"), created_s=-9999), NOW_S) == Liveness()
