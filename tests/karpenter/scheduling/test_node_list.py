"""Nodes from moment to moment: what moments share must never show."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.karpenter.scheduling.node_list import NodeList, since
from holokube.karpenter.scheduling.state_node import StateNode


def node(serial: int) -> StateNode:
    return StateNode({"metadata": {"name": f"n{serial}"}}, serial=serial)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 100),
    st.lists(st.tuples(st.sets(st.integers(0, 200), max_size=5), st.integers(0, 40)), min_size=1, max_size=6),
)
def test_moments_are_as_lists_that_were_changed(
    count: int, steps: list[tuple[set[int], int]]
) -> None:
    listed = [node(serial) for serial in range(count)]
    moments = [(NodeList(listed), listed)]
    for places, come in steps:
        before, known = moments[-1]
        changes = {place: node(place) for place in places if place < len(known)}
        changes |= {len(known) + one: node(len(known) + one) for one in range(come)}
        listed = [changes.get(place, one) for place, one in enumerate(known)]
        listed += [changes[len(known) + one] for one in range(come)]
        after = before.with_changes(changes)
        moments.append((after, listed))
        changed, gone = since(after, before) or ([], [])
        assert changed == [changes[place] for place in sorted(changes)]
        assert gone == [known[place] for place in sorted(changes) if place < len(known)]
    for moment, expected in moments:
        assert list(moment) == expected
        assert len(moment) == len(expected)
        assert moment.at(range(len(expected))) == expected
        assert moment[:3] == expected[:3]
        assert all(moment[place] is expected[place] for place in range(-1, 2) if expected and place < len(expected))
