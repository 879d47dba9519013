"""A pod on a node, as the engine remembers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from holokube.kube.resources import ResourceVector
from holokube.kube.types import JsonObject
from holokube.packing.podclass import PodClass


@dataclass(slots=True, eq=False)
class PlacedPod:
    """A pod that is on a node, or will be once its node is known."""

    key: str
    """``namespace/name``, or what ``place`` made up."""
    cls: PodClass
    node_name: str
    namespace: str
    labels: Mapping[str, str]
    requests: ResourceVector
    requests_nonzero: tuple[int, int]
    is_terminating: bool
    pod: JsonObject | None
    """The object, unless the pod exists only as a placement of its class."""
    number: int = 0
    """Pods that came later have larger numbers, whatever was undone in between."""
    count: int = 1
    """How many pods of the class these are; more than one only for what ``place_many`` made."""
