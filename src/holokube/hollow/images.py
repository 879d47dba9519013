"""The images that a hollow node has pulled, as far as its status tells."""

from __future__ import annotations

from functools import lru_cache

from holokube.hollow.draws import stable_hex, stable_int
from holokube.kube.types import JsonObject

REPORTED_MAX = 50
"""A kubelet reports no more, whatever it has."""
_SMALLEST_BYTES = 5_000_000
_SPREAD_BYTES = 400_000_000


@lru_cache(maxsize=4096)
def image_id(image: str) -> str:
    """A made-up digest of an image, the same for the same name."""
    if "@" in image:
        return image
    slash, colon = image.rfind("/"), image.rfind(":")
    repository = image[:colon] if colon > slash else image
    return f"{repository}@sha256:{stable_hex(image, 64)}"


def image_bytes(image: str) -> int:
    """A made-up size, the same for the same name."""
    return _SMALLEST_BYTES + stable_int(f"{image}/size", _SPREAD_BYTES)


class ImageStore:
    """The images of one node; the one longest unused goes when there are too many."""

    __slots__ = ("_images",)

    def __init__(self) -> None:
        self._images: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._images)

    def add(self, image: str) -> None:
        """An image is pulled or used."""
        if not image:
            return
        self._images.pop(image, None)
        self._images[image] = None
        if len(self._images) > REPORTED_MAX:
            del self._images[next(iter(self._images))]

    def report(self) -> list[JsonObject]:
        """``status.images``: the largest first, digests before tags."""
        listed = [
            {"names": list(dict.fromkeys((image_id(image), image))), "sizeBytes": image_bytes(image)}
            for image in self._images
        ]
        return sorted(listed, key=lambda entry: (-int(str(entry["sizeBytes"])), str(entry["names"])))
