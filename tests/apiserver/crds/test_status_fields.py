"""Fields of a status that are replaced by themselves end as they do the long way."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.crds import status_fields
from holokube.apiserver.crds.json_schema import Check
from holokube.apiserver.crds.status_fields import StatusFields
from holokube.kube.types import JsonObject
from tests.apiserver.crds.steps import LAB, Answer, ask_patch, define, definition, redefine, widget
from tests.apiserver.worlds import World, in_world

CONDITION: JsonObject = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        "type": {"type": "string"},
        "status": {"type": "string", "enum": ["True", "False"]},
        "seen": {"type": "integer", "minimum": 1},
        "at": {"type": "string", "format": "date-time"},
        "flag": {"type": "boolean", "nullable": True},
    },
}
FIELDS: JsonObject = {
    "conditions": {
        "type": "array", "items": CONDITION, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
    },
    "time": {"type": "string", "format": "date-time"},
    "count": {"type": "integer", "maximum": 3},
    "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
    "phase": {"type": "string", "nullable": True},
}  # fmt: skip
PLAIN: JsonObject = {"type": "object", "properties": FIELDS}
RULED: JsonObject = {**PLAIN, "x-kubernetes-validations": [{"rule": "!has(self.count) || self.count != 2"}]}
NEEDY: JsonObject = {**PLAIN, "required": ["time"]}
FILLED: JsonObject = {**PLAIN, "properties": {**FIELDS, "phase": {"type": "string", "default": "New"}}}
BOUND: JsonObject = {**PLAIN, "properties": {**FIELDS, "conditions": {**FIELDS["conditions"], "maxItems": 1}}}

conditions = st.fixed_dictionaries(
    {"type": st.sampled_from(["A", "B"]), "status": st.sampled_from(["True", "False", "Perhaps", None])},
    optional={
        "seen": st.sampled_from([1, 1.0, True, 0, 2**70]), "flag": st.sampled_from([True, None]),
        "at": st.sampled_from(["2027-01-01T00:00:00Z", "2027-01-31T00:00:00Z", "2027-02-29T00:00:00Z", "soon", "", 1]),
        "other": st.just("?"),
    },
)  # fmt: skip
PARTS: dict[str, st.SearchStrategy[Any]] = {
    "conditions": st.one_of(st.none(), st.lists(conditions, max_size=3), st.just({})),
    "time": st.sampled_from(["2027-01-01T00:00:00Z", "2027-01-01T00:00:01Z", "soon", 1, None, "null"]),
    "count": st.sampled_from([1, 2, 3, 4, 1.0, True, "1", None]),
    "sizes": st.dictionaries(st.sampled_from("ab"), st.sampled_from([1, 2, None])),
    "phase": st.sampled_from(["Old", "New", None]),
    "unknown": st.just(1),
}
statuses = st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=3, unique=True).flatmap(
    lambda keys: st.fixed_dictionaries({key: PARTS[key] for key in keys})
)


def outcomes(status: JsonObject, patches: list[JsonObject]) -> list[tuple[Answer, bytes]]:
    schema = {"type": "object", "properties": {"spec": {"type": "object"}, "status": status}}

    async def run(world: World) -> list[tuple[Answer, bytes]]:
        await define(world, definition(schema, subresources={"status": {}}))
        found = []
        for name in ("w", "v"):
            made = widget()
            await world.create("widgets", {**made, "metadata": {**made["metadata"], "name": name}}, LAB)
            for patch in patches:
                body = {"status": patch}
                answer = await ask_patch(world, LAB, "widgets", name, body, subresource="status")
                found.append((answer, orjson.dumps(world.get("widgets", name, LAB))))
        return found

    return in_world(run)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([PLAIN, RULED, NEEDY, BOUND]), st.lists(statuses, min_size=1, max_size=5))
def test_patches_end_as_they_do_when_everything_is_read_and_checked(
    status: JsonObject, patches: list[JsonObject]
) -> None:
    short = outcomes(status, patches)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StatusFields, "patched", lambda *_: None)
        assert short == outcomes(status, patches)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([PLAIN, RULED, NEEDY, BOUND, FILLED]),
    st.lists(st.one_of(statuses, st.just({})), min_size=1, max_size=3),
)
def test_a_first_status_ends_as_it_does_when_everything_is_read_and_checked(
    status: JsonObject, patches: list[JsonObject]
) -> None:
    short = outcomes(status, patches)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StatusFields, "first", lambda *_: None)
        patched.setattr(StatusFields, "patched", lambda *_: None)
        assert short == outcomes(status, patches)


def test_a_first_status_goes_the_short_way_with_objects_in_it() -> None:
    found: list[JsonObject | None] = []
    usual = StatusFields.first

    def noted(itself: StatusFields, patch: JsonObject) -> JsonObject | None:
        found.append(usual(itself, patch))
        return found[-1]

    patches: list[JsonObject] = [
        {"sizes": {"a": 1}, "count": 1}, {"sizes": {"a": "one"}}, {"sizes": {"a": None}}, {"sizes": {}}, {},
    ]  # fmt: skip
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StatusFields, "first", noted)
        for patch in patches:
            outcomes(PLAIN, [patch])
    # Twice each: the second one is remembered.
    assert found == [patches[0], patches[0], None, None, None, None, {"sizes": {}}, {"sizes": {}}, None, None]


def taken(status: JsonObject, patches: list[JsonObject]) -> list[bool]:
    """Which of the patches went the short way."""
    found = []
    usual = StatusFields.patched

    def noted(itself: StatusFields, before: JsonObject, patch: JsonObject) -> JsonObject | None:
        made = usual(itself, before, patch)
        found.append(made is not None)
        return made

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StatusFields, "patched", noted)
        outcomes(status, patches)
    return found[: len(found) // 2]


def test_plain_fields_and_elements_of_maps_go_the_short_way() -> None:
    first: JsonObject = {"sizes": {"a": 1}}
    ready, count, both = {"type": "A", "status": "True"}, {"count": 1}, {"count": 2, "conditions": []}
    assert taken(PLAIN, [first, count, {"conditions": [ready]}, both]) == [True, True, True]
    assert taken(PLAIN, [first, {"count": 4}, {"sizes": {"b": 2}}, {"time": None}]) == [False, False, False]
    assert taken(PLAIN, [first, {"conditions": [ready, ready]}, {"conditions": [{"type": "A"}]}]) == [False, False]


@pytest.mark.parametrize("status", [RULED, NEEDY])
def test_where_a_rule_looks_at_the_whole_status_nothing_goes_the_short_way(status: JsonObject) -> None:
    assert taken(status, [{"time": "2027-01-01T00:00:00Z"}, {"count": 1}]) == [False]


def test_a_definition_that_changes_is_heeded_at_once() -> None:
    async def run(world: World) -> None:
        schema = {"type": "object", "properties": {"spec": {"type": "object"}, "status": PLAIN}}
        await define(world, definition(schema, subresources={"status": {}}))
        await world.create("widgets", widget(), LAB)
        for count in (1, 2, 3):
            answer = await ask_patch(world, LAB, "widgets", "w", {"status": {"count": count}}, subresource="status")
            assert answer.obj["status"]["count"] == count
        stricter: JsonObject = orjson.loads(orjson.dumps(schema))
        stricter["properties"]["status"]["properties"]["count"]["maximum"] = 1
        await redefine(world, definition(stricter, subresources={"status": {}}))
        answer = await ask_patch(world, LAB, "widgets", "w", {"status": {"count": 2}}, subresource="status")
        assert "less than or equal to 1" in str(answer)

    in_world(run)


def test_conditions_that_differ_in_their_times_keep_them() -> None:
    async def run(world: World) -> None:
        schema = {"type": "object", "properties": {"spec": {"type": "object"}, "status": PLAIN}}
        await define(world, definition(schema, subresources={"status": {}}))
        await world.create("widgets", widget(), LAB)
        for at in ("2027-01-01T00:00:00Z", "2027-01-01T00:00:01Z", "2027-01-01T01:00:00+01:00"):
            one = {"type": "A", "at": at, "status": "True"}
            body = {"status": {"time": at, "conditions": [one]}}
            answer = await ask_patch(world, LAB, "widgets", "w", body, subresource="status")
            assert answer.obj["status"] == {"time": at, "conditions": [one]}
            assert list(answer.obj["status"]["conditions"][0]) == ["type", "at", "status"]
        for wrong in ("", "soon", True, None):
            body = {"status": {"conditions": [{"type": "A", "at": wrong, "status": "True"}]}}
            answer = await ask_patch(world, LAB, "widgets", "w", body, subresource="status")
            assert wrong is None or "date-time" in str(answer)

    in_world(run)


@pytest.mark.parametrize("bound", [{"maxLength": 20}, {"enum": ["2027-01-01T00:00:00Z"]}, {"pattern": "^2027"}])
def test_times_of_which_not_all_will_do_are_no_matter_of_course(bound: JsonObject) -> None:
    time = {"type": "string", "format": "date-time", **bound}
    assert not Check(time).is_any_time
    assert Check({"type": "object", "properties": {"a": time, "b": FIELDS["time"]}}).times() == ("b",)
    assert not Check({"type": "string"}).is_any_time


def test_as_many_values_are_kept_as_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_fields, "KEPT", 2)
    assert all(taken(PLAIN, [{"sizes": {}}, *({"time": f"2027-01-01T00:00:0{n}Z"} for n in range(6))]))
    assert all(taken(PLAIN, [{"sizes": {}}, *({"count": n} for n in (1, 2, 3, 1))]))


def test_elements_that_are_sent_back_as_they_were_read_are_known_wherever_they_stand() -> None:
    async def run(world: World) -> None:
        schema = {"type": "object", "properties": {"spec": {"type": "object"}, "status": PLAIN}}
        await define(world, definition(schema, subresources={"status": {}}))
        await world.create("widgets", widget(), LAB)

        async def put(*elements: JsonObject) -> Answer:
            body = {"status": {"conditions": [*elements]}}
            return await ask_patch(world, LAB, "widgets", "w", body, subresource="status")

        await put(*({"type": kind, "status": "True"} for kind in "ABC"))
        first, _, last = stored = world.get("widgets", "w", LAB)["status"]["conditions"]
        new = {"type": "D", "status": "False"}
        assert (await put(last, new, first)).obj["status"]["conditions"] == [last, new, first]
        assert world.get("widgets", "w", LAB)["status"]["conditions"][0] is last
        assert (await put(*stored)).obj["status"]["conditions"] == stored
        assert "Duplicate" in str(await put(first, last, first))

    in_world(run)
