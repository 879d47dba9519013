"""Writes that are made at once, as plain calls, end as those that go the ordinary way."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.admission.base import Attributes, Plugin
from holokube.apiserver.at_once import AtOnce
from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.deletes import Deletes
from holokube.apiserver.registry import Registry
from holokube.apiserver.status_writes import StatusWrites
from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client import inprocess
from holokube.client.client import Client, PatchType
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import DEPLOYMENTS, NODES, PODS, RESOURCE_QUOTAS, VALIDATING_WEBHOOK_CONFIGURATIONS
from holokube.kube.errors import ApiError, NotFound
from holokube.kube.types import JsonObject
from holokube.store.journal import SqliteJournal
from holokube.store.store import Store
from tests.apiserver.admission.test_has_no_say import HOOK, QUOTA
from tests.builders import deployment, node, pod

NOON, LATER = "2026-01-01T12:00:00Z", "2026-01-01T12:00:01Z"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"


def of_template(number: int) -> JsonObject:
    made = pod(nodeSelector={"disk": str(number)})
    labels = {"app": f"a{number}"}
    return {**made, "metadata": {"generateName": f"web-{number}-", "namespace": "default", "labels": labels}}


def running(number: int, at: str, address: str = "") -> JsonObject:
    address = address or f"10.0.0.{number}"
    return {
        "phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "startTime": at,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at}],
        "containerStatuses": [{
            "name": "c", "image": "registry.example/app:1", "imageID": "", "ready": True, "restartCount": 0,
            "state": {"running": {"startedAt": at}}, "containerID": f"containerd://{number:064x}",
        }],
    }  # fmt: skip


def ended(number: int, at: str) -> JsonObject:
    status = running(number, NOON)
    state = {"terminated": {"exitCode": 0, "startedAt": NOON, "finishedAt": at}}
    status["containerStatuses"][0] |= {"ready": False, "state": state}
    return {**status, "phase": "Succeeded"}


NUMBERS = st.integers(0, 3)
STATUSES = st.one_of(
    st.builds(running, NUMBERS, st.sampled_from([NOON, LATER, "2026-02-30T12:00:00Z"]), st.sampled_from(["", "x"])),
    st.builds(ended, NUMBERS, st.sampled_from([NOON, LATER])),
    st.sampled_from([{"reason": "r"}, {"reason": None}, {"phase": "Failed"}, {"unknown": 1}, [], None]),
)
STEPS = st.one_of(
    st.tuples(st.just("create"), st.integers(0, 1)),
    st.tuples(st.just("bind"), NUMBERS, st.sampled_from(["a", "b", "gone", "bad name", ""]), st.booleans()),
    st.tuples(st.just("patch"), NUMBERS, STATUSES, st.sampled_from([PatchType.MERGE, PatchType.STRATEGIC])),
    st.tuples(st.just("delete"), NUMBERS, st.sampled_from([None, 0, 5]), st.booleans()),
    st.tuples(
        st.just("replace"), NUMBERS,
        st.sampled_from([{"replicas": 1}, {"replicas": 2, "observedGeneration": 1}, {"replicas": -1}, {"x": 1}, []]),
    ),
    st.tuples(st.sampled_from(["quota", "hook", "wait"])),
)  # fmt: skip


async def take(client: Client, clock: VirtualClock, names: list[str], step: tuple[Any, ...]) -> Any:
    kind = step[0]
    if kind == "create":
        made = await client.create(PODS, of_template(step[1]), "default")
        names.append(made["metadata"]["name"])
        return made
    if kind == "quota":
        return await client.create(RESOURCE_QUOTAS, {**QUOTA, "metadata": {"name": "q"}}, "default")
    if kind == "hook":
        return await client.create(VALIDATING_WEBHOOK_CONFIGURATIONS, HOOK)
    if kind == "wait":
        return await clock.sleep(1)
    if kind == "replace":
        known = await client.get(DEPLOYMENTS, "d", "default")
        return await client.update_status(DEPLOYMENTS, {**known, "status": step[2]}, "default")
    name = names[step[1]] if step[1] < len(names) else "nobody"
    if kind == "bind":
        return await client.bind("default", name, step[2], uid="" if step[3] else "another")
    if kind == "patch":
        return await client.patch_status(PODS, name, {"status": step[2]}, namespace="default", type=step[3])
    return await client.delete(PODS, name, "default", grace_s=step[2], uid="" if step[3] else "another")


def outcomes(steps: list[tuple[Any, ...]], *, tracks: bool) -> list[bytes]:
    async def main(clock: VirtualClock) -> list[bytes]:
        registry = Registry(clock, Rng("tests"), Store(), tracks_managed_fields=tracks)
        await bootstrap(registry)
        client, found, names = Client(InProcessTransport(registry)), [], []
        await client.create(NODES, node("a", **{ZONE: "z", REGION: "r", "other": "o"}))
        await client.create(NODES, node("b"))
        await client.create(DEPLOYMENTS, deployment("d"), "default")
        # Each step twice: what is learnt the first time is used the second.
        for step in steps:
            for one in (step, (step[0], (step[1] + 1) % 4, *step[2:]) if len(step) > 2 else step):
                try:
                    made = await take(client, clock, names, one)
                except ApiError as problem:
                    made = problem.to_status()
                found.append(orjson.dumps(made))
        states = [stored for _, stored in registry.store.list("pods").items]
        found.extend(stored.raw + str((stored.checked, stored.settled)).encode() for stored in states)
        watch = registry.store.watch("pods", since=1)
        found.extend(f"{event.type} {event.key} ".encode() + event.stored.raw for event in watch.pop_all())
        return found

    return run_virtual(main)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=14), st.booleans())
def test_they_end_as_they_do_the_ordinary_way(steps: list[tuple[Any, ...]], tracks: bool) -> None:
    steps = [("create", 0), ("create", 0), *steps]
    at_once = outcomes(steps, tracks=tracks)
    with pytest.MonkeyPatch.context() as patched:
        for where, what, answer in (
            (AtOnce, "create", None), (StatusWrites, "patch_at_once", None), (StatusWrites, "replace_at_once", None),
            (Deletes, "delete_at_once", None), (inprocess, "bind_at_once", False),
        ):  # fmt: skip
            patched.setattr(where, what, lambda *_, answer=answer: answer)
        assert at_once == outcomes(steps, tracks=tracks)


class Counting:
    """How many writes were made at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[str] = []
        for where, what in (
            (AtOnce, "create"), (StatusWrites, "patch_at_once"), (Deletes, "delete_at_once"),
            (inprocess, "bind_at_once"),
        ):  # fmt: skip
            monkeypatch.setattr(where, what, self._counted(what, getattr(where, what)))

    def _counted(self, what: str, usual: Any) -> Any:
        def counted(*args: Any) -> Any:
            answer = usual(*args)
            if answer:
                self.made.append(what)
            return answer

        return counted


async def lives(client: Client, count: int = 3) -> None:
    await client.create(NODES, node("a", **{ZONE: "z"}))
    for number in range(count):
        name = (await client.create(PODS, of_template(0), "default"))["metadata"]["name"]
        await client.bind("default", name, "a")
        patch = {"status": running(number, NOON)}
        await client.patch_status(PODS, name, patch, namespace="default", type=PatchType.STRATEGIC)
        await client.delete(PODS, name, "default")
        await client.delete(PODS, name, "default", grace_s=0)
        with pytest.raises(NotFound):
            await client.get(PODS, name, "default")


def test_the_usual_life_of_a_pod_is_made_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting(monkeypatch)

    async def main(clock: VirtualClock) -> None:
        registry = Registry(clock, Rng("tests"), Store())
        await bootstrap(registry)
        await lives(Client(InProcessTransport(registry)))

    run_virtual(main)
    assert counting.made[-5:] == ["create", "bind_at_once", "patch_at_once", "delete_at_once", "delete_at_once"]


def test_a_plugin_that_wants_to_see_them_sees_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Seeing(Plugin):
        operations = frozenset({"CREATE", "UPDATE", "DELETE"})
        resources = frozenset({("", "pods")})
        subresources = None
        seen: list[str] = []  # noqa: RUF012 - one test

        def validate(self, attributes: Attributes) -> None:
            self.seen.append(f"{attributes.operation} {attributes.subresource}".strip())

    counting = Counting(monkeypatch)

    async def main(clock: VirtualClock) -> None:
        registry = Registry(clock, Rng("tests"), Store())
        await bootstrap(registry)
        registry.admission.add(Seeing())
        await lives(Client(InProcessTransport(registry)), 2)

    run_virtual(main)
    assert not counting.made
    assert Seeing.seen == ["CREATE", "CREATE binding", "UPDATE status", "DELETE", "DELETE"] * 2


def test_what_has_to_be_on_disk_first_is_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    counting = Counting(monkeypatch)

    async def main(clock: VirtualClock) -> None:
        store = Store(journal=SqliteJournal(tmp_path), commit_inline=True)
        registry = Registry(clock, Rng("tests"), store)
        await bootstrap(registry)
        await lives(Client(InProcessTransport(registry)), 2)
        assert store.durable_revision == store.revision
        store.close()

    run_virtual(main)
    assert not counting.made


def test_a_name_that_is_taken_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(clock: VirtualClock) -> list[str]:
        registry = Registry(clock, Rng("tests"), Store())
        await bootstrap(registry)
        client = Client(InProcessTransport(registry))
        drawn = iter(["one", "two", "two", "two", "six"])
        monkeypatch.setattr(Rng, "name_suffix", lambda _: next(drawn))
        made = [await client.create(PODS, of_template(0), "default") for _ in range(3)]
        return [each["metadata"]["name"] for each in made]

    counting = Counting(monkeypatch)
    assert run_virtual(main) == ["web-0-one", "web-0-two", "web-0-six"]
    assert counting.made == ["create", "create"]
