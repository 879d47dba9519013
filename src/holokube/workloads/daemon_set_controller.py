"""Keeps one pod of each DaemonSet on every node it belongs on."""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.client.audience import OWNERS, SPEC
from holokube.client.cache import object_key
from holokube.client.client import Client
from holokube.client.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from holokube.kube.errors import NotFound
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.runtime.app import Component
from holokube.runtime.events import WARNING, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import Change, InformerSource, enqueue_self
from holokube.workloads import controller_history as history
from holokube.workloads.daemon_set_decisions import (
    DaemonChanges,
    DaemonState,
    decide_daemons,
    decide_status,
    decide_update,
    group_by_node,
)
from holokube.workloads.daemon_set_pods import (
    DAEMON_NODE_INDEX,
    Eligibility,
    daemon_node_index,
    daemon_pod,
)
from holokube.workloads.expectations import RECHECK_S, Expectations
from holokube.workloads.ownership import CONTROLLER_INDEX, by_controller, claim, controller_of, orphans_of
from holokube.workloads.pod_control import PodControl
from holokube.workloads.pod_sources import PodOwnerSource, selector_of
from holokube.workloads.pod_status import next_availability_s
from holokube.workloads.pod_templates import template_hash
from holokube.workloads.status_writes import write_status

WORKERS = 2
_KILL_BACKOFF_FIRST_S = 1.0
_KILL_BACKOFF_MAX_S = 900.0


class DaemonSetReconciler:
    """Brings one DaemonSet's pods in order."""

    def __init__(
        self, clock: Clock, client: Client, informers: InformerSet, recorder: EventRecorder
    ) -> None:
        self._clock = clock
        self._client = client
        self._recorder = recorder
        self._daemon_sets = informers.get(DAEMON_SETS).lister
        self._nodes = informers.get(NODES).lister
        self._revisions = by_controller(informers, CONTROLLER_REVISIONS).lister
        pods = by_controller(informers, PODS)
        # A cluster without DaemonSets never asks for it.
        informers.indexed(PODS, DAEMON_NODE_INDEX, daemon_node_index, heeds=SPEC | OWNERS, when_asked=True)
        self._pods = pods.lister
        self._expectations = Expectations(clock, pods)
        self._pod_control = PodControl(client, recorder, self._expectations)
        self._eligibility: dict[str, tuple[str, int, Eligibility]] = {}
        # By DaemonSet and node: how long failed pods are spared, and since when.
        self._kills: dict[str, dict[str, tuple[float, float]]] = {}

    async def reconcile(self, key: str) -> Result | None:
        daemon_set = self._daemon_sets.by_key(key)
        if daemon_set is None:
            self._expectations.forget(key)
            self._eligibility.pop(key, None)
            self._kills.pop(key, None)
            return None
        selector = selector_of(daemon_set)
        if selector.is_empty:
            self._recorder.event(
                daemon_set, WARNING, "SelectingAll",
                "This daemon set is selecting all pods. A non-empty selector is required.",
            )  # fmt: skip
            return None
        if daemon_set["metadata"].get("deletionTimestamp"):
            # Its revisions may be gone before its pods are, and without them nothing can be counted.
            return None
        pods = await self._claim_pods(daemon_set, selector)
        current, old = await self._history(daemon_set, selector, pods)
        state = self._observe(key, daemon_set, history.hash_of(current), pods)
        if not self._expectations.met(key):
            await write_status(
                self._client, DAEMON_SETS, daemon_set, decide_status(state, processed=False)
            )
            return Result(RECHECK_S)
        changes = decide_daemons(state, self._backoffs(key))
        failure = await self._carry_out(key, state, changes)
        if failure is None and self._expectations.met(key):
            if changes.create or changes.delete:
                # What was just done shows already: an update that did not look again would do it once more.
                pods = await self._claim_pods(daemon_set, selector)
                state = self._observe(key, daemon_set, history.hash_of(current), pods)
            failure = await self._carry_out(key, state, decide_update(state))
        if failure is None:
            await self._trim_history(daemon_set, old, pods)
        await write_status(self._client, DAEMON_SETS, daemon_set, decide_status(state, processed=True))
        if failure is not None:
            raise failure
        return self._look_again(key, state, changes)

    def _look_again(self, key: str, state: DaemonState, changes: DaemonChanges) -> Result | None:
        waits = [changes.wait_s] if changes.wait_s is not None else []
        if not self._expectations.met(key):
            waits.append(RECHECK_S)
        if state.min_ready_s:
            pods = [pod for on_node in state.pods.values() for pod in on_node]
            available_in_s = next_availability_s(pods, state.min_ready_s, state.now)
            if available_in_s is not None:
                waits.append(max(available_in_s, 0.001))
        return Result(min(waits)) if waits else None

    async def _claim_pods(self, daemon_set: JsonObject, selector: LabelSelector) -> list[JsonObject]:
        meta = daemon_set["metadata"]
        candidates = [
            *self._pods.by_index(CONTROLLER_INDEX, meta["uid"]),
            *self._pods.by_index(CONTROLLER_INDEX, orphans_of(meta["namespace"])),
        ]
        return await claim(self._client, DAEMON_SETS, daemon_set, PODS, selector, candidates)

    def _observe(
        self, key: str, daemon_set: JsonObject, digest: str, pods: list[JsonObject]
    ) -> DaemonState:
        eligibility = self.eligibility(key, daemon_set)
        nodes = {node["metadata"]["name"]: eligibility.of(node) for node in self._nodes}
        eligibility.forget_all_but(nodes.keys())
        return DaemonState(daemon_set, digest, nodes, group_by_node(pods), self._clock.now())

    def eligibility(self, key: str, daemon_set: JsonObject) -> Eligibility:
        """Compiled once for every generation of a DaemonSet."""
        meta = daemon_set["metadata"]
        uid, generation = meta["uid"], int(meta.get("generation") or 0)
        known = self._eligibility.get(key)
        if known is None or known[:2] != (uid, generation):
            known = (uid, generation, Eligibility(daemon_set))
            self._eligibility[key] = known
        return known[2]

    async def _carry_out(
        self, key: str, state: DaemonState, changes: DaemonChanges
    ) -> HolokubeError | None:
        daemon_set = state.daemon_set
        for kind, reason, message in changes.events:
            self._recorder.event(daemon_set, kind, reason, message)
        now_s = self._clock.monotonic()
        for node in changes.killed_on:
            kills = self._kills.setdefault(key, {})
            delay_s, since_s = kills.get(node, (0.0, now_s))
            # Twice the delay without a failure, and the node starts afresh.
            fresh = delay_s == 0 or now_s - since_s > 2 * _KILL_BACKOFF_MAX_S
            delay_s = _KILL_BACKOFF_FIRST_S if fresh else min(2 * delay_s, _KILL_BACKOFF_MAX_S)
            kills[node] = (delay_s, now_s)
        pods = [daemon_pod(daemon_set, node, state.digest) for node in changes.create]
        created = await self._pod_control.create(key, daemon_set, pods)
        deleted = await self._pod_control.delete(key, daemon_set, changes.delete)
        return created or deleted

    def _backoffs(self, key: str) -> dict[str, float]:
        now_s = self._clock.monotonic()
        return {
            node: left_s
            for node, (delay_s, since_s) in self._kills.get(key, {}).items()
            if (left_s := since_s + delay_s - now_s) > 0
        }

    # History

    async def _history(
        self, daemon_set: JsonObject, selector: LabelSelector, pods: list[JsonObject]
    ) -> tuple[JsonObject, list[JsonObject]]:
        """The revision of the present template, made if need be, and the others."""
        meta = daemon_set["metadata"]
        candidates = [
            *self._revisions.by_index(CONTROLLER_INDEX, meta["uid"]),
            *self._revisions.by_index(CONTROLLER_INDEX, orphans_of(meta["namespace"])),
        ]
        revisions = await claim(
            self._client, DAEMON_SETS, daemon_set, CONTROLLER_REVISIONS, selector, candidates
        )
        current = [r for r in revisions if history.is_revision_of(r, daemon_set)]
        old = [r for r in revisions if not history.is_revision_of(r, daemon_set)]
        number = history.highest(old) + 1
        if not current:
            digest = template_hash(
                daemon_set["spec"]["template"], (daemon_set.get("status") or {}).get("collisionCount")
            )
            labels = (daemon_set["spec"]["template"].get("metadata") or {}).get("labels") or {}
            labels = {**labels, history.REVISION_HASH: digest}
            revision = history.new_revision(daemon_set, number, digest, labels)
            return await history.create_revision(self._client, DAEMON_SETS, daemon_set, revision), old
        kept = history.in_order(current)[-1]
        await self._merge_duplicates(daemon_set, kept, current, pods)
        if history.number_of(kept) < number:
            kept = await self._client.update(CONTROLLER_REVISIONS, {**kept, "revision": number})
        return kept, old

    async def _merge_duplicates(
        self, daemon_set: JsonObject, kept: JsonObject, current: list[JsonObject], pods: list[JsonObject]
    ) -> None:
        """Of several revisions with one template, adopted say, one stays; pods are labelled with its hash."""
        duplicates = [revision for revision in current if revision is not kept]
        if not duplicates:
            return
        space, digest = daemon_set["metadata"]["namespace"], history.hash_of(kept)
        patch = {"metadata": {"labels": {history.REVISION_HASH: digest}}}
        for pod in pods:
            if (pod["metadata"].get("labels") or {}).get(history.REVISION_HASH) != digest:
                await self._client.patch(PODS, pod["metadata"]["name"], patch, namespace=space)
        for revision in duplicates:
            await self._delete_revision(revision)

    async def _trim_history(
        self, daemon_set: JsonObject, old: list[JsonObject], pods: list[JsonObject]
    ) -> None:
        """Old revisions beyond the limit go, oldest first, but not those that pods still run."""
        limit = daemon_set["spec"].get("revisionHistoryLimit")
        surplus = len(old) - (10 if limit is None else int(limit))
        if surplus <= 0:
            return
        alive = {(pod["metadata"].get("labels") or {}).get(history.REVISION_HASH) for pod in pods}
        unused = [r for r in history.in_order(old) if history.hash_of(r) not in alive]
        for revision in unused[:surplus]:
            await self._delete_revision(revision)

    async def _delete_revision(self, revision: JsonObject) -> None:
        meta = revision["metadata"]
        try:
            await self._client.delete(CONTROLLER_REVISIONS, meta["name"], meta["namespace"], uid=meta["uid"])
        except NotFound:
            return

    # Nodes

    def concerned_by(self, node: JsonObject) -> list[str]:
        """The DaemonSets that have to act upon a change of this node.

        As upstream has it, those whose status alone would change wait for their pods to change: when a node is
        gone, or takes no more pods but keeps its own.
        """
        name = node["metadata"]["name"]
        if not len(self._daemon_sets) or self._nodes.get(name) is None:
            return []
        owners = {
            (controller_of(pod) or {}).get("uid") for pod in self._pods.by_index(DAEMON_NODE_INDEX, name)
        }
        keys = []
        for daemon_set in self._daemon_sets:
            key = object_key(daemon_set)
            should_run, may_continue = self.eligibility(key, daemon_set).of(node)
            uid = daemon_set["metadata"]["uid"]
            has_pod = uid in owners
            misscheduled = (daemon_set.get("status") or {}).get("numberMisscheduled")
            if (has_pod and (misscheduled or not may_continue)) or (should_run and not has_pod):
                keys.append(key)
        return keys


def _labels_or_taints_changed(change: Change) -> bool:
    if change.old is None or change.new is None:
        return True
    old, new = change.old, change.new
    return bool(
        old["metadata"].get("labels") != new["metadata"].get("labels")
        or (old.get("spec") or {}).get("taints") != (new.get("spec") or {}).get("taints")
    )


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
) -> Component:
    """The controller of DaemonSets."""
    reconciler = DaemonSetReconciler(clock, client, informers, recorder)
    daemon_sets = informers.get(DAEMON_SETS)
    return Controller(
        clock, "daemonset-controller", reconciler.reconcile, workers=WORKERS,
        sources=[
            InformerSource(daemon_sets, enqueue_self),
            InformerSource(
                informers.get(NODES), reconciler.concerned_by, predicates=[_labels_or_taints_changed]
            ),
            PodOwnerSource(by_controller(informers, PODS), DAEMON_SETS, daemon_sets, selector_of),
            PodOwnerSource(
                by_controller(informers, CONTROLLER_REVISIONS), DAEMON_SETS, daemon_sets, selector_of
            ),
        ],
    )  # fmt: skip
