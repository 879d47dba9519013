"""Sharing an increase among similar groups, so that they come out as even as their limits allow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from holokube.cluster_autoscaler.cloud.errors import AutoscalerError, ErrorKind
from holokube.cluster_autoscaler.groups import GroupView


@dataclass(frozen=True, slots=True)
class Increase:
    """A group that gets more nodes."""

    group_id: str
    current_size: int
    new_size: int
    max_size: int

    @property
    def delta(self) -> int:
        """How many more."""
        return self.new_size - self.current_size

    def __str__(self) -> str:
        return f"{{{self.group_id} {self.current_size}->{self.new_size} (max: {self.max_size})}}"


def describe(increases: Sequence[Increase]) -> str:
    """Several increases as messages show them."""
    return "[" + " ".join(str(increase) for increase in increases) + "]"


def balance(groups: Sequence[GroupView], nodes: int) -> list[Increase]:
    """Hand out nodes one by one to the smallest group that has room; groups that get none are left out.

    Never more than there is room for.
    """
    if not groups:
        raise AutoscalerError("an increase needs at least one group to go to")
    shares: list[Increase] = []
    room = 0
    for group in groups:
        if group.target_size is None:
            raise AutoscalerError(
                f'node group "{group.id}" does not tell its size',
                kind=ErrorKind.CLOUD_PROVIDER, hint="Look at the log of the cloud provider.",
            )  # fmt: skip
        if group.target_size != group.max_size:
            room += max(0, group.max_size - group.target_size)
            shares.append(Increase(group.id, group.target_size, group.target_size, group.max_size))
    shares.sort(key=lambda share: share.current_size)
    shares = _hand_out(shares, min(nodes, room))
    return [share for share in shares if share.new_size != share.current_size]


def _hand_out(shares: list[Increase], nodes: int) -> list[Increase]:
    """Upstream's order of handing out, which also is the order in which groups are enlarged.

    Groups before ``first`` are full. From ``first`` to ``current`` all have the same size, behind they are in order of
    size, so the next node goes to ``current`` or, when that has become larger than its neighbour, to the neighbour.
    """
    sizes = [share.new_size for share in shares]
    order = list(range(len(shares)))
    first = current = 0
    while nodes > 0:
        chosen = order[current]
        if sizes[chosen] < shares[chosen].max_size:
            sizes[chosen] += 1
            nodes -= 1
        else:
            order[first], order[current] = order[current], order[first]
            first += 1
        # Upstream looks at the place, not at the group: after an exchange it holds another one.
        here = order[current]
        if current < len(order) - 1 and sizes[here] > sizes[order[current + 1]]:
            current += 1
        else:
            current = first
    return [replace(shares[i], new_size=sizes[i]) for i in order]
