"""What the actuator needs from the rest of the autoscaler, and nothing more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from holokube.cluster_autoscaler.cloud.errors import ErrorKind
from holokube.kube.types import JsonObject


class Recorder(Protocol):
    """Tells users what happens to an object; ``runtime.events.EventRecorder`` is one."""

    def event(self, obj: Mapping[str, Any], type: str, reason: str, message: str, /) -> None:
        """Something happened to ``obj``."""


class StatusRecorder(Protocol):
    """Tells users what happens to the cluster as a whole: events of the status ConfigMap."""

    def __call__(self, type: str, reason: str, message: str, /) -> None:
        """Something happened."""


class DeletionObserver(Protocol):
    """Whoever keeps the books: the cluster state and the metrics."""

    def node_deleted(self, group_id: str, node: JsonObject, *, drain: bool, now_s: float) -> None:
        """A machine is on its way out."""

    def deletion_failed(self, group_id: str, kind: ErrorKind, now_s: float) -> None:
        """The provider refused to delete nodes of a group."""

    def pod_evicted(self, *, succeeded: bool) -> None:
        """A pod that had to go was evicted, or could not be."""

    def deletions_pending(self, count: int) -> None:
        """So many nodes wait for the rest of their group, at the start of a scale-down."""
