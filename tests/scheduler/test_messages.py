from __future__ import annotations

from holokube.scheduler.messages import attempts_to_make_room, event_note, fit_error, preemption_error


def test_reasons_are_sorted_as_texts_with_their_counts_first() -> None:
    reasons = {"node(s) had untolerated taint(s)": 10, "Insufficient cpu": 2, "Insufficient memory": 2}
    assert fit_error(14, reasons) == (
        "0/14 nodes are available: 10 node(s) had untolerated taint(s), 2 Insufficient cpu, 2 Insufficient memory."
    )


def test_a_refusal_takes_the_place_of_reasons() -> None:
    refusal = 'persistentvolumeclaim "c" not found'
    message = fit_error(3, {"ignored": 3}, refusal=refusal, after=attempts_to_make_room(refusal, None))
    # Odd, but so upstream says: the state of the plugin that comes before preemption is what is not found.
    assert message == '0/3 nodes are available: persistentvolumeclaim "c" not found. not found'


def test_what_came_of_preemption_comes_last() -> None:
    after = attempts_to_make_room("", preemption_error(3, 0, {}))
    assert fit_error(3, {"Insufficient cpu": 3}, after=after) == (
        "0/3 nodes are available: 3 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )
    assert attempts_to_make_room("", None) == "no new claims to deallocate"


def test_nodes_where_preemption_was_tried_are_named_with_their_own_reasons() -> None:
    # One node may have several reasons, so the rest is counted by nodes.
    reasons = {"Insufficient cpu": 1, "Insufficient memory": 1, "No preemption victims found for incoming pod": 2}
    assert preemption_error(5, 3, reasons) == (
        "0/5 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, "
        "2 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    )


def test_a_message_without_reasons_ends_with_its_colon() -> None:
    assert fit_error(1, {}) == "0/1 nodes are available:"


def test_notes_are_cut_to_what_events_carry() -> None:
    assert event_note("x" * 1024) == "x" * 1024
    cut = event_note("ü" * 1024)
    assert cut.endswith("ü ...") and len(cut.encode()) <= 1024
