"""Pods of one template are created after the pattern of the first, as long as nothing changes that had a part in it."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from holokube.apiserver.admission.base import IN_PROCESS, Attributes, Caller, Plugin
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.repeats import Repeats
from holokube.apiserver.writes import Writes
from holokube.kube.errors import ApiError
from holokube.kube.types import JsonObject
from tests.apiserver.worlds import World, in_world
from tests.builders import pod


def of_template(**spec: Any) -> JsonObject:
    made = pod()
    meta = {"generateName": "web-", "namespace": "default", "labels": {"app": "web"}}
    return {**made, "metadata": meta, "spec": {**made["spec"], **spec}}


@pytest.fixture
def alike(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of those that were created after a pattern."""
    found: list[str] = []
    usual = Writes._create_alike

    async def noted(itself: Writes, *args: Any) -> Any:
        made = await usual(itself, *args)
        found.append(made.stored.obj["metadata"]["name"])
        return made

    monkeypatch.setattr(Writes, "_create_alike", noted)
    return found


CHANGES: dict[str, tuple[str, str, JsonObject]] = {
    "a priority class": ("priorityclasses", "scheduling.k8s.io", {
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7,
        "globalDefault": True,
    }),
    "a limit range": ("limitranges", "", {
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "default"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "70m"}}]},
    }),
    "an account": ("serviceaccounts", "", {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"},
        "imagePullSecrets": [{"name": "s"}],
    }),
    "a quota": ("resourcequotas", "", {
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"},
        "spec": {"hard": {"pods": "0"}},
    }),
    "a runtime": ("runtimeclasses", "node.k8s.io", {
        "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "r"}, "handler": "r",
        "overhead": {"podFixed": {"cpu": "5m"}},
    }),
    "a namespace": ("namespaces", "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}),
}  # fmt: skip


async def history(world: World, change: str) -> list[bytes]:
    """What is answered to the same creation again and again, before and after something changes."""
    found: list[bytes] = []

    async def ask() -> None:
        for _ in range(3):
            try:
                found.append(orjson.dumps(await world.create("pods", of_template(serviceAccountName="robot"))))
            except ApiError as problem:
                found.append(str(problem).encode())
            await world.clock.sleep(1)

    await ask()
    plural, group, body = CHANGES[change]
    await world.create(plural, body, group)
    if plural == "resourcequotas":
        counted = {"hard": {"pods": "0"}, "used": {"pods": "0"}}
        await world.patch(plural, "q", {"status": counted}, subresource="status")
    await ask()
    return found


@pytest.mark.parametrize("change", CHANGES)
def test_pods_come_out_as_they_do_when_each_is_looked_at(change: str, alike: list[str]) -> None:
    short = in_world(lambda world: history(world, change))
    assert len(alike) >= 2
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Repeats, "pattern", lambda *_: None)
        long = in_world(lambda world: history(world, change))
    assert short == long


def test_a_change_of_what_admission_looks_at_makes_it_look_again(alike: list[str]) -> None:
    async def body(world: World) -> None:
        for change, (plural, group, made) in CHANGES.items():
            first = await world.create("pods", of_template())
            again = await world.create("pods", of_template())
            assert alike == [again["metadata"]["name"]], change
            assert again["metadata"]["labels"] is first["metadata"]["labels"]
            await world.create(plural, made, group)
            alike.clear()
            await world.create("pods", of_template())
            assert alike == [], change
            await world.delete(plural, made["metadata"]["name"], group)
            alike.clear()

    in_world(body)


def test_other_namespaces_other_times_and_dry_runs_are_not_taken_for_the_same(alike: list[str]) -> None:
    async def body(world: World) -> None:
        await world.create("namespaces", CHANGES["a namespace"][2])
        nowhere = of_template()
        del nowhere["metadata"]["namespace"]
        served = world.served("pods")
        for namespace in ("default", "other", "default", "other"):
            made = await world.registry.create(served, namespace, nowhere, WriteOptions(), IN_PROCESS)
            assert made.stored.obj["metadata"]["namespace"] == namespace
        assert alike == []
        await world.create("pods", of_template())
        await world.create("pods", of_template())
        tried = await world.create("pods", of_template(), dry_run=True)
        assert alike == [] and tried["metadata"].get("resourceVersion") is None
        assert (await world.create("pods", of_template()))["metadata"]["name"] in alike

    in_world(body)


def test_whoever_creates_it_owns_it(alike: list[str]) -> None:
    async def body(world: World) -> None:
        served = world.served("pods")
        for manager in ("one", "two", "three"):
            options, caller = WriteOptions(field_manager=manager), Caller(manager)
            made = await world.registry.create(served, "default", of_template(), options, caller)
            assert [entry["manager"] for entry in made.stored.obj["metadata"]["managedFields"]] == [manager]
        assert len(alike) == 2

    in_world(body)


def test_a_plugin_that_does_not_say_what_it_looks_at_sees_every_pod(alike: list[str]) -> None:
    class Counting(Plugin):
        resources = frozenset({("", "pods")})
        seen = 0

        def mutate(self, attributes: Attributes) -> None:
            assert attributes.obj is not None
            Counting.seen += 1
            attributes.obj["metadata"]["labels"]["number"] = str(Counting.seen)

    async def body(world: World) -> None:
        for _ in range(2):
            await world.create("pods", of_template())
        assert len(alike) == 1
        world.registry.admission.add(Counting())
        for number in (1, 2, 3):
            made = await world.create("pods", of_template())
            assert made["metadata"]["labels"]["number"] == str(number)
        assert len(alike) == 1

    in_world(body)


def test_where_accounts_are_strict_every_token_has_a_name_of_its_own(alike: list[str]) -> None:
    async def body(world: World) -> None:
        await world.create("pods", of_template())
        await world.create("pods", of_template())
        world.registry.admission.assumes_default_service_account = True
        world.registry.admission.strict_service_accounts = True
        volumes = {(await world.create("pods", of_template()))["spec"]["volumes"][0]["name"] for _ in range(3)}
        assert len(volumes) == 3 and len(alike) == 1

    in_world(body)


def test_pods_that_name_their_node_carry_its_present_labels(alike: list[str]) -> None:
    async def body(world: World) -> None:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": {}}}
        await world.create("nodes", node)
        for zone in ("a", "b"):
            await world.patch("nodes", "n", {"metadata": {"labels": {"topology.kubernetes.io/zone": zone}}})
            made = await world.create("pods", of_template(nodeName="n"))
            assert made["metadata"]["labels"]["topology.kubernetes.io/zone"] == zone
        assert alike == []

    in_world(body)
