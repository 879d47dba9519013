"""Objects become smaller, and stay equal."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from holokube.hollow.wire import slim
from holokube.hollow.wire.slim import Slimmer, decode_slim
from tests.builders import pod


def fresh(obj: dict[str, Any]) -> dict[str, Any]:
    """As it comes from the wire: no part is shared with anything."""
    decoded: dict[str, Any] = orjson.loads(orjson.dumps(obj))
    return decoded


def sample() -> dict[str, Any]:
    made = pod("p", "default", node="n")
    made["metadata"] |= {"labels": {"a": "b"}, "managedFields": [{"manager": "x"}], "uid": "u", "resourceVersion": "1"}
    made["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}], "podIPs": []}
    return made


def test_only_the_managed_fields_are_missing() -> None:
    expected = copy.deepcopy(sample())
    del expected["metadata"]["managedFields"]
    assert Slimmer()(fresh(sample())) == expected


def test_equal_parts_are_one_object() -> None:
    slimmer = Slimmer()
    a, b = slimmer(fresh(sample())), slimmer(fresh(sample()))
    assert a is not b
    assert a["spec"]["containers"] is b["spec"]["containers"]
    assert a["metadata"]["labels"] is b["metadata"]["labels"]
    assert a["status"]["conditions"][0] is b["status"]["conditions"][0]
    assert a["status"]["conditions"] is not b["status"]["conditions"]


def test_parts_that_differ_stay_apart() -> None:
    slimmer = Slimmer()
    other = sample()
    other["metadata"]["labels"]["a"] = "c"
    a, b = slimmer(fresh(sample())), slimmer(fresh(other))
    assert a["metadata"]["labels"] == {"a": "b"} and b["metadata"]["labels"] == {"a": "c"}


def test_the_memory_of_the_slimmer_is_bounded() -> None:
    slimmer = Slimmer()
    for number in range(3 * slim.SHARED_MAX):
        slimmer({"kind": f"k{number}", "metadata": {"labels": {"number": str(number)}}})
    assert len(slimmer._shared) <= slim.SHARED_MAX + 1
    assert len(slimmer._strings) <= slim.STRINGS_MAX + 3


def test_what_has_not_changed_is_taken_from_the_state_before() -> None:
    slimmer = Slimmer()
    before = slimmer(fresh(sample()))
    changed = sample()
    changed["metadata"]["resourceVersion"] = "2"
    changed["status"]["phase"] = "Failed"
    after = slimmer(fresh(changed), before)
    del changed["metadata"]["managedFields"]
    assert after == changed
    assert after["spec"] is before["spec"] and after["metadata"]["labels"] is before["metadata"]["labels"]
    assert after["metadata"]["uid"] is before["metadata"]["uid"]


def test_a_spec_that_changed_is_not_taken_from_before() -> None:
    slimmer = Slimmer()
    before = slimmer(fresh(sample()))
    changed = sample()
    changed["spec"]["containers"][0]["image"] = "other"
    assert slimmer(fresh(changed), before)["spec"]["containers"][0]["image"] == "other"


MANAGED = [{"manager": "m", "fieldsV1": {"f:spec": {'k:{"type":"]},\"spec\":"}': {}, "f:x": {'v:["]"]': {}}}}}]


@pytest.mark.parametrize("wrap", [lambda obj: obj, lambda obj: {"type": "MODIFIED", "object": obj}])
@pytest.mark.parametrize("obj", [
    {"kind": "Pod", "metadata": {"name": "p", "managedFields": MANAGED}, "spec": {"a": [1]}, "status": {}},
    {"kind": "Pod", "metadata": {"name": "p", "managedFields": []}, "spec": {"a": [1]}},
    {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"a": [1]}},
    {"kind": "Lease", "metadata": {"name": "p", "managedFields": MANAGED}},
    {"kind": "Pod", "metadata": {"uid": "u", "managedFields": MANAGED, "name": "p"}, "spec": {"volumes": [{
        "ephemeral": {"volumeClaimTemplate": {"metadata": {"finalizers": ["f"]}, "spec": {}}}}]}},
    {"kind": "Pod", "metadata": {"managedFields": MANAGED, "name": "p"}, "spec": {"a": ["]},\"spec\":"]}},
])  # fmt: skip
def test_texts_are_decoded_without_the_managed_fields_or_as_they_are(
    obj: dict[str, Any], wrap: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    text = orjson.dumps(wrap(obj))
    decoded = decode_slim(text)
    found = decoded.get("object", decoded)
    bare = {**obj, "metadata": {k: v for k, v in obj["metadata"].items() if k != "managedFields"}}
    assert found in (bare, obj)
    if list(obj["metadata"])[-1] == "managedFields" and "spec" in obj:
        assert found == bare
