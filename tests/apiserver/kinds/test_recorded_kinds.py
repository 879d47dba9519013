"""Whole conversations with a real kube-apiserver 1.36.3, good requests and bad ones, against the rules here.

Most steps are creations with ``dryRun=All``; the others create an object, change it and its status in allowed and
forbidden ways, and look at it. Steps without an answer were disturbed by a controller of the real cluster; they are
sent all the same, because later steps build on them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from holokube.apiserver.kinds.other_registry import OTHER_KINDS
from holokube.kube.types import JsonObject
from tests.apiserver.kinds.replay import send
from tests.apiserver.worlds import World, in_world

_RECORDED = Path(__file__).parent / "recorded"
_FAMILIES = ("core", "services", "storage_and_scaling", "networking_and_roles", "admission_and_devices", "warnings")


def _cases() -> list[Any]:
    found: list[Any] = []
    for family in _FAMILIES:
        items: list[JsonObject] = orjson.loads((_RECORDED / f"{family}.json").read_bytes())
        found.extend(pytest.param(item, id=f"{family}: {item['case']}") for item in items)
    return found


@pytest.mark.parametrize("item", _cases())
def test_every_answer_is_the_one_of_the_real_server(item: JsonObject) -> None:
    async def conversation(world: World) -> None:
        await world.create("namespaces", {"metadata": {"name": "lab"}})
        for step in item["steps"]:
            answer = await send(world, step)
            if "answer" in step:
                wanted = step["answer"]
                answer["warnings"] = [w for w in answer.get("warnings", []) if "is deprecated in v1.33+" not in w]
                if "object" in wanted:
                    wanted["warnings"] = [w for w in wanted["warnings"] if "is deprecated in v1.33+" not in w]
                else:
                    answer.pop("warnings")
                assert answer == wanted, (step["method"], step["path"], step["body"])

    in_world(conversation)


def test_the_recordings_hold_every_kind_registered_here() -> None:
    seen = set()
    for case in _cases():
        for step in case.values[0]["steps"]:
            parts = step["path"].partition("?")[0].strip("/").split("/")
            group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
            seen.add((group, rest[2] if rest[0] == "namespaces" and len(rest) > 2 else rest[0]))
    missing = set(OTHER_KINDS) - seen - {("apiextensions.k8s.io", "customresourcedefinitions")}
    assert not missing
