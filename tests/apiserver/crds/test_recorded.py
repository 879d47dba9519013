"""Answers of a real kube-apiserver 1.36.3 to good and bad CRDs and custom objects, against the rules here.

``definitions`` and ``objects`` were recorded with ``dryRun=All``, ``fleet`` is one conversation about one object.
Left out is what differs knowingly: costs and result types of rules, and Go's own print of a whole schema.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from holokube.kube.types import JsonObject
from tests.apiserver.crds.steps import (
    GROUP,
    PLURAL,
    RECORDED,
    ask_create,
    ask_patch,
    define,
    expected_causes,
    recorded,
)
from tests.apiserver.worlds import World, in_world

pytest.importorskip("cel")


@pytest.mark.parametrize("case", [pytest.param(case, id=case["name"]) for case in recorded("definitions")])
def test_a_definition_is_taken_or_refused_as_by_the_real_server(case: JsonObject) -> None:
    async def test(world: World) -> None:
        answer = await ask_create(world, GROUP, PLURAL, case["body"])
        assert answer.causes == expected_causes(case)
        assert (answer.code, sorted(answer.warnings)) == (case["code"], case["warnings"])

    in_world(test)


def test_objects_are_checked_and_shaped_as_by_the_real_server() -> None:
    book = recorded("objects")

    async def test(world: World) -> list[Any]:
        await define(world, book["definition"])
        names = book["definition"]["spec"]["names"]
        group = book["definition"]["spec"]["group"]
        differences = []
        for case in book["cases"]:
            meta = {"name": "t", "namespace": "default"}
            body = {
                "apiVersion": f"{group}/v1",
                "kind": names["kind"],
                "metadata": meta,
                "spec": case["spec"],
            }
            answer = await ask_create(world, group, names["plural"], body)
            wanted = (case["code"], case.get("stored"), expected_causes(case))
            found = (answer.code, answer.obj.get("spec"), answer.causes)
            if found != wanted:
                differences.append((case["spec"], wanted, found))
        return differences

    assert in_world(test) == []


def test_a_conversation_about_a_fleet_goes_as_with_the_real_server() -> None:
    crd = yaml.safe_load((RECORDED.parent / "fleet.yaml").read_text())
    group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]

    async def test(world: World) -> list[Any]:
        await define(world, crd)
        differences = []
        for case in recorded("fleet"):
            body = case["body"]
            if case["name"].startswith("create"):
                answer = await ask_create(world, group, plural, body, dry_run=case["name"] == "create")
            else:
                door = "status" if case["name"].endswith("status") else ""
                answer = await ask_patch(world, group, plural, "u", body, subresource=door)
            found = (answer.code, answer.causes)
            wanted = (case["code"], expected_causes(case))
            if "stored" in case:
                meta = answer.obj.get("metadata", {})
                parts = {key: answer.obj[key] for key in ("spec", "status") if key in answer.obj}
                found += (parts, meta.get("generation"))
                wanted += (case["stored"], case["generation"])
            if found != wanted:
                differences.append((body, wanted, found))
        return differences

    assert in_world(test) == []
