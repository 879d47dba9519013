"""Bindings and evictions of the usual form are not read field by field, and end as all others do."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.admission.base import IN_PROCESS, Attributes, Plugin
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.subresources import binding, eviction
from holokube.kube.errors import ApiError
from holokube.kube.types import JsonObject
from tests.apiserver.worlds import World, in_world
from tests.builders import pod

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z"}}}
ABSENT = "(absent)"

texts = st.sampled_from(["p", "n", "default", "v1", "", ABSENT])
odd: st.SearchStrategy[Any] = st.sampled_from([None, 1, True, [], {}, {"x": "y"}])


def drawn(usual: JsonObject) -> st.SearchStrategy[Any]:
    """Bodies with one place, or two, that are not as usual."""
    places = list(_places(usual))
    change = st.tuples(st.sampled_from(places), st.one_of(texts, odd))
    return st.lists(change, max_size=2).map(lambda changes: _changed(usual, changes))


def _places(value: Any, path: tuple[str, ...] = ()) -> Any:
    if isinstance(value, dict):
        yield (*path, "more")
        for key, part in value.items():
            yield (*path, key)
            yield from _places(part, (*path, key))


def _changed(usual: JsonObject, changes: list[tuple[tuple[str, ...], Any]]) -> JsonObject:
    made: JsonObject = orjson.loads(orjson.dumps(usual))
    for path, value in changes:
        at: Any = made
        for key in path[:-1]:
            at = at.get(key) if isinstance(at, dict) else None
        if isinstance(at, dict):
            at[path[-1]] = value
            if value == ABSENT:
                del at[path[-1]]
    return made


def outcome(door: str, body: Any, **options: Any) -> tuple[str, bytes]:
    async def run(world: World) -> tuple[str, bytes]:
        await world.create("nodes", NODE)
        await world.create("pods", pod("p"))
        handle = world.registry.subresources.handle
        before = orjson.dumps(body)
        try:
            answer = await handle(
                world.served("pods"), "default", "p", door, "create", body=body, content_type="", query={},
                options=WriteOptions(**options), caller=IN_PROCESS,
            )  # fmt: skip
            said = repr(answer)
        except ApiError as problem:
            said = orjson.dumps(problem.to_status()).decode()
        assert orjson.dumps(body) == before, "what is handed in belongs to the caller"
        left = world.store.list("pods").items
        return said, b"".join(stored.raw for _, stored in left)

    return in_world(run)


BINDING: JsonObject = {
    "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p", "namespace": "default"},
    "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
}  # fmt: skip
EVICTION: JsonObject = {
    "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": "default"},
    "deleteOptions": {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "?"}},
}  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(drawn(BINDING), st.sampled_from(["Ignore", "Warn", "Strict"]))
def test_a_binding_ends_as_it_does_when_it_is_read_field_by_field(body: JsonObject, validation: str) -> None:
    short = outcome("binding", body, field_validation=validation)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(binding, "_usual", lambda *_: None)
        assert short == outcome("binding", body, field_validation=validation)


@settings(max_examples=60, deadline=None)
@given(drawn(EVICTION), st.sampled_from(["Ignore", "Warn", "Strict"]))
def test_an_eviction_ends_as_it_does_when_it_is_read_field_by_field(body: JsonObject, validation: str) -> None:
    short = outcome("eviction", body, field_validation=validation)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(eviction, "_is_usual", lambda *_: False)
        assert short == outcome("eviction", body, field_validation=validation)


def test_what_a_client_sends_is_usual() -> None:
    assert binding._usual(BINDING, "p") is not None
    assert binding._usual({**BINDING, "metadata": {**BINDING["metadata"], "uid": "u"}}, "p") is not None
    assert binding._usual(BINDING, "q") is None
    assert eviction._is_usual(EVICTION, "p")
    assert eviction._is_usual({key: part for key, part in EVICTION.items() if key != "deleteOptions"}, "p")
    assert not eviction._is_usual(EVICTION, "q")


def test_plugins_see_bindings_and_evictions_of_the_usual_form() -> None:
    class Seeing(Plugin):
        resources = frozenset({("", "pods")})
        subresources = frozenset({"binding", "eviction"})
        seen: list[str] = []  # noqa: RUF012 - one test

        def mutate(self, attributes: Attributes) -> None:
            assert attributes.obj is not None
            self.seen.append(f"{attributes.subresource} {attributes.obj['kind']}")
            attributes.obj["metadata"]["labels"] = {"seen": "yes"}

    async def body(world: World) -> None:
        world.registry.admission.add(Seeing())
        await world.create("pods", pod("p"))
        uid = world.get("pods", "p")["metadata"]["uid"]
        evicted = _changed(EVICTION, [(("deleteOptions", "preconditions", "uid"), uid)])
        bodies = {"binding": BINDING, "eviction": evicted}
        for door, sent in bodies.items():
            await world.registry.subresources.handle(
                world.served("pods"), "default", "p", door, "create", body=sent, content_type="", query={},
                options=WriteOptions(), caller=IN_PROCESS,
            )  # fmt: skip
            assert "labels" not in sent["metadata"]
        assert Seeing.seen == ["binding Binding", "eviction Eviction"]
        assert world.get("pods", "p")["metadata"]["labels"]["seen"] == "yes"

    in_world(body)
