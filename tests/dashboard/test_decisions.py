"""Decisions in lines that people can follow."""

from __future__ import annotations

from holokube.dashboard.decisions import REASONS_SHOWN, SUBJECTS_SHOWN, TEXT_MAX, DecisionLog


def test_what_a_turn_decides_alike_is_one_line() -> None:
    log = DecisionLog()
    for number in range(100):
        log.note(5.0, "node", f"n{number}", "stays: BlockedByPod", [f"pod {number} may not move"])
    log.note(6.0, "node", "n0", "stays: BlockedByPod")
    first, second = log.lines()
    assert first["count"] == 100 and first["subjects"] == tuple(f"n{number}" for number in range(SUBJECTS_SHOWN))
    assert len(first["reasons"]) == REASONS_SHOWN
    assert (second["count"], second["at"]) == (1, 6.0)


def test_what_happens_one_by_one_in_real_time_is_one_line_as_well() -> None:
    log = DecisionLog()
    log.note(7.9, "scale-up", "large", "enlarged")
    for number in range(400):
        log.note(8.0 + number / 1000, "node", f"n{number}", "joined", ["large"])
        log.note(8.0 + number / 1000, "pod", f"p{number}", "evicted")
    log.note(9.0, "node", "n400", "joined", ["large"])
    assert [(line["at"], line["decision"], line["count"]) for line in log.lines()] == [
        (7.9, "enlarged", 1), (8.0, "joined", 400), (8.0, "evicted", 400), (9.0, "joined", 1),
    ]  # fmt: skip


def test_what_is_decided_twice_about_the_same_is_told_twice() -> None:
    log = DecisionLog()
    log.note(8.0, "scale-up", "large", "enlarged", ["0 to 124"])
    log.note(8.5, "scale-up", "large", "enlarged", ["124 to 200"])
    assert [(line["at"], line["count"], line["reasons"]) for line in log.lines()] == [
        (8.0, 1, ("0 to 124",)), (8.5, 1, ("124 to 200",)),
    ]  # fmt: skip


def test_what_was_done_is_told_from_what_was_weighed() -> None:
    log = DecisionLog()
    for decision in ("enlarged", "removed", "joined", "stays: too young", "unneeded", "skipped", "in cooldown",
                     "disrupts nothing"):
        log.note(1.0, "node", "n", decision)
    assert [line["decision"] for line in log.lines() if line["act"]] == ["enlarged", "removed", "joined"]


def test_only_what_is_new_or_changed_is_drained() -> None:
    log = DecisionLog()
    log.note(1.0, "node", "a", "removed")
    log.note(1.0, "node", "b", "unneeded")
    assert [line["decision"] for line in log.drain()] == ["removed", "unneeded"]
    assert log.drain() == []
    log.note(1.0, "node", "c", "removed")
    assert [(line["decision"], line["count"]) for line in log.drain()] == [("removed", 2)]


def test_it_is_bounded_in_lines_and_letters() -> None:
    log = DecisionLog(lines_max=10)
    for second in range(1000):
        log.note(float(second), "pod", "p", "x" * 10_000, ["y" * 10_000])
    assert len(log) == len(log.drain()) == 10
    assert log.lines()[0]["at"] == 990.0
    assert all(len(line["decision"]) == len(line["reasons"][0]) == TEXT_MAX for line in log.lines())


def test_what_is_weighed_does_not_push_out_what_was_done() -> None:
    log = DecisionLog(lines_max=10)
    log.note(0.0, "scale-up", "g", "enlarged")
    for second in range(1000):
        log.note(float(second), "node", "n", "stays: too young")
    assert [line["decision"] for line in log.lines() if line["act"]] == ["enlarged"] and len(log) == 11


def test_what_was_handed_out_does_not_change_any_more() -> None:
    log = DecisionLog()
    log.note(1.0, "node", "a", "removed", ["empty"])
    before = log.lines()[0]
    log.note(1.0, "node", "b", "removed", ["drained"])
    assert before["subjects"] == ("a",) and before["reasons"] == ("empty",)
