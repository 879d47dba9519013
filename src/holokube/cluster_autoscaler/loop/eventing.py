"""Events that are told to users and kept for the turn's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holokube.cluster_autoscaler.actuation.ports import Recorder
from holokube.cluster_autoscaler.loop.report import ScaleUpReport, TurnEvent
from holokube.cluster_autoscaler.scale_up.result import ScaleUpResult
from holokube.cluster_autoscaler.scale_up.verdicts import triggered_message
from holokube.runtime.events import NORMAL


class KeepingRecorder:
    """A recorder that also puts what it is told into a list: that of the turn under way."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.kept: list[TurnEvent] = []

    def event(self, obj: Mapping[str, Any], type: str, reason: str, message: str, /) -> None:
        """Something happened to ``obj``."""
        metadata = obj.get("metadata") or obj
        space, name = metadata.get("namespace") or "", metadata.get("name") or ""
        key = f"{space}/{name}" if space else name
        self.kept.append(TurnEvent(str(obj.get("kind") or ""), key, type, reason, message))
        self._recorder.event(obj, type, reason, message)


def tell_pods(recorder: Recorder, report: ScaleUpReport, existing: Sequence[str]) -> None:
    """Tell each pod what the scale-up meant to it.

    After an attempt, successful or not, pods that were not helped are not told: the next turn may look different.
    """
    if report.result not in (ScaleUpResult.SUCCESSFUL, ScaleUpResult.ERROR):
        shown = frozenset(existing).intersection(report.considered)
        for unhelped in report.verdicts.remain_unschedulable:
            message = unhelped.message(report.result, shown)
            for pod in unhelped.pods:
                recorder.event(pod, NORMAL, "NotTriggerScaleUp", message)
    if report.increases and report.verdicts.triggered:
        message = triggered_message(report.increases)
        for pod in report.verdicts.triggered:
            recorder.event(pod, NORMAL, "TriggeredScaleUp", message)
