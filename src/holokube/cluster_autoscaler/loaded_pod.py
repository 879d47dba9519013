"""A pod that is on a node in truth, as the snapshot remembers it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.cluster_autoscaler.pods.kinds import PodFacts
from holokube.cluster_autoscaler.pods.waiting import PodPlace
from holokube.kube.types import JsonObject
from holokube.packing import PlacedPod


class LoadedPod:
    """What was loaded of a pod."""

    __slots__ = ("facts", "is_alone", "place", "placed")

    def __init__(self, place: PodPlace, placed: PlacedPod, facts: PodFacts, *, is_alone: bool = False) -> None:
        self.place, self.placed, self.facts = place, placed, facts
        self.is_alone = is_alone
        """Whether there may be no other that takes the same."""


def node_of(pod: JsonObject, status: Mapping[str, Any]) -> str:
    """The node on which a pod with that status takes room; empty if there is none."""
    return pod["spec"].get("nodeName") or status.get("nominatedNodeName") or ""
