"""The very same patch of the very same status is worked out once, and nobody can tell."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver import status_repeats
from holokube.apiserver.status_repeats import StatusRepeats
from holokube.kube.errors import ApiError
from tests.apiserver.worlds import MERGE, World, in_world
from tests.builders import pod

STRATEGIC = "application/strategic-merge-patch+json"
NOON, LATER = "2026-01-01T12:00:00Z", "2026-01-01T12:00:01Z"
JsonObject = dict[str, Any]


def of_template() -> JsonObject:
    made = pod()
    return {**made, "metadata": {"generateName": "web-", "namespace": "default"}}


def unschedulable(message: str, at: str = NOON) -> JsonObject:
    condition = {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
        "lastTransitionTime": at,
    }  # fmt: skip
    return {"conditions": [condition]}


steps = st.tuples(
    st.integers(0, 3),
    st.sampled_from([
        unschedulable("no room"), unschedulable("no room", LATER), unschedulable("no room at all"), {"reason": "r"},
        {"reason": None}, {"phase": "Running"}, {"conditions": None}, {"startTime": "never"},
    ]),
    st.sampled_from([MERGE, STRATEGIC]),
)  # fmt: skip


def outcomes(chosen: list[tuple[int, JsonObject, str]]) -> list[bytes]:
    async def run(world: World) -> list[bytes]:
        pods = [(await world.create("pods", of_template()))["metadata"]["name"] for _ in range(4)]
        found = []
        for number, status, kind in chosen:
            try:
                body = {"status": status}
                made: Any = await world.patch("pods", pods[number], body, kind=kind, subresource="status")
            except ApiError as problem:
                made = problem.to_status()
            found.append(orjson.dumps(made))
        return found

    return in_world(run)


class Forgetful(dict[Any, Any]):
    """Keeps nothing."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Forget it."""


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, min_size=1, max_size=12))
def test_patches_end_as_they_do_when_each_is_worked_out(chosen: list[tuple[int, JsonObject, str]]) -> None:
    short = outcomes(chosen)
    usual = StatusRepeats.__init__

    def forgetful(itself: StatusRepeats) -> None:
        usual(itself)
        itself._same, itself._opened = Forgetful(), Forgetful()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StatusRepeats, "__init__", forgetful)
        assert short == outcomes(chosen)


def test_pods_that_are_told_the_same_share_what_becomes_of_it() -> None:
    async def run(world: World) -> None:
        made = []
        for _ in range(4):
            name = (await world.create("pods", of_template()))["metadata"]["name"]
            body = {"status": unschedulable("no room")}
            made.append(await world.patch("pods", name, body, kind=STRATEGIC, subresource="status"))
        assert made[2]["status"] is made[3]["status"]
        assert made[2]["status"] == made[0]["status"]
        assert len({each["metadata"]["resourceVersion"] for each in made}) == 4

    in_world(run)


def test_what_is_said_of_containers_is_not_kept_and_the_rest_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_repeats, "KEPT_SAME", 2)

    async def run(world: World) -> None:
        repeats = world.registry.writes._status_writes._repeats
        for number in range(6):
            name = (await world.create("pods", of_template()))["metadata"]["name"]
            body = {"status": unschedulable(f"no room {number}")}
            await world.patch("pods", name, body, kind=STRATEGIC, subresource="status")
            assert len(repeats._same) <= 2
        before = dict(repeats._same)
        for number in range(3):
            name = (await world.create("pods", of_template()))["metadata"]["name"]
            container = {
                "name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0,
                "containerID": f"containerd://{number:064x}",
            }  # fmt: skip
            status = {"containerStatuses": [container]}
            await world.patch("pods", name, {"status": status}, kind=STRATEGIC, subresource="status")
        assert before and repeats._same == before

    in_world(run)
