"""Pods that are bound alike share their status, and no other pods do."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.admission.base import IN_PROCESS
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.subresources.binding import BoundStatuses
from holokube.kube.types import JsonObject
from tests.apiserver.worlds import World, in_world
from tests.builders import pod

STRATEGIC = "application/strategic-merge-patch+json"


async def made(world: World) -> str:
    body = {**pod(), "metadata": {"generateName": "web-", "namespace": "default"}}
    name: str = (await world.create("pods", body))["metadata"]["name"]
    return name


async def bound(world: World, name: str) -> JsonObject:
    body = {
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": "default"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
    }  # fmt: skip
    await world.registry.subresources.handle(
        world.served("pods"), "default", name, "binding", "create", body=body, content_type="", query={},
        options=WriteOptions(), caller=IN_PROCESS,
    )  # fmt: skip
    return world.get("pods", name)


def test_pods_of_a_template_that_are_bound_at_an_instant_share_their_status() -> None:
    async def body(world: World) -> None:
        first, second, third = [await made(world) for _ in range(3)]
        one, two = await bound(world, first), await bound(world, second)
        assert one["status"] is two["status"]
        assert one["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
        await world.clock.sleep(60)
        later = await bound(world, third)
        assert later["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-01T00:01:00Z"

    in_world(body)


def test_a_status_that_tells_its_generation_gets_that_of_its_own_pod() -> None:
    statuses, before = BoundStatuses(), {"phase": "Pending", "observedGeneration": 1}
    found = [statuses.after(before, {"generation": generation}, "now") for generation in (1, 2, 1)]
    assert [status["conditions"][0]["observedGeneration"] for status in found] == [1, 2, 1]
    assert found[0] is found[2]
    assert "conditions" not in before


def test_another_status_at_the_same_place_in_memory_is_another_status() -> None:
    statuses = BoundStatuses()
    for number in range(200):
        # Nothing else holds it, so that the next one may well take its place.
        status = statuses.after({"phase": "Pending", "message": str(number)}, {}, "now")
        assert status["message"] == str(number)


kinds = st.sampled_from(["bind", "wait", "no room", "no room at all"])
steps = st.lists(st.tuples(st.integers(0, 3), kinds), max_size=12)


def history(chosen: list[tuple[int, str]]) -> list[bytes]:
    async def run(world: World) -> list[bytes]:
        names = [await made(world) for _ in range(4)]
        found = []
        for number, step in chosen:
            name = names[number]
            if step == "wait":
                await world.clock.sleep(1)
            elif step != "bind":
                condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": step}
                status = {"status": {"conditions": [condition]}}
                await world.patch("pods", name, status, kind=STRATEGIC, subresource="status")
            elif "nodeName" not in world.get("pods", name)["spec"]:
                await bound(world, name)
            found.append(orjson.dumps([world.get("pods", one) for one in names]))
        return found

    return in_world(run)


@settings(max_examples=30, deadline=None)
@given(steps)
def test_bound_pods_look_as_they_do_when_each_status_is_made_by_itself(chosen: list[tuple[int, str]]) -> None:
    short = history(chosen)
    usual = BoundStatuses.after

    def by_itself(_itself: BoundStatuses, *args: Any) -> JsonObject:
        return usual(BoundStatuses(), *args)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(BoundStatuses, "after", by_itself)
        assert short == history(chosen)
