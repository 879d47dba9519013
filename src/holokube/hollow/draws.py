"""Random values that belong to an object rather than to the order of events.

A draw is a hash of the seed, the object and the purpose. The third restart of a container gets the same back-off
jitter whether its watch event came early or late, and a second process that takes the node over draws the same.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable

Draw = Callable[[str], float]
"""``draw("uid/purpose")`` is a float in [0, 1), always the same for the same text."""

_SCALE = 1.0 / (1 << 53)


class KeyedDraws:
    """The draws of one seed; callable as a ``Draw``."""

    __slots__ = ("_key",)

    def __init__(self, seed: int | str) -> None:
        self._key = hashlib.blake2b(str(seed).encode(), digest_size=32, person=b"hollow draws").digest()

    def __call__(self, text: str) -> float:
        digest = hashlib.blake2b(text.encode(), digest_size=8, key=self._key).digest()
        return (int.from_bytes(digest, "big") >> 11) * _SCALE


def stable_hex(text: str, digits: int) -> str:
    """Hexadecimal digits that depend on the text alone: container ids, image digests, boot ids."""
    return hashlib.blake2b(text.encode(), digest_size=(digits + 1) // 2).hexdigest()[:digits]


def stable_uuid(text: str) -> str:
    """A UUID-shaped text that depends on the given text alone."""
    h = stable_hex(text, 32)
    return f"{h[:8]}-{h[8:12]}-4{h[13:16]}-a{h[17:20]}-{h[20:]}"


def stable_int(text: str, below: int) -> int:
    """An integer in [0, below) that depends on the text alone."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") % below


def exponential(u: float, mean: float) -> float:
    """The inverse of the exponential distribution; rounded to a millisecond, where C libraries agree."""
    return round(-math.log1p(-u) * mean, 3)
