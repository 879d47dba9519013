"""The provisioner: gathers pods, solves for them, and makes the claims that the answer asks for; over and over."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from holokube.base.clock import Clock
from holokube.base.identity import are_same
from holokube.base.log import get_logger
from holokube.karpenter.events import Publisher
from holokube.karpenter.metrics import PROVISIONED, KarpenterMetrics
from holokube.karpenter.provisioning.batcher import Batcher
from holokube.karpenter.provisioning.claims import ClaimMaker
from holokube.karpenter.provisioning.recording import PoolCheck, record, tell_failure
from holokube.karpenter.provisioning.selection import Ignored
from holokube.karpenter.provisioning.world import Scene, World
from holokube.karpenter.scheduling.problem import Problem, pod_key
from holokube.karpenter.scheduling.results import Results
from holokube.karpenter.state.cluster import ClusterState
from holokube.kube.types import JsonObject
from holokube.runtime.result import Result
from holokube.runtime.singleton import IMMEDIATE_DELAY_S, REQUEUE_IMMEDIATELY, Singleton
from holokube.runtime.stop import StopSignal

Solve = Callable[[Problem], Awaitable[Results]]
UNSYNCED_S: Final = 0.1
"""While claims are being launched, the next look at them; a batch that has come meanwhile is not lost."""


class Provisioner:
    """A component: the provisioning loop."""

    name = "provisioner"

    def __init__(
        self,
        clock: Clock,
        publisher: Publisher,
        metrics: KarpenterMetrics,
        state: ClusterState,
        world: World,
        batcher: Batcher,
        maker: ClaimMaker,
        solve: Solve,
    ) -> None:
        self._clock = clock
        self._publisher = publisher
        self._metrics = metrics
        self._state = state
        self._world = world
        self._batcher = batcher
        self._maker = maker
        self._solve = solve
        self._pool_check = PoolCheck(publisher)
        self._log = get_logger("holokube.karpenter.provisioner")
        self._loop = Singleton(clock, self.name, self.reconcile)
        self._waits_for_sync = False
        self._booked: dict[int, JsonObject] = {}
        """The pods of the last solve, by their identity, which is theirs for as long as they are kept here."""
        self._booked_in_order: Sequence[JsonObject] = ()
        """The same pods."""

    async def run(self, stop: StopSignal) -> None:
        self._waits_for_sync = False
        stop.add_callback(self._batcher.wake)
        try:
            await self._loop.run(stop)
        finally:
            stop.remove_callback(self._batcher.wake)

    async def reconcile(self) -> Result:
        """One batch."""
        if not self._waits_for_sync:
            # After a failure the next round without one counts, even if nothing comes in it.
            again_after_s = IMMEDIATE_DELAY_S if not self._loop.failures else None
            if not await self._batcher.wait(again_after_s=again_after_s):
                return REQUEUE_IMMEDIATELY
        self._waits_for_sync = not self._state.is_synced()
        if self._waits_for_sync:
            return Result(requeue_after_s=UNSYNCED_S)
        results = await self._schedule()
        if results is not None and results.new_claims:
            created = await self._maker.create_all(results.new_claims, PROVISIONED, nominate=True)
            for error in created.errors:
                self._log.error("creating nodeclaim failed", error=error.message)
        return REQUEUE_IMMEDIATELY

    async def _schedule(self) -> Results | None:
        """A solve for all that needs a place; None when nothing does."""
        scene = self._world.scene(self._state, self._world.provisioning_options())
        self._tell_ignored(scene.selection.ignored)
        pods = scene.pods
        if not pods:
            return None
        if not scene.problem.ordered_pools:
            self._log.info("no usable nodepools found", pods=len(pods))
            self._book(pods, map(pod_key, pods))
            return None
        self._pool_check.look_at(scene.problem)
        started_s = self._clock.monotonic()
        self._metrics.solve_begun(self.name, len(pods), lambda: self._clock.monotonic() - started_s)
        results = await self._solve(scene.problem)
        took_s = self._clock.monotonic() - started_s
        waiting = sum(error.is_reserved for error in results.failed.values())
        self._metrics.solve_finished(self.name, took_s, len(results.failed) - waiting)
        self._tell(scene, results, took_s)
        self._book(pods, results.failed)
        record(results, self._state, self._publisher)
        return results

    def _tell(self, scene: Scene, results: Results, took_s: float) -> None:
        if results.new_claims:
            self._log.info(
                "computed new nodeclaims to fit pods", nodeclaims=len(results.new_claims),
                pods=sum(len(claim.pods) for claim in results.new_claims), pending=len(scene.selection.pending),
                moving=len(scene.moving), duration_s=round(took_s, 3),
            )  # fmt: skip
        if results.timed_out:
            self._log.warning("scheduling ran out of time; the rest is left for the next pass")

    def _book(self, pods: Sequence[JsonObject], failed: Iterable[str]) -> None:
        """Notes that decisions were made; those about pods that are bound already are about capacity only."""
        without = set(failed)
        if not without and are_same(pods, self._booked_in_order):
            # While nodes come up the same pods wait for them, pass after pass.
            return
        before, booked = self._booked, {id(pod): pod for pod in pods}
        if not without and booked.keys() == before.keys():
            return
        now_s, times = self._clock.time(), self._state.pod_times
        self._booked, self._booked_in_order = booked, pods
        # Those of the last solve were decided upon when they were just like this.
        for pod in pods if without else [pod for one, pod in booked.items() if one not in before]:
            if (pod.get("spec") or {}).get("nodeName"):
                continue
            key = pod_key(pod)
            waited_s = times.decided(key, now_s)
            if waited_s is not None:
                self._metrics.pod_decided(waited_s)
            if key in without:
                times.no_place(key)

    def _tell_ignored(self, ignored: list[Ignored]) -> None:
        self._metrics.pods_ignored(len(ignored))
        for one in ignored:
            self._state.pod_times.no_place(pod_key(one.pod))
            if not one.is_wanted:
                tell_failure(self._publisher, one.pod, one.reason)
