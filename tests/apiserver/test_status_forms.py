"""A change of status that is recognized by its shape is the one that is found by looking for every value."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.status_forms import OPEN, form_of, shape_of
from holokube.apiserver.status_repeats import Change, StatusRepeats

JsonObject = dict[str, Any]
TIMES = st.sampled_from([f"2026-01-01T12:00:0{digit}Z" for digit in range(4)] + ["2026-02-30T12:00:00Z", "", "never"])
IPS = st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.21", "10.0.0.256", "fd00::1"])
IDS = st.sampled_from(["containerd://aa", "containerd://ab", "containerd://aab", "AA", 'a"b', "é"])
TEXTS = st.sampled_from(["no room", "10.0.0.1", 'say "no"', "tab\t", "", "é"])


def before(scheduled: Any, message: Any) -> JsonObject:
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled, "message": message}
    return {"phase": "Pending", "conditions": [condition]}


def patch(host: Any, address: Any, at: Any, started: Any, identity: Any, restarts: Any) -> JsonObject:
    return {
        "phase": "Running", "hostIP": host, "podIP": address, "podIPs": [{"ip": address}], "startTime": at,
        "containerStatuses": [
            {"name": "c", "restartCount": restarts, "state": {"running": {"startedAt": started}},
             "containerID": identity}
        ],
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at}],
    }  # fmt: skip


BEFORE = st.builds(before, TIMES, TEXTS)
PATCHES = st.builds(patch, IPS, IPS, TIMES, TIMES, IDS, st.sampled_from([0, 1, True, 0.0]))


def split(old: JsonObject, new: JsonObject) -> tuple[list[bytes], list[bytes]]:
    parts = OPEN.split(orjson.dumps(old) + orjson.dumps(new))
    return parts[::2], parts[1::2]


def classes(values: list[bytes]) -> list[int]:
    """Which of the values are equal."""
    return [values.index(value) for value in values]


@settings(max_examples=300, deadline=None)
@given(BEFORE, PATCHES, BEFORE, PATCHES)
def test_a_shape_is_recognized_if_and_only_if_nothing_but_open_values_differs(
    old: JsonObject, new: JsonObject, other_old: JsonObject, other_new: JsonObject
) -> None:
    pieces, values = split(old, new)
    text = orjson.dumps(old) + orjson.dumps(new)
    shape = shape_of(old, new, text, [*dict.fromkeys(values)])
    if shape is None:
        assert len(values) < 2
        return
    own = shape.values(old, new, text)
    assert own == [value.decode() for value in dict.fromkeys(values)]
    other_pieces, other_values = split(other_old, other_new)
    found = shape.values(other_old, other_new, orjson.dumps(other_old) + orjson.dumps(other_new))
    alike = other_pieces == pieces and classes(other_values) == classes(values)
    assert found == ([value.decode() for value in dict.fromkeys(other_values)] if alike else None)


@settings(max_examples=100, deadline=None)
@given(PATCHES, st.lists(st.lists(TEXTS, min_size=8, max_size=8), min_size=1, max_size=4))
def test_a_form_is_filled_in_with_whatever_values_come(status: JsonObject, drawn: list[list[str]]) -> None:
    values = [*dict.fromkeys(OPEN.split(orjson.dumps(status))[1::2])]
    places = {value: place for place, value in enumerate(values)}
    form = form_of(status, places)
    for texts in drawn:
        made = status if form is None else form.filled(texts)
        parts = OPEN.split(orjson.dumps(status))
        parts[1::2] = [b'":' + orjson.dumps(texts[places[value]]) for value in parts[1::2]]
        # What stands after a value begins with the quote that ends it.
        wanted = parts[0] + b"".join(parts[at] + parts[at + 1][1:] for at in range(1, len(parts), 2))
        assert orjson.dumps(made) == wanted


def test_what_needs_only_the_time_is_shared_by_all_of_that_time() -> None:
    first = patch("10.0.0.1", "10.0.0.2", "2026-01-01T12:00:00Z", "2026-01-01T12:00:01Z", "containerd://aa", 0)
    values = [*dict.fromkeys(OPEN.split(orjson.dumps(first))[1::2])]
    form = form_of(first, {value: place for place, value in enumerate(values)})
    assert form is not None
    texts = [value.decode() for value in values]
    one, two = (form.filled([f"10.0.0.{number}", *texts[1:]]) for number in (7, 8))
    assert one["conditions"] is two["conditions"] and one["hostIP"] != two["hostIP"]
    texts[2] = "2026-01-01T13:00:00Z"
    three = form.filled(texts)
    assert three["conditions"] != two["conditions"]
    assert two["conditions"][0]["lastTransitionTime"] == "2026-01-01T12:00:00Z"


def test_changes_of_pods_of_a_template_are_guessed_whichever_of_them_comes() -> None:
    repeats, template = StatusRepeats(), object()
    guessed = 0
    for number in range(12):
        old = before("2026-01-01T12:00:00Z", "")
        # Every other pod starts in the second in which it is bound.
        at = "2026-01-01T12:00:00Z" if number % 2 else f"2026-01-01T12:00:{10 + number}Z"
        new = patch("10.1.0.1", f"10.0.0.{number}", at, at, f"containerd://{number:04x}", 0)
        asked = repeats.ask(old, new, "how", template=template)
        assert asked is not None
        guessed += asked.change is not None
        found = repeats.recall(asked)
        wanted = {**new, "conditions": old["conditions"] + new["conditions"]}
        if found is None:
            repeats.remember(asked, old, Change(wanted, {}, {}))
        else:
            assert orjson.dumps(found.status) == orjson.dumps(wanted)
    assert guessed == 8


def test_what_needs_the_same_times_is_shared_as_a_whole_by_those_that_are_filled_in_with_them() -> None:
    def status(address: str, since: str, until: str) -> JsonObject:
        conditions = [{"type": kind, "lastTransitionTime": since} for kind in ("Ready", "Initialized")]
        ended = [{"type": "Done", "lastTransitionTime": until}, {"type": "Begun", "lastTransitionTime": since}]
        return {"podIP": address, "conditions": conditions, "others": ended, "phase": "Running"}

    known = ("10.0.0.1", "2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z")
    form = form_of(status(*known), {value.encode(): place for place, value in enumerate(known)})
    assert form is not None
    first = form.filled(("10.0.0.2", "2026-01-02T00:00:00Z", "2026-01-02T00:00:09Z"))
    second = form.filled(("10.0.0.3", "2026-01-02T00:00:00Z", "2026-01-02T00:00:09Z"))
    third = form.filled(("10.0.0.4", "2026-01-02T00:00:00Z", "2026-01-02T00:00:10Z"))
    fourth = form.filled(("10.0.0.5", "2026-01-03T00:00:00Z", "2026-01-02T00:00:10Z"))
    assert first == status("10.0.0.2", "2026-01-02T00:00:00Z", "2026-01-02T00:00:09Z")
    assert second == status("10.0.0.3", "2026-01-02T00:00:00Z", "2026-01-02T00:00:09Z")
    assert third == status("10.0.0.4", "2026-01-02T00:00:00Z", "2026-01-02T00:00:10Z")
    assert fourth == status("10.0.0.5", "2026-01-03T00:00:00Z", "2026-01-02T00:00:10Z")
    assert first["conditions"] is second["conditions"] is third["conditions"] is not fourth["conditions"]
    assert first["others"] is second["others"] is not third["others"]
    assert second["others"][1] is third["others"][1]
    assert third["others"][0] is fourth["others"][0]
