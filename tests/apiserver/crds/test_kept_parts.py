"""What a status patch leaves alone is not read again, and nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.crds.kept_parts import KeptParts, kept_items
from holokube.apiserver.crds.structural import ABSENT, structural
from holokube.apiserver.status_writes import StatusWrites
from holokube.kube.types import JsonObject
from tests.apiserver.crds.steps import LAB, Answer, ask_patch, define, definition, widget
from tests.apiserver.worlds import World, in_world

CONDITION: JsonObject = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        "type": {"type": "string"},
        "status": {"type": "string", "enum": ["True", "False"]},
        "reason": {"type": "string", "default": "None"},
        "seen": {"type": "integer"},
        "flag": {"type": "boolean", "nullable": True},
    },
}
STATUS: JsonObject = {
    "type": "object",
    "properties": {
        "conditions": {
            "type": "array", "items": CONDITION, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
        "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
        "names": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "time": {"type": "string", "format": "date-time"},
        "phase": {"type": "string", "default": "New"},
    },
}  # fmt: skip
SCHEMA: JsonObject = {"type": "object", "properties": {"spec": {"type": "object"}, "status": STATUS}}

conditions = st.fixed_dictionaries(
    {"type": st.sampled_from(["A", "B", "C"]), "status": st.sampled_from(["True", "False", "Perhaps", None])},
    optional={
        "reason": st.sampled_from(["", "x", None]), "seen": st.sampled_from([1, 1.0, True, 2, "1", 2**70]),
        "flag": st.sampled_from([True, None, 1]), "other": st.just("?"),
    },
)  # fmt: skip
statuses = st.dictionaries(
    st.sampled_from(["conditions", "sizes", "names", "time", "phase", "unknown"]), st.none(), max_size=3
).flatmap(
    lambda keys: st.fixed_dictionaries({key: PARTS[key] for key in keys})
)
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "conditions": st.one_of(st.none(), st.lists(conditions, max_size=3)),
    "sizes": st.one_of(st.none(), st.dictionaries(st.sampled_from("ab"), st.sampled_from([1, 2, None, "1"]))),
    "names": st.lists(st.sampled_from(["x", "y"]), max_size=2),
    "time": st.sampled_from(["2027-01-01T00:00:00Z", "2027-01-01T00:00:01Z", "soon", None]),
    "phase": st.sampled_from(["Old", None]),
    "unknown": st.just(1),
}


@contextmanager
def the_long_way() -> Iterator[None]:
    async def none(*_arguments: object) -> None:
        return None

    with patch.object(StatusWrites, "patch", none):
        yield


def outcomes(patches: list[JsonObject]) -> list[tuple[Answer, bytes]]:
    async def run(world: World) -> list[tuple[Answer, bytes]]:
        await define(world, definition(SCHEMA, subresources={"status": {}}))
        await world.create("widgets", widget(), LAB)
        found = []
        for status in patches:
            answer = await ask_patch(world, LAB, "widgets", "w", {"status": status}, subresource="status")
            found.append((answer, orjson.dumps(world.get("widgets", "w", LAB))))
        return found

    return in_world(run)


@settings(max_examples=40, deadline=None)
@given(st.lists(statuses, min_size=1, max_size=5))
def test_patches_of_status_end_as_they_do_when_everything_is_read_anew(patches: list[JsonObject]) -> None:
    short = outcomes(patches)
    with the_long_way():
        assert short == outcomes(patches)


def test_what_is_shared_and_what_stands_as_it_stood_is_not_read_again() -> None:
    a, b, changed = {"type": "A", "status": "True"}, {"type": "B", "status": "True"}, {"type": "B", "status": "False"}
    known: JsonObject = {"conditions": [a, b], "sizes": {"a": 1}, "time": "then"}
    value = {"conditions": [dict(a), changed], "sizes": known["sizes"], "time": "now"}
    kept = KeptParts(value, known, structural(STATUS))
    assert kept.others == {"conditions": [changed], "time": "now"}
    whole = kept.with_others({"conditions": [changed], "time": "now"})
    assert whole == value
    assert whole["conditions"][0] is a
    assert list(whole) == list(value)


def test_elements_that_are_equal_only_to_python_are_read_again() -> None:
    known = [{"type": "A", "seen": 1}]
    assert kept_items([{"type": "A", "seen": 1}], known, ("type",)) == known
    for other in ({"type": "A", "seen": True}, {"type": "A", "seen": 1.0}, {"seen": 1, "type": "A"}):
        assert kept_items([other], known, ("type",)) == [ABSENT]
    huge = [{"type": "A", "seen": float(2**70)}]
    assert kept_items([{"type": "A", "seen": 2**70}], huge, ("type",)) == [ABSENT]
