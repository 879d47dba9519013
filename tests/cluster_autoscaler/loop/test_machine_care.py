"""Machines and sizes that are put right."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

import pytest

from holokube.base.clock import VirtualClock
from holokube.cluster_autoscaler.cloud.errors import CloudError
from holokube.cluster_autoscaler.cloud.provider import GroupOptions, Instance
from holokube.cluster_autoscaler.cluster_state.registry import Revert
from holokube.cluster_autoscaler.loop.instances import InstanceCache
from holokube.cluster_autoscaler.loop.machine_care import MachineCare
from holokube.cluster_autoscaler.loop.metrics import AutoscalerMetrics
from holokube.cluster_autoscaler.options import AutoscalerOptions
from tests.cluster_autoscaler.cluster_state.world import World, failed, group, machine, node
from tests.cluster_autoscaler.loop.fakes import FakeGroup, Told

T = TypeVar("T")


class Ward:
    """A group in trouble, and who cares for it."""

    def __init__(self, owner: FakeGroup, **options: Any) -> None:
        self.world, self.owner, self.told = World(), owner, Told()
        clock = VirtualClock()
        made = AutoscalerOptions(**options)
        self.metrics = AutoscalerMetrics(clock, made)
        self.care = MachineCare(self.world.registry, InstanceCache(clock), made, self.told, self.metrics)
        self.owners = {owner.id: owner}

    def see(self, *nodes: str, after_s: float = 0.0) -> None:
        own = self.owner.own_options or GroupOptions()
        view = group("g", self.owner.target, self.owner.machines, min_size=self.owner.min_size, options=own)
        self.world.see([node(name) for name in nodes], [view], after_s=after_s)

    def remove_old(self) -> list[str]:
        return run(self.care.remove_long_unregistered(self.owners, self.world.now_s))


def run(work: Awaitable[T]) -> T:
    async def main() -> T:
        return await work

    return asyncio.run(main())


def lost(count: int, **more: Any) -> FakeGroup:
    return FakeGroup("g", target=count, machines=[machine(f"m{i}") for i in range(count)], **more)


def test_machines_that_are_missed_for_too_long_are_deleted() -> None:
    ward = Ward(lost(2))
    ward.see("m0")
    ward.see("m0", after_s=900)
    assert not ward.remove_old(), "exactly fifteen minutes are not too long"
    ward.see("m0", after_s=1)
    assert ward.remove_old() == ["cloud://m1"]
    assert ward.owner.calls == [("delete", ["cloud://m1"])]
    assert ward.told.events == [("Normal", "DeleteUnregistered", "Removed unregistered node cloud://m1")]


def test_the_group_keeps_its_minimum_unless_forced() -> None:
    ward = Ward(lost(3, min_size=2))
    ward.see()
    ward.see(after_s=901)
    assert ward.remove_old() == ["cloud://m0"], "one may go, the others would break the minimum"
    ward.owner.target = 2
    assert not ward.remove_old()
    forced = Ward(lost(3, min_size=3), force_delete_unregistered_nodes=True)
    forced.see()
    forced.see(after_s=901)
    assert len(forced.remove_old()) == 3 and forced.owner.calls[0][0] == "force"


def test_a_provider_that_cannot_force_deletes() -> None:
    ward = Ward(lost(1, can_force=False), force_delete_unregistered_nodes=True)
    ward.see()
    ward.see(after_s=901)
    assert ward.remove_old() == ["cloud://m0"] and ward.owner.calls == [("delete", ["cloud://m0"])]


def test_a_group_that_is_empty_or_full_loses_all_machines_or_none() -> None:
    for tolerant, expected in ((False, 3), (True, 0)):
        options = GroupOptions(zero_or_max_node_scaling=True, allow_non_atomic_scale_up_to_max=tolerant)
        ward = Ward(lost(3, own_options=options))
        ward.see("m0", "m1")
        ward.see("m0", "m1", after_s=901)
        assert len(ward.remove_old()) == expected


def test_a_refusal_is_told_for_every_machine() -> None:
    ward = Ward(lost(2, refusal="not today"))
    ward.see()
    ward.see(after_s=901)
    assert not ward.remove_old()
    assert ward.told.reasons == ["DeleteUnregisteredFailed"] * 2


def test_machines_that_could_not_be_made_are_deleted_in_every_turn() -> None:
    ward = Ward(FakeGroup("g", target=2, machines=[failed("a"), machine("b")]))
    ward.see("b")
    assert run(ward.care.delete_failed(ward.owners)) == ["cloud://a"]
    ward.owner.refusal = "no"
    assert not run(ward.care.delete_failed(ward.owners))
    forced = Ward(FakeGroup("g", target=1, machines=[failed("a")]), force_delete_failed_nodes=True)
    forced.see()
    run(forced.care.delete_failed(forced.owners))
    assert forced.owner.calls == [("force", ["cloud://a"])]
    assert not run(forced.care.delete_failed({})), "the group is gone"


def test_a_target_that_is_too_high_for_too_long_is_lowered() -> None:
    ward = Ward(FakeGroup("g", target=3))
    ward.see("a")
    ward.see("a", after_s=900)
    assert not run(ward.care.fix_sizes(ward.owners, ward.world.now_s))
    ward.see("a", after_s=1)
    assert run(ward.care.fix_sizes(ward.owners, ward.world.now_s)) == {"g": -2} and ward.owner.target == 1
    ward.owner.refusal = "no"
    with pytest.raises(CloudError):
        run(ward.care.fix_sizes(ward.owners, ward.world.now_s))


def test_more_nodes_than_asked_for_are_left_alone() -> None:
    ward = Ward(FakeGroup("g", target=1))
    ward.see("a", "b")
    ward.see("a", "b", after_s=901)
    assert not run(ward.care.fix_sizes(ward.owners, ward.world.now_s)) and not ward.owner.calls


def test_what_did_not_come_is_taken_back_and_a_refusal_told() -> None:
    ward = Ward(FakeGroup("g", target=3))
    run(ward.care.revert([Revert("g", -2), Revert("gone", -1)], ward.owners))
    assert ward.owner.target == 1
    ward.owner.refusal = "no"
    run(ward.care.revert([Revert("g", -1)], ward.owners))
    assert ward.told.events == [
        ("Warning", "FailedToRevertScaleUp", "Failed to decrease target size for group g after scale-up timeout: no")]


def test_the_machines_of_a_group_are_asked_for_seldom() -> None:
    clock = VirtualClock()
    cache, owner = InstanceCache(clock), lost(1)

    async def main() -> int:
        for _ in range(3):
            assert await cache.get([owner]) == {"g": (Instance("cloud://m0", owner.machines[0].state),)}
        cache.forget("g")
        await cache.get([owner])
        clock.advance(119)
        await cache.get([owner])
        clock.advance(1)
        await cache.get([owner])
        return len(owner.calls)

    assert asyncio.run(main()) == 3, "at first, after it was thrown away, and after two minutes"
