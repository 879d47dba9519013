"""A controller waits until its cache shows what it did, however that comes to pass."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.client.cache import Cache
from holokube.client.informer import Informer
from holokube.kube.types import JsonObject
from holokube.workloads.expectations import EXPIRES_S, Expectations, OwnWrites

VERSIONS = st.sampled_from(["", "x", "3", "7", "9", "10", "12"])
SHOWN = st.dictionaries(
    st.integers(0, 3), st.tuples(st.sampled_from(["a", "b"]), VERSIONS, st.booleans()), max_size=4
)


def informer_of(shown: dict[int, tuple[str, str, bool]], version: str) -> Informer:
    cache = Cache()
    for number, (uid, own, leaving) in shown.items():
        cache.put(f"default/p{number}", an_object(number, uid, own, leaving=leaving))
    return cast("Informer", SimpleNamespace(lister=cache, resource_version=version))


def an_object(number: int, uid: str, version: str = "", *, leaving: bool = False) -> JsonObject:
    meta: JsonObject = {"namespace": "default", "name": f"p{number}", "uid": uid, "resourceVersion": version}
    return {"metadata": {**meta, "deletionTimestamp": "now"} if leaving else meta}


def reaches(version: str, other: str) -> bool:
    return version.isdecimal() and other.isdecimal() and int(version) >= int(other)


@given(
    created=st.dictionaries(st.integers(0, 3), st.tuples(st.sampled_from(["a", "b"]), VERSIONS)),
    deleted=st.dictionaries(st.integers(0, 3), st.sampled_from(["a", "b"])),
    moments=st.lists(st.tuples(SHOWN, VERSIONS), min_size=1, max_size=3),
)
def test_what_was_done_is_expected_until_it_was_shown_once(created: Any, deleted: Any, moments: Any) -> None:
    clock = VirtualClock()
    expectations = Expectations(clock, informer_of({}, ""))
    for number, (uid, version) in created.items():
        expectations.created("owner", an_object(number, uid, version))
    for number, uid in deleted.items():
        expectations.deleted("owner", an_object(number, uid))
    for shown, version in moments:
        expectations._informer = informer_of(shown, version)
        created = {
            number: (uid, own) for number, (uid, own) in created.items()
            if not ((number in shown and shown[number][0] == uid) or reaches(version, own))
        }  # fmt: skip
        deleted = {
            number: uid for number, uid in deleted.items()
            if number in shown and shown[number][0] == uid and not shown[number][2]
        }  # fmt: skip
        assert expectations.met("owner") == (not created and not deleted)
        assert expectations.met("another")
    clock.advance(EXPIRES_S)
    assert expectations.met("owner"), "it is not waited for for ever"


@given(st.sampled_from(["", "x", "7", "9"]), SHOWN, VERSIONS)
def test_a_write_is_shown_by_the_object_or_by_how_far_the_cache_is(written: str, shown: Any, version: str) -> None:
    writes = OwnWrites(informer_of(shown, version))
    writes.wrote(an_object(0, "a", written))
    expected = not written.isdecimal() or reaches(version, written) or (0 in shown and reaches(shown[0][1], written))
    assert writes.shown("default/p0") == expected
    assert writes.shown("default/p1")
    writes.forget("default/p0")
    assert writes.shown("default/p0")
