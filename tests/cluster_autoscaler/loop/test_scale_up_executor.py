"""Asking groups for machines."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from holokube.base.clock import VirtualClock
from holokube.cluster_autoscaler.cloud.errors import AutoscalerError, ErrorKind
from holokube.cluster_autoscaler.cloud.provider import InstanceError
from holokube.cluster_autoscaler.loop.scale_up_executor import Execution, ScaleUpExecutor, combine
from holokube.cluster_autoscaler.scale_up.balancing import Increase
from tests.cluster_autoscaler.loop.fakes import FakeGroup, Told


@dataclass
class Ledger:
    done: list[tuple[str, int, float]] = field(default_factory=list)
    failed: list[tuple[str, int, str, float]] = field(default_factory=list)

    def scaled_up(self, group_id: str, delta: int, now_s: float) -> None:
        self.done.append((group_id, delta, now_s))

    def scale_up_failed(self, group_id: str, delta: int, error: InstanceError, now_s: float) -> None:
        self.failed.append((group_id, delta, error.code, now_s))


def execute(
    *groups: FakeGroup, parallel: bool = False, deltas: int = 2, atomic: bool = False
) -> tuple[Execution, Told, Ledger]:
    told, ledger, clock = Told(), Ledger(), VirtualClock()
    executor = ScaleUpExecutor(clock, told, ledger, parallel=parallel)
    increases = [Increase(group.id, group.target, group.target + deltas, group.max_size) for group in groups]
    done = asyncio.run(executor.execute(increases, {group.id: group for group in groups}, 5.0, atomic=atomic))
    return done, told, ledger


def test_an_increase_is_told_before_and_after_and_booked_when_it_happened() -> None:
    group = FakeGroup("a", target=1)
    done, told, ledger = execute(group)
    assert done == Execution() and group.target == 3
    assert told.events == [
        ("Normal", "ScaledUpGroup", "Scale-up: setting group a size to 3 instead of 1 (max: 10)"),
        ("Normal", "ScaledUpGroup", "Scale-up: group a size set to 3 instead of 1 (max: 10)"),
    ]
    assert ledger.done == [("a", 2, VirtualClock().time())] and not ledger.failed


def test_one_after_the_other_the_first_refusal_ends_it() -> None:
    bad, never_asked = FakeGroup("bad", refusal="no"), FakeGroup("c")
    done, told, ledger = execute(FakeGroup("a"), bad, never_asked)
    assert done.failed == ("bad",) and done.error is not None
    assert done.error.message == "failed to increase node group size: no"
    assert done.error.kind is ErrorKind.CLOUD_PROVIDER
    assert told.events[-1] == ("Warning", "FailedToScaleUpGroup", "Scale-up failed for group bad: no")
    assert ledger.failed == [("bad", 2, "cloudProviderError", 5.0)], "booked at the time of the decision"
    assert not never_asked.calls


def test_all_at_once_everybody_is_asked() -> None:
    groups = [FakeGroup("a", refusal="x"), FakeGroup("b"), FakeGroup("c", refusal="y")]
    done, _, ledger = execute(*groups, parallel=True)
    assert done.failed == ("a", "c") and groups[1].target == 2
    assert done.error is not None and done.error.message == (
        'failed to increase node group size: x ...and other errors: ["failed to increase node group size: y"]')
    assert len(ledger.failed) == 2


def test_all_at_once_no_group_is_asked_twice() -> None:
    group = FakeGroup("a")
    done, _, _ = execute(group, group, parallel=True)
    assert done.error is not None and not group.calls


def test_a_provider_that_cannot_do_all_or_nothing_does_what_it_can() -> None:
    group = FakeGroup("a")
    execute(group, atomic=True)
    assert group.calls == [("increase", 2)]


def test_errors_are_combined_the_same_way_whatever_their_order() -> None:
    one, two = AutoscalerError("a", kind=ErrorKind.TRANSIENT), AutoscalerError("b", kind=ErrorKind.API_CALL)
    assert combine([one, two]).message == combine([two, one]).message == 'b ...and other errors: ["[transientError] a"]'
    assert combine([one, AutoscalerError("a", kind=ErrorKind.TRANSIENT)]) is one
