from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from holokube.client.client import Client
from holokube.client.resources import POD_DISRUPTION_BUDGETS, PODS
from holokube.cluster_autoscaler.actuation.eviction import ENABLE_DS_EVICTION, Drain, Evictor, pods_to_evict
from holokube.cluster_autoscaler.cloud.errors import AutoscalerError, ErrorKind
from holokube.kube.types import JsonObject
from tests.builders import budget
from tests.cluster_autoscaler.actuation.world import World, node, pod, world


class _Noting(Client):
    """Writes down what is evicted, when, and with how much grace."""

    def __init__(self, found: World) -> None:
        super().__init__(found.client.transport)
        self._clock = found.clock
        self._began_s = found.clock.time()
        self.evictions: list[tuple[float, str, int | None]] = []

    async def evict(self, namespace: str, pod: str, *, grace_s: int | None = None, **options: Any) -> JsonObject:
        self.evictions.append((self._clock.time() - self._began_s, pod, grace_s))
        return await super().evict(namespace, pod, grace_s=grace_s, **options)


def _evictor(found: World, client: Client | None = None, **options: Any) -> Evictor:
    return Evictor(
        found.clock, client or found.client, replace(found.options, **options), found, found.tracker,
        lambda succeeded: found.pod_evicted(succeeded=succeeded))


async def _with_kubelet(found: World, drain: Any) -> Drain:
    kubelet = asyncio.create_task(found.kubelet())
    try:
        result: Drain = await drain
    finally:
        kubelet.cancel()
        await asyncio.wait([kubelet])
    return result


def _daemon(name: str, wish: str | None = None) -> JsonObject:
    annotations = {} if wish is None else {ENABLE_DS_EVICTION: wish}
    return pod(name, "a", owner="DaemonSet", annotations=annotations)


def test_mirror_pods_are_never_evicted_and_daemon_set_pods_as_they_wish() -> None:
    mirror = pod("m", "a", owner="", annotations={"kubernetes.io/config.mirror": "x"})
    plain, yes, no, silent = pod("p", "a"), _daemon("y", "true"), _daemon("n", "false"), _daemon("s")
    pods = [mirror, plain, yes, no, silent]
    assert pods_to_evict(pods, daemon_sets_by_default=True) == ([yes, silent], [plain])
    assert pods_to_evict(pods, daemon_sets_by_default=False) == ([yes], [plain])


def test_all_pods_are_evicted_at_once_and_waited_for() -> None:
    with world(node("a"), pod("p", "a"), pod("q", "a")) as found:
        client = _Noting(found)
        drain = found.cluster.run(_with_kubelet(found, _evictor(found, client).drain("a", found.pods)))
        assert drain.error is None
        assert all(result.is_successful for result in drain.results.values())
        assert [at_s for at_s, _, _ in client.evictions] == [0.0, 0.0]
        assert found.cluster.run(found.client.list(PODS)).items == []
        assert found.reasons("p") == ["ScaleDown"]
        assert found.observed == [("evicted", True)] * 2


@pytest.mark.parametrize(("pod_s", "max_s", "given_s"), [(30, 600, 30), (900, 600, 600), (900, 0, 900)])
def test_the_grace_of_a_pod_is_limited(pod_s: int, max_s: int, given_s: int) -> None:
    with world(node("a"), pod("p", "a", grace_s=pod_s)) as found:
        client = _Noting(found)
        evictor = _evictor(found, client, max_graceful_termination_sec=max_s)
        found.cluster.run(_with_kubelet(found, evictor.drain("a", found.pods)))
        assert client.evictions == [(0.0, "p", given_s)]


def test_a_pod_that_a_budget_protects_is_asked_for_again_every_ten_seconds() -> None:
    with world(node("a"), pod("p", "a"), budget("b", "a", allowed=0)) as found:
        client = _Noting(found)

        async def main() -> Drain:
            async def allow() -> None:
                await found.clock.sleep(25)
                status = {"status": {"disruptionsAllowed": 1}}
                await found.client.patch_status(POD_DISRUPTION_BUDGETS, "b", status, namespace="default")

            async with asyncio.TaskGroup() as group:
                group.create_task(allow())
                drain = group.create_task(_with_kubelet(found, _evictor(found, client).drain("a", found.pods)))
            return drain.result()

        assert found.cluster.run(main()).error is None
        assert [at_s for at_s, _, _ in client.evictions] == [0, 10, 20, 30]


def test_after_two_minutes_the_drain_fails_and_says_so() -> None:
    with world(node("a"), pod("p", "a"), budget("b", "a", allowed=0)) as found:
        client = _Noting(found)
        drain = found.cluster.run(_evictor(found, client).drain("a", found.pods))
        assert isinstance(drain.error, AutoscalerError) and drain.error.kind is ErrorKind.API_CALL
        assert "default/p" in drain.error.message
        assert [at_s for at_s, _, _ in client.evictions] == [float(at_s) for at_s in range(0, 120, 10)]
        assert drain.results["default/p"].timed_out
        assert found.reasons("p") == ["ScaleDown", "ScaleDownFailed"]
        assert found.observed == [("evicted", False)]


def test_a_pod_that_does_not_die_fails_the_drain_after_its_grace_and_half_a_minute() -> None:
    with world(node("a"), pod("p", "a")) as found:
        began_s = found.clock.time()
        drain = found.cluster.run(_evictor(found, max_graceful_termination_sec=60).drain("a", found.pods))
        assert isinstance(drain.error, AutoscalerError) and drain.error.kind is ErrorKind.TRANSIENT
        assert found.clock.time() - began_s == pytest.approx(90)
        assert drain.results["default/p"].timed_out


def test_a_pod_that_is_gone_already_counts_as_evicted() -> None:
    with world(node("a"), pod("p", "a")) as found:
        async def main() -> Drain:
            await found.client.delete(PODS, "p", "default", grace_s=0)
            return await _evictor(found).drain("a", found.pods)

        drain = found.cluster.run(main())
        assert drain.error is None and drain.results["default/p"].is_successful


def test_a_pod_of_the_same_name_elsewhere_is_spared() -> None:
    with world(node("a"), node("b"), pod("p", "a")) as found:
        async def main() -> None:
            await found.client.delete(PODS, "p", "default", grace_s=0)
            fresh = pod("p", "b", owner="")
            await found.client.create(PODS, fresh)
            drain = await _evictor(found).drain("a", found.pods)
            assert drain.error is None
            assert "deletionTimestamp" not in (await found.client.get(PODS, "p", "default"))["metadata"]

        found.cluster.run(main())


def test_daemon_set_pods_are_evicted_without_waiting_for_them() -> None:
    with world(node("a"), _daemon("d"), pod("p", "a")) as found:
        client = _Noting(found)

        async def main() -> Drain:
            async def kill_p() -> None:
                await found.clock.sleep(3)
                await found.client.delete(PODS, "p", "default", grace_s=0)

            async with asyncio.TaskGroup() as group:
                group.create_task(kill_p())
                drain = group.create_task(_evictor(found, client).drain("a", found.pods))
            return drain.result()

        assert found.cluster.run(main()).error is None
        assert sorted(name for _, name, _ in client.evictions) == ["d", "p"]
        assert set(found.cluster.run(main_names(found))) == {"d"}


async def main_names(found: World) -> list[str]:
    return [item["metadata"]["name"] for item in (await found.client.list(PODS)).items]


def test_daemon_set_pods_of_an_empty_node_stay_unless_asked_for() -> None:
    with world(node("a"), _daemon("d"), _daemon("y", "true")) as found:
        client = _Noting(found)
        found.cluster.run(_evictor(found, client).evict_daemons("a", found.pods))
        assert [name for _, name, _ in client.evictions] == ["y"]
        client = _Noting(found)
        evictor = _evictor(found, client, daemonset_eviction_for_empty_nodes=True)
        found.cluster.run(evictor.evict_daemons("a", found.pods))
        assert sorted(name for _, name, _ in client.evictions) == ["d", "y"]


def _with_priority(name: str, priority: int) -> JsonObject:
    found = pod(name, "a")
    found["spec"]["priority"] = priority
    return found


def test_bands_are_evicted_one_after_the_other_and_daemon_set_pods_with_them() -> None:
    daemon = _daemon("d")
    daemon["spec"]["priority"] = 2000
    with world(node("a"), _with_priority("high", 1000), _with_priority("low", 0), daemon) as found:
        client = _Noting(found)
        evictor = _evictor(found, client, drain_priority_config=((0, 10), (1000, 20), (2000, 5)))
        drain = found.cluster.run(_with_kubelet(found, evictor.drain("a", found.pods)))
        assert drain.error is None
        assert client.evictions == [(0.0, "low", 10), (5.0, "high", 20), (10.0, "d", 5)]
        assert set(drain.results) == {"default/high", "default/low", "default/d"}


def test_a_band_that_fails_leaves_the_later_ones_alone() -> None:
    with world(node("a"), _with_priority("high", 1000), _with_priority("low", 0), budget("b", "a", allowed=0)) as found:
        client = _Noting(found)
        evictor = _evictor(found, client, drain_priority_config=((0, 10), (1000, 20)))
        drain = found.cluster.run(evictor.drain("a", found.pods))
        assert {name for _, name, _ in client.evictions} == {"low"}
        error = drain.results["default/high"].error
        assert isinstance(error, AutoscalerError) and error.kind is ErrorKind.UNEXPECTED_SCALE_DOWN_STATE
