"""All nodes of one moment, which know what has changed since the moments before."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import filterfalse
from operator import attrgetter
from typing import Final

from holokube.karpenter.scheduling.state_node import StateNode

_REMEMBERED: Final = 8
"""Moments that are looked back: who has not looked for longer looks at all nodes."""
_SERIAL: Final = attrgetter("serial")


class NodeList(tuple[StateNode, ...]):
    """Nodes in their order. One that has changed is another object."""

    before: NodeList | None = None
    """The moment before."""
    changed: Sequence[StateNode] = ()
    """Those of this moment that were others in the one before, or were not there."""
    gone: Sequence[StateNode] = ()
    """Those of the moment before that are others in this one, or are not there any more."""

    def followed_by(
        self, nodes: Iterable[StateNode], changed: Sequence[StateNode], gone: Sequence[StateNode]
    ) -> NodeList:
        """The next moment, for who knows what has changed."""
        later = NodeList(nodes)
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
