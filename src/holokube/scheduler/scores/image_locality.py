"""ImageLocality: better where large images of the pod are already."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from holokube.kube.types import JsonObject
from holokube.packing.arrays import IntArray
from holokube.scheduler.scores.profile import MAX_SCORE, ScoreProfile
from holokube.scheduler.scores.protocol import Question

_MIB: Final = 1024 * 1024
_LEAST_BYTES: Final = 23 * _MIB
_MOST_BYTES_PER_CONTAINER: Final = 1000 * _MIB


class ImageLocality:
    """See the module.

    An image counts with its size, times the share of nodes that have it, so that not all pods with one image
    gather where it happened to come first. If nodes report different sizes of an image, each counts its own;
    upstream takes the size that it saw first.
    """

    name = "ImageLocality"

    def weight(self, profile: ScoreProfile) -> int:
        """See :class:`Score`."""
        return profile.image_locality

    def points(self, question: Question) -> IntArray:
        """The scaled bytes between 23 MiB and 1000 MiB per container, of 100."""
        state, spec = question.state, question.pod.get("spec") or {}
        scaled = np.zeros(state.nodes.capacity, dtype=np.int64)
        nodes = len(state.node_names)
        for image in _images(spec):
            sizes = state.nodes.images.sizes(image)
            if sizes:
                spread = len(sizes) / nodes
                rows = np.fromiter(sizes, dtype=np.intp, count=len(sizes))
                amounts = np.fromiter(sizes.values(), dtype=np.float64, count=len(sizes))
                scaled[rows] += (amounts * spread).astype(np.int64)
        containers = len(spec.get("initContainers") or ()) + len(spec.get("containers") or ())
        most = _MOST_BYTES_PER_CONTAINER * containers
        bounded = np.minimum(np.maximum(scaled[question.rows], _LEAST_BYTES), most)
        points: IntArray = MAX_SCORE * (bounded - _LEAST_BYTES) // (most - _LEAST_BYTES)
        return points


def _images(spec: JsonObject) -> Iterator[str]:
    """The images of containers and image volumes; each use counts."""
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        yield image_with_tag(container.get("image") or "")
    for volume in spec.get("volumes") or ():
        if volume.get("image") is not None:
            yield image_with_tag(volume["image"].get("reference") or "")


def image_with_tag(image: str) -> str:
    """The name by which nodes know an image."""
    # A colon before the last slash belongs to the registry's port.
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"
