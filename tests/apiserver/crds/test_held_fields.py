"""The spec and the status of a custom object that is written otherwise are taken over as they are stored."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver import bodies, patching
from holokube.apiserver.options import WriteOptions
from holokube.kube.errors import ApiError
from holokube.kube.types import JsonObject
from tests.apiserver.crds.steps import LAB, define, definition, widget
from tests.apiserver.worlds import MERGE, World, in_world

PART: JsonObject = {
    "type": "object",
    "properties": {
        "a": {"type": "integer", "default": 1},
        "b": {"type": "object", "properties": {"c": {"type": "string", "default": "x"}, "d": {"type": "integer"}}},
        "e": {"type": "array", "items": {"type": "string"}},
    },
}
SCHEMA: JsonObject = {"type": "object", "properties": {"spec": PART, "status": {**PART, "default": {}}}}
PARTS = st.fixed_dictionaries({}, optional={
    "a": st.sampled_from([2, 3.0, None, "x"]), "b": st.sampled_from([{}, {"d": 4}, {"c": None}, None]),
    "e": st.sampled_from([[], ["x"], [1]]), "unknown": st.just(1),
})  # fmt: skip
PATCHES = st.fixed_dictionaries({}, optional={
    "metadata": st.fixed_dictionaries({}, optional={
        "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from(["x", "y y", None])),
        "finalizers": st.sampled_from([["f"], [], None]),
    }),
    "spec": PARTS | st.none(), "status": PARTS | st.none(),
})  # fmt: skip
STEPS = st.lists(
    st.tuples(PATCHES, st.sampled_from(["", "status"]), st.sampled_from(["patch", "update"])), min_size=1, max_size=7
)


def outcomes(steps: list[Any], *, has_door: bool) -> list[Any]:
    async def run(world: World) -> list[Any]:
        await define(world, definition(SCHEMA, subresources={"status": {}} if has_door else {}))
        await world.create("widgets", widget(), LAB)
        served = world.served("widgets", LAB)
        found: list[Any] = []
        for patch, door, how in steps:
            now = world.get("widgets", "w", LAB)
            text = orjson.dumps(now)
            options, door = WriteOptions(field_validation="Warn"), door if has_door else ""
            try:
                if how == "patch":
                    done = await world.registry.patch(served, "default", "w", MERGE, patch, options, subresource=door)
                else:
                    meta = {**now["metadata"], **patch.get("metadata", {})}
                    sent = {**now, **patch, "metadata": meta}
                    done = await world.registry.update(served, "default", "w", sent, options, subresource=door)
                found.append((done.stored.raw, done.warnings))
            except ApiError as problem:
                found.append(problem.to_status())
            assert orjson.dumps(now) == text, "what was stored is never changed"
        return found

    return in_world(run)


@settings(max_examples=80, deadline=None)
@given(steps=STEPS, has_door=st.booleans())
def test_what_is_taken_over_ends_where_reading_it_again_ends(steps: list[Any], has_door: bool) -> None:
    quick = outcomes(steps, has_door=has_door)
    with pytest.MonkeyPatch.context() as patch:
        for module in (bodies, patching):
            patch.setattr(module, "shares_spec", lambda *_: False)
        assert quick == outcomes(steps, has_door=has_door)


def test_the_status_of_what_is_labelled_is_the_stored_one() -> None:
    async def run(world: World) -> None:
        await define(world, definition(SCHEMA, subresources={"status": {}}))
        await world.create("widgets", widget(), LAB)
        made = await world.patch("widgets", "w", {"status": {"b": {}}}, LAB, subresource="status")
        assert made["status"] == {"a": 1, "b": {"c": "x"}}
        after = await world.patch("widgets", "w", {"metadata": {"labels": {"a": "b"}}}, LAB)
        assert after["metadata"]["labels"] == {"a": "b"}
        assert after["status"] is made["status"]
        assert after["spec"] is made["spec"]

    in_world(run)
