"""One way to enlarge the cluster: so many nodes of a group for these pods."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from holokube.cluster_autoscaler.cloud.provider import NodeInfo
from holokube.kube.types import JsonObject


class Batch(NamedTuple):
    """Pods of one option that are alike: what holds for the exemplar holds for each of them."""

    exemplar: JsonObject
    pods: int


@dataclass(frozen=True, slots=True)
class Option:
    """What the estimator offers for one group."""

    group_id: str
    node_count: int
    pods: tuple[JsonObject, ...] = field(repr=False)
    node: NodeInfo = field(repr=False)
    """What each of the new nodes would look like."""
    similar: tuple[str, ...] = ()
    """Groups that the increase may be shared with."""
    debug: str = ""
    """What expanders have to say about it, for logs."""
    kinds: tuple[Batch, ...] = field(default=(), repr=False)
    """The pods by kind, in their order; empty if nobody counted."""
    exists: bool = True
    """Whether the cloud has the group already."""

    @property
    def batches(self) -> tuple[Batch, ...]:
        """The pods by kind, each by itself if nobody counted."""
        return self.kinds or tuple(Batch(pod, 1) for pod in self.pods)
