"""``--nodes=MIN:MAX:NAME``: a group of nodes and how many there may be."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from holokube.base.errors import UsageError

_HINT = "Write --nodes=MIN:MAX:NAME, for example --nodes=0:100:workers."
# What the Go programs read as an integer; int() would also take spaces, underscores and digits of other scripts.
_INTEGER = re.compile(r"[+-]?[0-9]+")


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One group as the command line gives it."""

    min_size: int
    max_size: int
    name: str

    def __post_init__(self) -> None:
        if self.min_size < 0:
            raise UsageError(f"--nodes={self}: the minimum must not be below 0", hint=_HINT)
        if self.max_size < self.min_size:
            raise UsageError(f"--nodes={self}: the maximum must not be below the minimum", hint=_HINT)
        if not self.name:
            raise UsageError(f"--nodes={self}: the name must not be empty", hint=_HINT)

    @classmethod
    def parse(cls, text: str) -> NodeSpec:
        """Divided at the first two colons, so that a name may contain more of them."""
        parts = text.split(":", 2)
        if len(parts) != 3:
            raise UsageError(f"--nodes={text}: is not of the form MIN:MAX:NAME", hint=_HINT)
        sizes = []
        for what, part in zip(("minimum", "maximum"), parts, strict=False):
            if not _INTEGER.fullmatch(part):
                raise UsageError(f"--nodes={text}: the {what} {part!r} is not an integer", hint=_HINT)
            sizes.append(int(part))
        return cls(sizes[0], sizes[1], parts[2])

    def __str__(self) -> str:
        return f"{self.min_size}:{self.max_size}:{self.name}"


def parse_all(texts: Iterable[str]) -> list[NodeSpec]:
    """All ``--nodes`` of a command line; a group may be given once only."""
    specs: dict[str, NodeSpec] = {}
    for text in texts:
        spec = NodeSpec.parse(text)
        if spec.name in specs:
            raise UsageError(
                f"--nodes={text}: the group {spec.name!r} was given as {specs[spec.name]} already",
                hint="Give each group once.",
            )
        specs[spec.name] = spec
    return list(specs.values())
