"""Carries out a scale-up: asks groups for machines, one after the other or all at once, and keeps the books."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.cluster_autoscaler.actuation.ports import StatusRecorder
from holokube.cluster_autoscaler.cloud.errors import AutoscalerError, ErrorKind, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.provider import ErrorClass, InstanceError, NodeGroup
from holokube.cluster_autoscaler.scale_up.balancing import Increase
from holokube.runtime.events import NORMAL, WARNING


class ScaleUpObserver(Protocol):
    """Whoever keeps the books."""

    def scaled_up(self, group_id: str, delta: int, now_s: float) -> None:
        """A group was asked for machines."""

    def scale_up_failed(self, group_id: str, delta: int, error: InstanceError, now_s: float) -> None:
        """A group was asked and refused."""


class Execution(NamedTuple):
    """How it went."""

    error: AutoscalerError | None = None
    failed: tuple[str, ...] = ()
    """The groups that refused."""


class ScaleUpExecutor:
    """Asks groups for machines."""

    def __init__(self, clock: Clock, status_event: StatusRecorder, observer: ScaleUpObserver, *,
                 parallel: bool = False) -> None:
        self._clock = clock
        self._status_event = status_event
        self._observer = observer
        self._parallel = parallel

    async def execute(self, increases: Sequence[Increase], groups: Mapping[str, NodeGroup], now_s: float, *,
                      atomic: bool = False) -> Execution:
        """Ask all groups. One after the other, the first refusal ends it; at once, all are asked.

        ``now_s`` is when the scale-up was decided: failures are booked at that time.
        """
        if not self._parallel:
            for increase in increases:
                error = await self._execute_one(increase, groups[increase.group_id], now_s, atomic)
                if error is not None:
                    return Execution(error, (increase.group_id,))
            return Execution()
        ids = [increase.group_id for increase in increases]
        if len(set(ids)) != len(ids):
            return Execution(AutoscalerError(f"a group would be scaled up twice at once: {', '.join(ids)}"), tuple(ids))
        errors = await asyncio.gather(*(
            self._execute_one(increase, groups[increase.group_id], now_s, atomic) for increase in increases
        ))
        failed = [(group_id, error) for group_id, error in zip(ids, errors, strict=True) if error is not None]
        if not failed:
            return Execution()
        return Execution(combine([error for _, error in failed]), tuple(group_id for group_id, _ in failed))

    async def _execute_one(self, increase: Increase, group: NodeGroup, now_s: float,
                           atomic: bool) -> AutoscalerError | None:
        group_id, delta = increase.group_id, increase.new_size - increase.current_size
        sizes = f"{increase.new_size} instead of {increase.current_size} (max: {increase.max_size})"
        self._status_event(NORMAL, "ScaledUpGroup", f"Scale-up: setting group {group_id} size to {sizes}")
        try:
            await _increase(group, delta, atomic)
        except HolokubeError as error:
            self._status_event(WARNING, "FailedToScaleUpGroup", f"Scale-up failed for group {group_id}: {error}")
            kind = error.kind if isinstance(error, AutoscalerError) else ErrorKind.CLOUD_PROVIDER
            told = AutoscalerError(f"failed to increase node group size: {error}", kind=kind, hint=error.hint)
            self._observer.scale_up_failed(
                group_id, delta, InstanceError(ErrorClass.OTHER, kind.value, told.message), now_s)
            return told
        self._observer.scaled_up(group_id, delta, self._clock.time())
        self._status_event(NORMAL, "ScaledUpGroup", f"Scale-up: group {group_id} size set to {sizes}")
        return None


async def _increase(group: NodeGroup, delta: int, atomic: bool) -> None:
    if atomic:
        try:
            await group.atomic_increase_size(delta)
        except NotImplementedByProvider:
            pass
        else:
            return
    await group.increase_size(delta)


def combine(errors: Sequence[AutoscalerError]) -> AutoscalerError:
    """One error out of several, the same whatever their order."""
    kinds = {error.kind for error in errors}
    if len(kinds) == 1 and len({error.message for error in errors}) == 1:
        return errors[0]
    first, *others = sorted(errors, key=lambda error: (error.kind.value, error.message))
    told = ", ".join(
        '"' + (f"[{error.kind.value}] " if len(kinds) > 1 else "") + error.message.replace('"', '\\"') + '"'
        for error in others
    )
    return AutoscalerError(f"{first.message} ...and other errors: [{told}]", kind=first.kind, hint=first.hint)
