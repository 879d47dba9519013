"""A cluster as ``kubectl get`` or ``holokube snapshot`` prints it, or as manifests that were never applied."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from holokube.base.errors import UsageError
from holokube.karpenter.api.labels import CONSOLIDATABLE, INITIALIZED
from holokube.karpenter.api.node_claim import seconds_of
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.plan.given import Given, as_pending
from holokube.karpenter.plan.pdb_status import with_status
from holokube.karpenter.scheduling.problem import Storage
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.conditions import get_condition, is_true, with_condition, without_condition
from holokube.kube.daemons import with_daemon_tolerations
from holokube.kube.requirements import NODEPOOL_LABEL
from holokube.kube.timeformat import TimeFormatError, format_time
from holokube.kube.types import JsonObject
from holokube.kube.workload_pods import missing_pods
from holokube.pricing.instance_types import Catalog

KINDS: Final = frozenset({
    "NodePool", "NodeClaim", "Node", "Pod", "Namespace", "Service", "DaemonSet", "Deployment", "ReplicaSet",
    "StatefulSet", "ReplicationController", "Job", "PodDisruptionBudget", "PersistentVolumeClaim", "PersistentVolume",
    "StorageClass", "CSINode",
})  # fmt: skip
"""What decisions can depend on; the rest is not looked at."""
_NAMESPACED: Final = frozenset({"Pod", "Service", "DaemonSet", "PodDisruptionBudget", "PersistentVolumeClaim"})
_TERMINAL: Final = ("Succeeded", "Failed")
_STAMPS: Final = ("lastTransitionTime", "lastHeartbeatTime")
_EMPTY: Final[Mapping[str, Any]] = {}


def read_snapshot(objects: Sequence[Any], catalog: Catalog, *, waits: bool, default_now_s: float) -> Given:
    """The cluster in these objects, at the latest moment that they speak of.

    With ``waits``, so much later that every node has been left alone for as long as its pool asks for.
    """
    by_kind, ignored = _by_kind(objects)
    made = missing_pods([obj for found in by_kind.values() for obj in found])
    planned = [obj for obj in made if obj["kind"] == "Pod"]
    by_kind["Pod"] += planned
    if not by_kind["NodePool"]:
        raise UsageError(
            "the files hold no NodePool, and without one no node can be made",
            hint="Include them: kubectl get nodepools,nodeclaims,nodes,pods,daemonsets,pdb -A -o yaml")
    try:
        pools = tuple(map(NodePool.of, by_kind["NodePool"]))
        now_s = _now_s(by_kind.values(), default_now_s)
    except (ValueError, TimeFormatError) as error:
        raise UsageError(str(error), hint="Correct the field that is named.") from error
    if waits:
        now_s += max((pool.consolidate_after_s or 0.0 for pool in pools), default=0.0)
    nodes, notes = _nodes(by_kind, pools, now_s)
    pending = [as_pending(pod) for pod in by_kind["Pod"] if _looks_for_a_place(pod)]
    if planned:
        notes.append(f"{len(planned)} pods that workloads want and do not have are planned for as well")
    if ignored:
        notes.append(f"not looked at: {', '.join(f'{count} {kind}' for kind, count in sorted(ignored.items()))}")
    notes += _notes_on_pools(pools)
    return Given(
        pools=tuple(pool for pool in pools if not pool.is_deleting),
        catalog=catalog,
        pods=tuple(pending),
        daemon_pods=tuple(map(_daemon_pod, by_kind["DaemonSet"])),
        nodes=nodes,
        pdbs=tuple(with_status(pdb, by_kind["Pod"]) for pdb in by_kind["PodDisruptionBudget"]),
        storage=Storage.of(obj for found in by_kind.values() for obj in found),
        namespaces={
            obj["metadata"]["name"]: obj["metadata"].get("labels") or {} for obj in by_kind["Namespace"]
        },
        services=tuple(by_kind["Service"]),
        owners={
            uid: obj for found in (*by_kind.values(), made) for obj in found if (uid := obj["metadata"].get("uid"))
        },
        now_s=now_s,
        wants_disruption=bool(nodes),
        notes=tuple(notes),
    )


def _by_kind(objects: Sequence[Any]) -> tuple[dict[str, list[JsonObject]], Counter[str]]:
    kept: dict[tuple[str, str, str], JsonObject] = {}
    ignored: Counter[str] = Counter()
    for obj in objects:
        kind = obj.get("kind") if isinstance(obj, Mapping) else None
        meta = obj.get("metadata") if isinstance(obj, Mapping) else None
        if not isinstance(kind, str) or not isinstance(meta, Mapping) or not meta.get("name"):
            raise UsageError(
                f"an object has no kind or no metadata.name: {str(obj)[:80]}",
                hint="Give what `holokube snapshot` or `kubectl get ... -o yaml` wrote, or a problem with nodePools.")
        if kind not in KINDS:
            ignored[kind] += 1
            continue
        namespace = str(meta.get("namespace") or ("default" if kind in _NAMESPACED else ""))
        whole = {**obj, "metadata": {**meta, "namespace": namespace}} if namespace else dict(obj)
        kept[kind, namespace, str(meta["name"])] = whole
    found: dict[str, list[JsonObject]] = {kind: [] for kind in KINDS}
    for (kind, _, _), obj in kept.items():
        found[kind].append(obj)
    return found, ignored


def _now_s(found: Iterable[Iterable[JsonObject]], default_s: float) -> float:
    stamps: list[float | None] = []
    for obj in (obj for objects in found for obj in objects):
        stamps.append(seconds_of(obj["metadata"].get("creationTimestamp")))
        status = obj.get("status") or _EMPTY
        stamps.append(seconds_of(status.get("lastPodEventTime")))
        for condition in status.get("conditions") or ():
            stamps += [seconds_of(condition.get(stamp)) for stamp in _STAMPS]
    return max((stamp for stamp in stamps if stamp is not None), default=default_s)


def _looks_for_a_place(pod: JsonObject) -> bool:
    """Pending, wanted by no node of its own, and not held back. A file seldom says whether a scheduler saw it."""
    spec, status, meta = pod.get("spec") or _EMPTY, pod.get("status") or _EMPTY, pod["metadata"]
    owners = {owner.get("kind") for owner in meta.get("ownerReferences") or ()}
    return not (
        spec.get("nodeName") or spec.get("schedulingGates") or status.get("nominatedNodeName")
        or status.get("phase") in _TERMINAL or meta.get("deletionTimestamp") or owners & {"DaemonSet", "Node"}
    )  # fmt: skip


def _daemon_pod(daemon_set: JsonObject) -> JsonObject:
    """The pod that a DaemonSet would make."""
    meta, template = daemon_set["metadata"], (daemon_set.get("spec") or _EMPTY).get("template") or _EMPTY
    of_pod = template.get("metadata") or _EMPTY
    owner = {
        "apiVersion": "apps/v1", "kind": "DaemonSet", "name": meta["name"], "uid": meta.get("uid", ""),
        "controller": True,
    }  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": meta["name"], "namespace": meta["namespace"], "labels": of_pod.get("labels") or {},
            "annotations": of_pod.get("annotations") or {}, "ownerReferences": [owner],
        },
        "spec": with_daemon_tolerations(dict(template.get("spec") or {"containers": []})),
    }  # fmt: skip


def _nodes(
    by_kind: Mapping[str, Sequence[JsonObject]], pools: Sequence[NodePool], now_s: float
) -> tuple[tuple[StateNode, ...], list[str]]:
    """Nodes with their claims and pods, then claims that have no node yet."""
    claims = {_provider_id(claim, "status"): claim for claim in by_kind["NodeClaim"] if _provider_id(claim, "status")}
    by_node = {(claim.get("status") or _EMPTY).get("nodeName"): claim for claim in by_kind["NodeClaim"]}
    pods: dict[str, list[JsonObject]] = defaultdict(list)
    for pod in by_kind["Pod"]:
        if name := (pod.get("spec") or _EMPTY).get("nodeName"):
            pods[name].append(pod)
    policy = {pool.name: pool for pool in pools}
    found: list[StateNode] = []
    taken: set[str] = set()
    orphans = 0
    for node in by_kind["Node"]:
        name = node["metadata"]["name"]
        claim = claims.get(_provider_id(node, "spec")) or by_node.get(name)
        if claim is not None:
            taken.add(claim["metadata"]["name"])
        elif NODEPOOL_LABEL in (node["metadata"].get("labels") or _EMPTY):
            orphans += 1
        found.append(StateNode(node, _as_of(claim, policy, now_s), tuple(pods.get(name, ()))))
    found += [
        StateNode(None, claim) for claim in by_kind["NodeClaim"] if claim["metadata"]["name"] not in taken
    ]
    notes = []
    if orphans:
        notes.append(
            f"{orphans} nodes belong to a NodePool but their NodeClaims are not in the files: they are left as they "
            "are; add the output of kubectl get nodeclaims")
    return tuple(found), notes


def _provider_id(obj: JsonObject, field: str) -> str:
    return str((obj.get(field) or _EMPTY).get("providerID") or "")


def _as_of(claim: JsonObject | None, pools: Mapping[str, NodePool], now_s: float) -> JsonObject | None:
    """A claim as it is at that moment: has it been left alone for long enough?"""
    if claim is None:
        return None
    pool = pools.get((claim["metadata"].get("labels") or _EMPTY).get(NODEPOOL_LABEL, ""))
    after_s = None if pool is None else pool.consolidate_after_s
    if after_s is None or not is_true(claim, INITIALIZED):
        return without_condition(claim, CONSOLIDATABLE)
    condition = get_condition(claim, INITIALIZED) or _EMPTY
    last = (claim.get("status") or _EMPTY).get("lastPodEventTime") or condition.get("lastTransitionTime")
    since_s = seconds_of(last)
    if since_s is not None and now_s - since_s < after_s:
        return without_condition(claim, CONSOLIDATABLE)
    return with_condition(
        claim, {"type": CONSOLIDATABLE, "status": "True", "reason": CONSOLIDATABLE}, now=format_time(now_s))




def _notes_on_pools(pools: Iterable[NodePool]) -> list[str]:
    notes = []
    for pool in pools:
        if pool.is_deleting:
            notes.append(f"NodePool {pool.name} is being deleted and gets no more nodes")
        elif pool.is_static:
            notes.append(f"NodePool {pool.name} has a fixed number of nodes and is left out")
    return notes
