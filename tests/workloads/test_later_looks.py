"""A later look that the last look did not ask for does not happen; every other one does."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.client.resources import DEPLOYMENTS, REPLICA_SETS
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.stop import StopSignal
from holokube.workloads import deployment_controller, replica_set_controller
from holokube.workloads.deployment_controller import DeploymentReconciler
from holokube.workloads.later_looks import LaterLooks
from holokube.workloads.replica_set_controller import ReplicaSetReconciler
from tests.workloads.test_replica_set_controller import replica_set
from tests.workloads.world import World


def test_what_failed_or_asked_for_a_look_gets_it_and_nothing_else() -> None:
    answers: list[Result | Exception | None] = [Result(5), None, ValueError("no"), Result(1), None]

    async def reconcile(_key: str) -> Result | None:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def go() -> None:
        looks = LaterLooks(reconcile)
        assert looks.postpone("a") == math.inf
        assert await looks.reconcile("a") == Result(5)
        assert looks.postpone("a") is None and looks.postpone("b") == math.inf
        assert await looks.reconcile("a") is None
        assert looks.postpone("a") == math.inf
        with pytest.raises(ValueError, match="no"):
            await looks.reconcile("a")
        assert looks.postpone("a") is None
        assert await looks.reconcile("a") == Result(1)
        assert await looks.reconcile("a") is None
        assert looks.postpone("a") == math.inf

    run_virtual(lambda _clock: go())


def test_a_controller_looks_later_only_where_the_last_look_asked_for_it() -> None:
    looked: list[tuple[float, str]] = []

    async def go(clock: VirtualClock) -> None:
        async def reconcile(key: str) -> Result | None:
            looked.append((clock.monotonic() - start_s, key))
            first = sum(one == key for _, one in looked) == 1
            return Result(5) if first or (key == "waits" and len(looked) < 5) else None

        start_s = clock.monotonic()
        looks, stop = LaterLooks(reconcile), StopSignal()
        controller = Controller(clock, "test", looks.reconcile, postpone=looks.postpone)
        for key in ("told", "waits"):
            controller.enqueue(key)

        async def tell() -> None:
            await clock.sleep(1)
            controller.enqueue("told")
            await clock.sleep(30)
            stop.set("done")

        await asyncio.gather(controller.run(stop), tell())

    run_virtual(go)
    assert [(round(at_s), key) for at_s, key in looked] == [
        (0, "told"), (0, "waits"), (1, "told"), (5, "waits"), (10, "waits"),
    ]  # fmt: skip


@pytest.mark.parametrize("reconciler", [ReplicaSetReconciler, DeploymentReconciler])
def test_a_rollout_that_is_over_is_not_looked_at_again(
    monkeypatch: pytest.MonkeyPatch, reconciler: type[ReplicaSetReconciler | DeploymentReconciler]
) -> None:
    looks: list[str] = []
    usual = reconciler.reconcile

    async def counted(self: Any, key: str) -> Result | None:
        looks.append(key)
        return await usual(self, key)

    monkeypatch.setattr(reconciler, "reconcile", counted)
    with World([replica_set_controller.build, deployment_controller.build]) as world:
        its_set = replica_set(replicas=2)
        world.create(DEPLOYMENTS, {**its_set, "kind": "Deployment"})
        world.pass_time(4)
        assert world.get(DEPLOYMENTS, "web")["status"]["availableReplicas"] == 2
        assert looks
        looks.clear()
        world.pass_time(3_600)
        assert not looks
        (made,) = world.cluster.run(world.client.list(REPLICA_SETS)).items
        world.patch(REPLICA_SETS, made["metadata"]["name"], {"metadata": {"annotations": {"a": "b"}}})
        world.pass_time(1)
        assert looks
