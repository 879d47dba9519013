"""The decision journal."""

from __future__ import annotations

import json

from holokube.runtime.journal import Journal


def test_an_entry_is_a_line_of_json() -> None:
    lines: list[str] = []
    journal = Journal(write=lines.append)
    journal.note(1_767_225_600.5, "node", "n1", "stays", ["BlockedByPod", "default/p"], utilization=0.25)
    assert json.loads(lines[0]) == {
        "time": "2026-01-01T00:00:00.500000Z", "kind": "node", "subject": "n1", "decision": "stays",
        "reasons": ["BlockedByPod", "default/p"], "utilization": 0.25,
    }  # fmt: skip


def test_only_the_last_entries_are_kept() -> None:
    journal = Journal(entries_max=2)
    for name in "abc":
        journal.note(0.0, "node", name, "stays")
    assert [entry.subject for entry in journal] == ["b", "c"] and len(journal) == 2
    assert [entry.decision for entry in journal.about("c")] == ["stays"]


def test_a_subscriber_is_told_of_every_entry_until_it_leaves() -> None:
    journal = Journal()
    journal.note(0.0, "node", "before", "stays")
    told: list[str] = []
    end = journal.subscribe(lambda entry: told.append(entry.subject))
    journal.note(1.0, "node", "a", "stays")
    end()
    end()
    journal.note(2.0, "node", "b", "stays")
    assert told == ["a"]
