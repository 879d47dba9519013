"""A cluster on virtual time that is larger than it needs to be, and a policy, until that finds nothing more to do."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Final

from tests.karpenter.checker_inputs import check_placements
from tests.karpenter.disruption import clusters
from tests.karpenter.lab import Lab, lab
from tests.karpenter.restored import PACKING, objects_of, scheduled_by

from holokube.apiserver.restore import restore
from holokube.cluster.components import PARTS, Part
from holokube.cluster.living import LivingOptions
from holokube.cluster.optimal_policy import OPTIMAL
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.optimal.global_method import LOOK_EVERY_S
from holokube.karpenter.optimal.strategy import optimal_strategy
from holokube.karpenter.scheduling.problem import Problem
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.karpenter.strategy import KARPENTER, Strategy
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import Catalog
from holokube.scheduler.profiles import Profile
from holokube.testing import Cluster

SAMPLE_EVERY_S: Final = 30.0
QUIET_S: Final = 900.0
"""For so long nothing may change: Karpenter looks again at least every five minutes."""
QUIET_OPTIMAL_S: Final = 2 * LOOK_EVERY_S + 300.0
"""In this, global consolidation looks at least twice."""
LIMIT_S: Final = 24 * 3600.0
REGISTRATION_DELAY: Final = "30s"
"""What a machine takes to come up, as in a real cloud."""


@dataclass(frozen=True)
class Shrunk:
    """What became of a cluster."""

    nodes_before: int
    nodes_after: int
    price_before: float
    price_after: float
    pods: int
    pending: int
    hours: float
    """Virtual ones, until the last change."""
    has_ended: bool
    """Whether nothing was left to do; otherwise time was up."""
    wall_s: float
    for_pods: int
    """Claims made for pods that found no place."""
    as_replacements: int
    """Claims made by consolidation."""
    problem: Problem
    """All pods that run in the end, and no nodes: what the bound is for."""
    violations: list[str]
    """Rules that pods break where they are in the end, as the independent checker sees it."""


def shrink(
    shape: clusters.Shape, seed: int, policy: str = "karpenter", *,
    scheduler: Profile = PACKING, limit_s: float = LIMIT_S,
) -> Shrunk:  # fmt: skip
    """Put the cluster of that seed onto an API server, and let time pass until nothing changes any more.

    The scheduler packs unless told otherwise. By default it prefers empty nodes, so pods that consolidation meant for
    the gaps of others go to the replacement, which was bought too small for all of them; the rest makes Karpenter buy
    again, and so on for ever.
    """
    started_s = time.perf_counter()
    given = clusters.build(seed, shape)
    strategy, quiet_s = (optimal_strategy(), QUIET_OPTIMAL_S) if policy == OPTIMAL else (KARPENTER, QUIET_S)
    options = LivingOptions(parts=PARTS - {Part.SCHEDULER}, quiet_heartbeats=True)
    with Cluster(nodes=0, seed=seed, options=options) as cluster:
        return cluster.run(_shrink, cluster, given, strategy, scheduler, quiet_s, limit_s, started_s)


async def _shrink(
    cluster: Cluster, given: clusters.Cluster, strategy: Strategy, scheduler: Profile, quiet_s: float, limit_s: float,
    started_s: float,
) -> Shrunk:  # fmt: skip
    catalog = Catalog(given.types)
    pools = [_applicable(pool.object) for pool in given.pools]
    async with (
        scheduled_by(cluster, scheduler),
        lab(cluster, *pools, catalog=catalog, delay=REGISTRATION_DELAY, strategy=strategy) as here,
    ):
        await here.running.stop()
        report = await restore(cluster.registry, objects_of(given))
        if report.left_out:
            raise RuntimeError(f"not everything could be put in: {report.left_out[:3]}")
        before = await here.nodes()
        here.start()
        begun_s = changed_s = here.clock.monotonic()
        last = _names(before)
        while here.clock.monotonic() - changed_s < quiet_s and here.clock.monotonic() - begun_s < limit_s:
            await here.clock.sleep(SAMPLE_EVERY_S)
            now = _names(await here.nodes())
            if now != last:
                last, changed_s = now, here.clock.monotonic()
        has_ended = here.clock.monotonic() - changed_s >= quiet_s
        after, pods = await here.nodes(), await here.pods()
        problem = _anew(given, catalog, pods, here.clock.time())
        return Shrunk(
            nodes_before=len(before), nodes_after=len(after),
            price_before=price_of(before, catalog), price_after=price_of(after, catalog),
            pods=len(pods), pending=sum((pod.get("status") or {}).get("phase") != "Running" for pod in pods),
            hours=(changed_s - begun_s) / 3600, has_ended=has_ended, wall_s=time.perf_counter() - started_s,
            for_pods=_made(here, "provisioned"), as_replacements=_made(here, "underutilized"),
            problem=problem, violations=_broken(problem, after, await here.claims(), pods),
        )  # fmt: skip


def _names(nodes: list[JsonObject]) -> list[str]:
    return sorted(node["metadata"]["name"] for node in nodes)


def _anew(given: clusters.Cluster, catalog: Catalog, pods: list[JsonObject], now_s: float) -> Problem:
    """The pods that run, and no nodes."""
    return Problem(
        pools=[NodePool.of(pool.object) for pool in given.pools], types_of_pool=given.types_of_pool,
        pods=[_unbound(pod) for pod in pods], well_known=catalog.well_known, now_s=now_s,
    )  # fmt: skip


def _broken(
    problem: Problem, nodes: list[JsonObject], claims: list[JsonObject], pods: list[JsonObject]
) -> list[str]:
    """What is wrong with where pods are. Those that are on no node yet are told elsewhere."""
    by_node = {(claim.get("status") or {}).get("nodeName"): claim for claim in claims}
    states = [StateNode(node, by_node.get(node["metadata"]["name"])) for node in nodes]
    placed: dict[str, list[JsonObject]] = {}
    for pod in pods:
        if pod["spec"].get("nodeName"):
            placed.setdefault(pod["spec"]["nodeName"], []).append(_unbound(pod))
    bound = [pod for there in placed.values() for pod in there]
    found = check_placements(replace(problem, state_nodes=states, pods=bound), [], placed)
    return [str(violation) for violation in found]


def _made(here: Lab, reason: str) -> int:
    return round(here.running.value("karpenter_nodeclaims_created_total", reason=reason))


def price_of(nodes: list[JsonObject], catalog: Catalog) -> float:
    """What nodes cost per hour."""
    total = 0.0
    for node in nodes:
        labels = node["metadata"]["labels"]
        one = catalog.by_name[labels["node.kubernetes.io/instance-type"]]
        place = one.offering(labels["topology.kubernetes.io/zone"], labels["karpenter.sh/capacity-type"])
        assert place is not None
        total += place.price_usd_per_hour
    return total


def _applicable(pool: JsonObject) -> JsonObject:
    return {name: value for name, value in pool.items() if name != "status"}


def _unbound(pod: JsonObject) -> JsonObject:
    return {**pod, "spec": {key: value for key, value in pod["spec"].items() if key != "nodeName"}}
