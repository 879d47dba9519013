"""Events that are told to users and kept for the turn's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from holokube.cluster_autoscaler.actuation.ports import Recorder
from holokube.cluster_autoscaler.loop.report import ScaleUpReport, TurnEvent
from holokube.cluster_autoscaler.scale_up.result import ScaleUpResult
from holokube.cluster_autoscaler.scale_up.verdicts import triggered_message
from holokube.kube.types import JsonObject
from holokube.runtime.events import NORMAL


class CrowdRecorder(Recorder, Protocol):
    """A recorder that can also be told of many objects at once; ``runtime.events.EventRecorder`` is one."""

    def tell_each(self, told: Sequence[tuple[Mapping[str, Any], str]], type: str, reason: str, /) -> None:
        """As ``event`` for each object and message, in order."""


class KeepingRecorder:
    """A recorder that also puts what it is told into a list: that of the turn under way."""

    def __init__(self, recorder: CrowdRecorder) -> None:
        self._recorder = recorder
        self.kept: list[TurnEvent] = []

    def event(self, obj: Mapping[str, Any], type: str, reason: str, message: str, /) -> None:
        """Something happened to ``obj``."""
        self.kept.append(TurnEvent(obj, type, reason, message))
        self._recorder.event(obj, type, reason, message)

    def tell_each(self, told: Sequence[tuple[Mapping[str, Any], str]], type: str, reason: str, /) -> None:
        """Something happened to each of these objects."""
        self.kept.extend([TurnEvent(obj, type, reason, message) for obj, message in told])
        self._recorder.tell_each(told, type, reason)


def tell_pods(recorder: CrowdRecorder, report: ScaleUpReport, existing: Sequence[str]) -> None:
    """Tell each pod what the scale-up meant to it.

    After an attempt, successful or not, pods that were not helped are not told: the next turn may look different.
    """
    if report.result not in (ScaleUpResult.SUCCESSFUL, ScaleUpResult.ERROR):
        shown = frozenset(existing).intersection(report.considered)
        told: list[tuple[JsonObject, str]] = []
        for unhelped in report.verdicts.remain_unschedulable:
            message = unhelped.message(report.result, shown)
            told.extend((pod, message) for pod in unhelped.pods)
        recorder.tell_each(told, NORMAL, "NotTriggerScaleUp")
    if report.increases and report.verdicts.triggered:
        message = triggered_message(report.increases)
        recorder.tell_each([(pod, message) for pod in report.verdicts.triggered], NORMAL, "TriggeredScaleUp")
