"""The journal skips what it knows already, and writes what writing everything down would write."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.actuation.results import NodeDeleteResult, ScaledDownNode
from holokube.cluster_autoscaler.cloud.errors import AutoscalerError
from holokube.cluster_autoscaler.loop.journaling import JournalKeeper
from holokube.cluster_autoscaler.loop.report import TurnReport
from holokube.cluster_autoscaler.scale_down.reasons import UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import UnneededNode, Unremovable
from holokube.runtime.journal import Journal

NODES = [{"metadata": {"name": f"n{i}"}} for i in range(4)]
REASONS = [UnremovableReason.NOT_UNDERUTILIZED, UnremovableReason.RECENTLY_UNREMOVABLE]
KNOWN = {(i, k): Unremovable(NODES[i], REASONS[k]) for i in range(4) for k in range(2)}
NODE = st.integers(0, 3)
TURNS = st.lists(
    st.tuples(
        st.dictionaries(NODE, st.tuples(st.integers(0, 1), st.booleans())), st.sets(NODE), st.sets(NODE, max_size=1),
        st.sets(NODE, max_size=1),
    ),
    min_size=2, max_size=8,
)  # fmt: skip


def notes(now_s: float, report: TurnReport) -> list[tuple[str, str]]:
    """What a turn decides about nodes, in order."""
    down = report.scale_down
    found = [(gone.node["metadata"]["name"], "removed") for gone in down.deleting]
    found += [(name, "removal failed") for name, result in down.results.items() if result.error is not None]
    found += [(stays.name, f"stays: {stays.reason}") for stays in down.unremovable]
    settled = {name for name, what in found if what != "removal failed"}
    found += [(name, "unneeded") for entry in down.unneeded if (name := entry.node["metadata"]["name"]) not in settled]
    return found


@settings(max_examples=300, deadline=None)
@given(TURNS)
def test_what_is_known_already_is_written_once(turns: list[Any]) -> None:
    journal = Journal()
    keeper = JournalKeeper(journal)
    known: dict[str, str] = {}
    expected: list[tuple[str, str]] = []
    for now_s, (staying, unneeded, deleting, failed) in enumerate(turns):
        report = TurnReport(float(now_s))
        down = report.scale_down
        # Verdicts are the same objects from turn to turn, or equal ones.
        down.unremovable = [
            KNOWN[i, k] if is_same else Unremovable(NODES[i], REASONS[k]) for i, (k, is_same) in staying.items()]
        down.unneeded = [UnneededNode(NODES[i], 0.0, 1.0) for i in sorted(unneeded)]
        down.deleting = tuple(ScaledDownNode(NODES[i], "g", (), True) for i in deleting)
        down.results = {f"n{i}": NodeDeleteResult(error=AutoscalerError("no")) for i in failed}
        keeper.keep(report)
        seen = set()
        for name, decision in notes(float(now_s), report):
            seen.add(name)
            if known.get(name) != decision:
                known[name] = decision
                expected.append((name, decision))
        known = {name: decision for name, decision in known.items() if name in seen}
    assert [(entry.subject, entry.decision) for entry in journal] == expected
