from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holokube.client.audience import (
    DELETION,
    ENDING,
    EVERYTHING,
    EXISTENCE,
    FINALIZERS,
    LABELS,
    OWNERS,
    PHASE,
    SPEC,
    STATUS,
    Audience,
    Handler,
    Hearers,
    Kind,
    Listener,
    aspects_changed,
    controller_kind,
)
from holokube.client.cache import Cache

WEB = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
RUN = {"apiVersion": "batch/v1", "kind": "Job", "name": "run", "controller": True}
FRIEND = {"apiVersion": "v1", "kind": "ConfigMap", "name": "friend"}
METADATA = {
    LABELS: ("labels", (None, {}, {"a": "x"}, {"a": "y"})),
    OWNERS: ("ownerReferences", (None, [], [WEB], [RUN], [FRIEND, RUN], [FRIEND])),
    FINALIZERS: ("finalizers", (None, ["f"], ["f", "g"])),
    DELETION: ("deletionTimestamp", (None, "2026-01-05T08:30:00Z", "2026-01-05T08:30:05Z")),
}
SPECS: tuple[Any, ...] = (None, {}, {"nodeName": "n1"}, {"nodeName": "n2"})
STATUSES: tuple[Any, ...] = (
    None, {}, {"phase": "Running"}, {"phase": "Running", "conditions": []}, {"phase": "Failed"},
)  # fmt: skip


def _with(value: Any, name: str, *, is_copy: bool = False) -> dict[str, Any]:
    """A field that is left out, there, or an equal copy of what another object has there."""
    if value is None:
        return {}
    return {name: type(value)(value) if is_copy else value}


OBJECTS = st.builds(
    lambda spec, status, *meta: {
        "metadata": {"name": "p", **{k: v for one in meta for k, v in one.items()}},
        **_with(spec, "spec"), **_with(status, "status"),
    },
    st.sampled_from(SPECS), st.sampled_from(STATUSES),
    *(
        st.builds(_with, st.sampled_from(values), st.just(name), is_copy=st.booleans())
        for name, values in METADATA.values()
    ),
)  # fmt: skip
KINDS = st.sampled_from((None, ("apps", "ReplicaSet"), ("batch", "Job")))


@given(OBJECTS, OBJECTS)
def test_no_respect_in_which_an_object_changed_is_left_out(old: dict[str, Any], new: dict[str, Any]) -> None:
    found = aspects_changed(old, new)
    assert found & EVERYTHING == found
    for aspect, (name, _) in METADATA.items():
        assert bool(found & aspect) == (old["metadata"].get(name) != new["metadata"].get(name))
    if old.get("spec") != new.get("spec"):
        assert found & SPEC
    if old.get("status") != new.get("status"):
        assert found & STATUS
    if (old.get("status") or {}).get("phase") != (new.get("status") or {}).get("phase"):
        assert found & PHASE
    if _is_over(old) != _is_over(new):
        assert found & ENDING


def _is_over(obj: Mapping[str, Any]) -> bool:
    return (obj.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def test_of_the_phases_of_a_pod_only_those_in_which_it_is_over_are_its_ending() -> None:
    def between(before: str, after: str) -> int:
        old, new = ({"metadata": {"name": "p"}, "status": {"phase": phase}} for phase in (before, after))
        return aspects_changed(old, new) & (PHASE | ENDING)

    assert between("Pending", "Running") == PHASE
    assert between("Running", "Running") == 0
    assert between("Running", "Succeeded") == between("Failed", "Succeeded") == between("Failed", "Running")
    assert between("Running", "Succeeded") == PHASE | ENDING


def test_one_who_heeds_changes_alone_is_not_told_what_came_or_went() -> None:
    audience = Audience()
    listener = Listener(lambda _type, _old, _new: None, SPEC, None, hears_comings=False)
    audience.add(listener)
    pod = {"metadata": {"name": "p"}}
    assert listener not in audience.of(EXISTENCE, pod)
    assert listener not in audience.of(STATUS, pod)
    assert listener in audience.of(SPEC, pod)
    # A resync repeats everything.
    assert listener in audience.of(EVERYTHING, pod)


def test_a_part_that_is_the_very_same_object_has_not_changed() -> None:
    spec, status = {"a": 1}, {"phase": "Running"}
    old = {"metadata": {"name": "p", "resourceVersion": "1"}, "spec": spec, "status": status}
    new = {**old, "metadata": {"name": "p", "resourceVersion": "2"}}
    assert not aspects_changed(old, new) & (SPEC | STATUS | PHASE)
    assert aspects_changed(old, {**new, "status": dict(status)}) & (STATUS | PHASE) == STATUS


def _owners(obj: Mapping[str, Any]) -> Any:
    return obj["metadata"].get("ownerReferences")


def _group_and_kind(obj: Mapping[str, Any]) -> Kind | None:
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return reference["apiVersion"].rpartition("/")[0], reference["kind"]
    return None


@given(
    st.lists(st.tuples(st.integers(0, EXISTENCE - 1), KINDS, st.booleans(), st.booleans()), max_size=5),
    st.lists(st.tuples(st.none() | OBJECTS, OBJECTS), max_size=5),
)
def test_each_is_told_of_what_concerns_it_in_the_order_in_which_they_came(
    listeners: list[tuple[int, Kind | None, bool, bool]], changes: list[tuple[dict[str, Any] | None, dict[str, Any]]]
) -> None:
    audience = Audience()
    handlers: list[Handler] = []
    for heeds, kind, orphans, is_away in listeners:
        handlers.append(lambda _type, _old, _new: None)
        listener = Listener(handlers[-1], heeds, kind, orphans)
        audience.add(listener)
        audience.set_away(listener, is_away=is_away)
    for old, new in changes:
        aspects = EXISTENCE if old is None else aspects_changed(old, new)
        wanted = []
        for handler, (heeds, kind, orphans, is_away) in zip(handlers, listeners, strict=True):
            is_other = kind is not None and _group_and_kind(new) not in ((None, kind) if orphans else (kind,))
            same_owner = old is None or _owners(old) == _owners(new)
            if not is_away and (old is None or heeds & aspects) and not (is_other and same_owner):
                wanted.append(handler)
        assert [listener.handler for listener in audience.of(aspects, new)] == wanted


@given(
    st.lists(st.tuples(st.integers(0, EXISTENCE - 1), KINDS, st.booleans()), max_size=6),
    st.lists(st.lists(st.tuples(st.integers(0, EVERYTHING + 1), OBJECTS), max_size=6), max_size=4),
    st.integers(0, 5),
)
def test_of_changes_that_come_together_each_is_told_its_own_one_listener_after_the_other(
    listeners: list[tuple[int, Kind | None, bool]], batches: list[list[tuple[int, dict[str, Any]]]], leaves: int
) -> None:
    audience = Audience()
    known = [Listener(lambda _type, _old, _new: None, heeds, kind, orphans) for heeds, kind, orphans in listeners]
    for listener in known:
        audience.add(listener)
    for number, batch in enumerate(batches):
        told = [audience.of(aspects, obj) for aspects, obj in batch]
        if number == 1 and leaves < len(known):
            # After the changes were taken over, and before anybody is told of them.
            audience.remove(known.pop(leaves))
        for _ in range(2):
            found = [
                (listener, place) for listener, among in audience.together(frozenset(told))
                for place, hearers in enumerate(told) if hearers in among
            ]  # fmt: skip
            assert found == [
                (listener, place) for listener in known for place, hearers in enumerate(told) if listener in hearers
            ]


def test_hearers_are_known_by_being_the_very_same() -> None:
    listener = Listener(lambda _type, _old, _new: None, EVERYTHING, None)
    one, other = Hearers([listener]), Hearers([listener])
    assert list(one) == list(other)
    assert one != other and not one == other  # noqa: SIM201 - both ways of asking are meant
    assert {one: 1}.get(other) is None


def test_one_who_is_away_keeps_its_place() -> None:
    told: list[str] = []
    audience = Audience()

    def hears(name: str) -> Listener:
        return Listener(lambda _type, _old, _new: told.append(name), EVERYTHING, None)

    listeners = {name: hears(name) for name in "abc"}
    for listener in listeners.values():
        audience.add(listener)

    def tell() -> str:
        told.clear()
        for listener in audience.of(EXISTENCE, {"metadata": {"name": "p"}}):
            listener.handler("ADDED", None, None)
        return "".join(told)

    assert tell() == "abc"
    audience.set_away(listeners["b"], is_away=True)
    assert tell() == "ac"
    audience.set_away(listeners["b"], is_away=False)
    assert tell() == "abc"
    audience.remove(listeners["a"])
    audience.remove(listeners["a"])
    assert tell() == "bc"


def test_only_a_controller_counts_as_the_kind_of_an_objects_owner() -> None:
    assert controller_kind({"metadata": {"ownerReferences": [FRIEND, RUN]}}) == ("batch/v1", "Job")
    assert controller_kind({"metadata": {"ownerReferences": [FRIEND]}}) == ("", "")
    assert controller_kind({"metadata": {}}) == ("", "")


def _labels(obj: Mapping[str, Any]) -> list[str]:
    return [f"{key}={value}" for key, value in (obj["metadata"].get("labels") or {}).items()]


def _phase(obj: Mapping[str, Any]) -> tuple[str, ...]:
    phase = (obj.get("status") or {}).get("phase")
    return (phase,) if phase else ()


@given(st.lists(st.tuples(st.sampled_from("ab"), st.none() | OBJECTS, st.booleans()), max_size=12))
def test_an_index_that_heeds_what_it_looks_at_is_as_one_that_heeds_everything(
    steps: list[tuple[str, dict[str, Any] | None, bool]]
) -> None:
    plain, picky = Cache(), Cache()
    for name, function, heeds in (("labels", _labels, LABELS), ("phase", _phase, PHASE)):
        plain.add_index(name, function)
        picky.add_index(name, function, heeds=heeds)
    picky.add_index("late", _labels, heeds=LABELS, when_asked=True)
    for key, new, asks in steps:
        old = plain.by_key(key)
        if new is None:
            if old is not None:
                plain.remove(key)
                picky.remove(key)
        else:
            plain.put(key, new)
            picky.put(key, new, EXISTENCE if old is None else aspects_changed(old, new))
        for index, values_of in (("labels", _labels), ("phase", _phase)):
            assert set(plain.index_values(index)) == {value for obj in plain for value in values_of(obj)}
            for value in plain.index_values(index):
                found = plain.by_index(index, value)
                assert len(found) == len({id(obj) for obj in found}) == sum(value in values_of(obj) for obj in plain)
            assert picky.index_values(index) == plain.index_values(index)
            for value in plain.index_values(index):
                assert picky.by_index(index, value) == plain.by_index(index, value)
        if asks:
            assert sorted(picky.index_values("late")) == sorted(plain.index_values("labels"))
            for value in plain.index_values("labels"):
                assert len(picky.by_index("late", value)) == len(plain.by_index("labels", value))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.lists(st.sampled_from("xyz"), max_size=4))))
def test_an_index_may_name_a_value_twice(steps: list[tuple[str, list[str] | None]]) -> None:
    cache = Cache({"named": lambda obj: iter(obj["names"])})
    for key, names in steps:
        if names is not None:
            cache.put(key, {"names": names})
        elif key in cache:
            cache.remove(key)
        assert set(cache.index_values("named")) == {name for obj in cache for name in obj["names"]}
        for name in cache.index_values("named"):
            found = cache.by_index("named", name)
            assert len(found) == sum(name in obj["names"] for obj in cache)
            assert all(name in obj["names"] for obj in found)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(("x", "y", "")), st.booleans(), st.booleans())))
def test_the_objects_of_a_namespace_are_the_same_whenever_they_are_first_asked_for(
    steps: list[tuple[str, str, bool, bool]]
) -> None:
    cache = Cache()
    for name, space, comes, asks in steps:
        key = f"{space}/{name}" if space else name
        if comes:
            meta = {"name": name, "namespace": space} if space else {"name": name}
            cache.put(key, {"metadata": meta}, EXISTENCE if key not in cache else EVERYTHING)
        elif key in cache:
            cache.remove(key)
        if asks:
            for wanted in ("x", "y"):
                found = [obj for obj in cache if obj["metadata"].get("namespace") == wanted]
                assert cache.list(wanted) == found
                assert cache.has_any(wanted) == bool(found)
