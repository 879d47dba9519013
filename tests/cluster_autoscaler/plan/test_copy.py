from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.errors import UsageError
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.resources import PODS
from holokube.cluster_autoscaler.plan.copy import ClusterCopy, cluster_copy
from holokube.kube.errors import NotFound, TooManyRequests
from holokube.kube.types import JsonObject
from tests.builders import budget
from tests.cluster_autoscaler.plan.snapshots import node, pods, replica_set


def _on_copy(
    check: Callable[[ClusterCopy], Awaitable[None]], *objects: JsonObject, keeps_budgets: bool = True,
    recreates: bool = False,
) -> None:
    async def main(clock: VirtualClock) -> None:
        async with cluster_copy(
            clock, Rng(0), [node("a"), *objects], keeps_budgets=keeps_budgets, recreates=recreates
        ) as copy:
            await check(copy)

    run_virtual(main)


def test_an_evicted_pod_is_gone_at_once_and_written_down() -> None:
    async def check(copy: ClusterCopy) -> None:
        await copy.client.evict("default", "w-a-0", grace_s=30)
        with pytest.raises(NotFound):
            await copy.client.get(PODS, "w-a-0", "default")
        assert copy.evicted == ["default/w-a-0"]

    _on_copy(check, *pods("w", 1, on="a"))


def test_a_budget_is_kept_or_not_as_asked_for() -> None:
    async def refused(copy: ClusterCopy) -> None:
        with pytest.raises(TooManyRequests):
            await copy.client.evict("default", "w-a-0")
        assert copy.evicted == []

    async def granted(copy: ClusterCopy) -> None:
        await copy.client.evict("default", "w-a-0")
        assert copy.evicted == ["default/w-a-0"]

    objects = [*pods("w", 1, on="a"), budget("b", "w", allowed=0)]
    _on_copy(refused, *objects)
    _on_copy(granted, *objects, keeps_budgets=False)


def test_the_pod_of_a_controller_comes_back_and_waits_for_a_place() -> None:
    async def check(copy: ClusterCopy) -> None:
        await copy.client.evict("default", "w-a-0")
        (found,) = (await copy.client.list(PODS)).items
        assert "nodeName" not in found["spec"]
        assert found["metadata"]["ownerReferences"][0]["name"] == "w"
        (condition,) = found["status"]["conditions"]
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")

    _on_copy(check, replica_set("w", 1), *pods("w", 1, on="a"), recreates=True)


def test_a_pod_of_nobody_does_not_come_back() -> None:
    async def check(copy: ClusterCopy) -> None:
        await copy.client.evict("default", "w-a-0")
        assert (await copy.client.list(PODS)).items == []

    bare = pods("w", 1, on="a")
    bare[0]["metadata"]["ownerReferences"] = []
    _on_copy(check, *bare, recreates=True)


def test_a_pod_that_is_not_there_cannot_be_evicted() -> None:
    async def check(copy: ClusterCopy) -> None:
        with pytest.raises(NotFound):
            await copy.client.evict("default", "nobody")

    _on_copy(check)


def test_objects_that_cannot_be_copied_are_an_error_that_names_the_first() -> None:
    async def check(copy: ClusterCopy) -> None:
        raise AssertionError("there is no copy")

    bad = pods("w", 1)[0]
    bad["spec"]["containers"] = []
    with pytest.raises(UsageError, match="1 objects cannot be read; the first is Pod default/w-p-0"):
        _on_copy(check, bad)
