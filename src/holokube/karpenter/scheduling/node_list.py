"""All nodes of one moment, which know what has changed since the moments before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, filterfalse
from operator import attrgetter
from typing import Final, overload

from holokube.karpenter.scheduling.state_node import StateNode

_REMEMBERED: Final = 8
"""Moments that are looked back: who has not looked for longer looks at all nodes."""
_PART: Final = 32
_SERIAL: Final = attrgetter("serial")


class NodeList(Sequence[StateNode]):
    """Nodes in their order. One that has changed is another object.

    They are kept in parts, which moments share: from one to the next a few of many nodes are others.
    """

    __slots__ = ("_parts", "before", "changed", "gone")

    def __init__(self, nodes: Iterable[StateNode] = ()) -> None:
        listed = list(nodes)
        self._parts = [listed[place : place + _PART] for place in range(0, len(listed), _PART)]
        """None is empty, all but the last are full, and none is ever changed."""
        self.before: NodeList | None = None
        """The moment before."""
        self.changed: Sequence[StateNode] = ()
        """Those of this moment that were others in the one before, or were not there."""
        self.gone: Sequence[StateNode] = ()
        """Those of the moment before that are others in this one, or are not there any more."""

    def __len__(self) -> int:
        return _PART * (len(self._parts) - 1) + len(self._parts[-1]) if self._parts else 0

    def __iter__(self) -> Iterator[StateNode]:
        return chain.from_iterable(self._parts)

    @overload
    def __getitem__(self, place: int) -> StateNode: ...

    @overload
    def __getitem__(self, place: slice) -> list[StateNode]: ...

    def __getitem__(self, place: int | slice) -> StateNode | list[StateNode]:
        return [*self][place]

    def at(self, places: Iterable[int]) -> list[StateNode]:
        """Those at some places."""
        return [self._parts[place // _PART][place % _PART] for place in places]

    def with_changes(self, changes: Mapping[int, StateNode]) -> NodeList:
        """The next moment, for who knows who is at which place now; those that have come are behind all others."""
        later, gone = NodeList(), list[StateNode]()
        parts = later._parts = [*self._parts]
        own: dict[int, list[StateNode]] = {}
        for place in sorted(changes):
            number, within = divmod(place, _PART)
            part = own.get(number)
            if part is None:
                if number == len(parts):
                    parts.append([])
                part = own[number] = parts[number] = [*parts[number]]
            if within < len(part):
                gone.append(part[within])
                part[within] = changes[place]
            else:
                part.append(changes[place])
        return self._followed_by(later, [*changes.values()], gone)

    def followed_by(
        self, nodes: Iterable[StateNode], changed: Sequence[StateNode], gone: Sequence[StateNode]
    ) -> NodeList:
        """The next moment, for who knows what has changed."""
        return self._followed_by(NodeList(nodes), changed, gone)

    def _followed_by(self, later: NodeList, changed: Sequence[StateNode], gone: Sequence[StateNode]) -> NodeList:
        later.before, later.changed, later.gone = self, changed, gone
        last: NodeList | None = later
        for _ in range(_REMEMBERED):
            last = last.before if last is not None else None
        if last is not None:
            last.before = None
        return later

    def replaced_by(self, nodes: Sequence[StateNode]) -> NodeList:
        """The next moment if some may have come or gone: what that is, is found out once for all who look back."""
        known, present = set(self), set(nodes)
        return self.followed_by(
            nodes,
            list(filterfalse(known.__contains__, nodes)),
            list(filterfalse(present.__contains__, self)),
        )


def differences(
    nodes: Sequence[StateNode], seen: Sequence[StateNode] | None, known: Collection[StateNode]
) -> tuple[list[StateNode], list[StateNode]]:
    """Nodes that are new or others now, and those that are not there any more.

    ``seen`` is the sequence that was last looked at, and ``known`` has the nodes in it. If one followed the
    other it does not matter how many nodes there are.
    """
    found = since(nodes, seen)
    if found is not None:
        return found
    present = set(nodes)
    return list(filterfalse(known.__contains__, nodes)), list(filterfalse(present.__contains__, known))


def since(
    nodes: Sequence[StateNode], seen: Sequence[StateNode] | None
) -> tuple[list[StateNode], list[StateNode]] | None:
    """The same if one followed the other not long ago; else None."""
    steps: list[NodeList] = []
    moment = nodes if isinstance(nodes, NodeList) else None
    while moment is not None and moment is not seen:
        steps.append(moment)
        moment = moment.before
    if moment is None:
        return None
    if len(steps) == 1:
        return sorted(steps[0].changed, key=_SERIAL), list(steps[0].gone)
    changed: dict[StateNode, None] = {}
    gone: list[StateNode] = []
    for step in reversed(steps):
        for node in step.gone:
            if node in changed:
                # It came and went in between.
                del changed[node]
            else:
                gone.append(node)
        changed.update(dict.fromkeys(step.changed))
    return sorted(changed, key=_SERIAL), gone
