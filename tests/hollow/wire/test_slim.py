"""Objects become smaller, and stay equal."""

from __future__ import annotations

import copy
from typing import Any

import orjson

from holokube.hollow.wire import slim
from holokube.hollow.wire.slim import Slimmer
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
