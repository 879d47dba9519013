"""Keeps the status of PodDisruptionBudgets, by which evictions are granted or refused."""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.client.audience import STATUS
from holokube.client.cache import object_key
from holokube.client.client import Client, PatchType
from holokube.client.discovery import Discovery
from holokube.client.resources import (
    DEPLOYMENTS,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Resource,
)
from holokube.kube.errors import Conflict, NotFound
from holokube.kube.selectors import LabelSelector
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject
from holokube.runtime.events import NORMAL, WARNING, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import Change, InformerSource, Need, enqueue_self
from holokube.workloads import disruption_decisions as decisions
from holokube.workloads.disruption_decisions import BudgetError
from holokube.workloads.ownership import controller_of, group_of
from holokube.workloads.pod_indexes import pods_by_label, selected_pods
from holokube.workloads.pod_status import is_pod_ready
from holokube.workloads.status_writes import same_status

NAME: Final = "disruption-controller"
STALE_NAME: Final = "stale-disruption-controller"
RETRY_S: Final = 30.0
_SCALED: Final = (REPLICA_SETS, STATEFUL_SETS, REPLICATION_CONTROLLERS)


class Disruption:
    """Works out one budget."""

    def __init__(self, clock: Clock, client: Client, informers: InformerSet, recorder: EventRecorder) -> None:
        self._clock = clock
        self._client = client
        self._recorder = recorder
        self._discovery = Discovery(client)
        self._budgets = informers.get(POD_DISRUPTION_BUDGETS).lister
        self._pods = pods_by_label(informers).lister
        self._owners = {
            (resource.group, resource.kind): informers.get(resource).lister for resource in (*_SCALED, DEPLOYMENTS)
        }
        self._selectors: dict[str, tuple[int, LabelSelector]] = {}

    def has_budgets(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Whether a pod's change may be one to a budget."""
        latest = new if new is not None else old
        if latest is None or not len(self._budgets) or not self._budgets.has_any(latest["metadata"]["namespace"]):
            return False
        return old is None or new is None or _counted(old) != _counted(new)

    def budgets_of(self, pod: JsonObject) -> list[str]:
        """The budgets that a pod counts for. Several are a mistake of the user, which is reported."""
        meta = pod["metadata"]
        labels = meta.get("labels") or {}
        found = [b for b in self._budgets.list(meta["namespace"]) if self._selector(b).matches(labels)]
        if len(found) > 1:
            chosen = found[0]["metadata"]["name"]
            self._recorder.event(
                pod, WARNING, "MultiplePodDisruptionBudgets",
                f'Pod "{meta["namespace"]}"/"{meta["name"]}" matches multiple PodDisruptionBudgets.  '
                f'Chose "{chosen}" arbitrarily.',
            )  # fmt: skip
        return [object_key(budget) for budget in found]

    def budgets_of_owner(self, owner: JsonObject) -> list[str]:
        """The budgets whose expected pods may come from an owner; by its pods' labels."""
        meta = owner["metadata"]
        labels = (((owner.get("spec") or {}).get("template") or {}).get("metadata") or {}).get("labels") or {}
        budgets = self._budgets.list(meta["namespace"])
        return [object_key(b) for b in budgets if decisions.needs_scale(b) and self._selector(b).matches(labels)]

    def _selector(self, budget: JsonObject) -> LabelSelector:
        meta = budget["metadata"]
        generation = int(meta.get("generation") or 0)
        known = self._selectors.get(meta["uid"])
        if known is None or known[0] != generation:
            known = (generation, LabelSelector.from_json((budget.get("spec") or {}).get("selector")))
            self._selectors[meta["uid"]] = known
        return known[1]

    async def reconcile(self, key: str) -> Result | None:
        budget = self._budgets.by_key(key)
        if budget is None:
            self._forget_selectors()
            return None
        try:
            return await self._sync(budget)
        except Conflict:
            # An eviction was granted meanwhile: its word on the disrupted pods must not be lost.
            raise
        except (HolokubeError, BudgetError) as error:
            status = decisions.failed(budget, str(error), self._clock.now())
            await self._write(budget, status)
            return Result(requeue_after_s=RETRY_S)

    def _forget_selectors(self) -> None:
        present = {budget["metadata"]["uid"] for budget in self._budgets}
        self._selectors = {uid: known for uid, known in self._selectors.items() if uid in present}

    async def _sync(self, budget: JsonObject) -> Result | None:
        pods = selected_pods(self._pods, budget["metadata"]["namespace"], self._selector(budget))
        if not pods:
            self._recorder.event(budget, NORMAL, "NoPods", "No matching pods found")
        scale = 0
        if decisions.needs_scale(budget):
            if decisions.unmanaged(pods):
                self._report_unmanaged(budget)
            try:
                scale = await self._scale_of(pods)
            except (HolokubeError, BudgetError) as error:
                self._recorder.event(
                    budget, WARNING, "CalculateExpectedPodCountFailed",
                    f"Failed to calculate the number of expected pods: {error}",
                )  # fmt: skip
                raise
        expected, desired = decisions.expected_and_desired(budget, pods, scale)
        verdict = decisions.judge(budget, pods, expected, desired, self._clock.now())
        for pod in verdict.not_deleted:
            space = budget["metadata"]["namespace"]
            # Upstream prints the namespace twice where the budget's name is meant; here it is the name.
            message = f"Pod was expected by PDB {space}/{budget['metadata']['name']} to be deleted but it wasn't"
            self._recorder.event(pod, WARNING, "NotDeleted", message)
        await self._write(budget, verdict.status)
        return Result(requeue_after_s=verdict.recheck_s) if verdict.recheck_s is not None else None

    def _report_unmanaged(self, budget: JsonObject) -> None:
        selector = decisions.go_selector(budget["spec"].get("selector"))
        self._recorder.event(
            budget, WARNING, "UnmanagedPods",
            f"Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a "
            "result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. "
            'To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.',
        )  # fmt: skip

    async def _scale_of(self, pods: list[JsonObject]) -> int:
        """The wanted replicas of all controllers of the pods, each counted once."""
        scales: dict[str, int] = {}
        controllers: dict[str, str] = {}
        for pod in pods:
            reference = controller_of(pod)
            if reference is None or reference["uid"] in controllers:
                continue
            found = await self._scale(reference, pod["metadata"]["namespace"])
            if found is None:
                raise BudgetError(f'found no controllers for pod "{pod["metadata"]["name"]}"')
            uid, replicas = found
            controllers[reference["uid"]] = uid
            scales[uid] = replicas
        return sum(scales.values())

    async def _scale(self, reference: JsonObject, namespace: str) -> tuple[str, int] | None:
        """The uid and the replicas of a pod's controller, or of the Deployment above it."""
        lister = self._owners.get((group_of(reference.get("apiVersion") or ""), reference["kind"]))
        if lister is None:
            return await self._scale_by_subresource(reference, namespace)
        owner = lister.get(reference["name"], namespace)
        if owner is None or owner["metadata"]["uid"] != reference["uid"]:
            return None
        above = controller_of(owner)
        if owner["kind"] == "ReplicaSet" and above is not None and above["kind"] == "Deployment":
            return await self._scale(above, namespace)
        replicas = (owner.get("spec") or {}).get("replicas")
        return owner["metadata"]["uid"], 1 if replicas is None else int(replicas)

    async def _scale_by_subresource(self, reference: JsonObject, namespace: str) -> tuple[str, int] | None:
        resource = await self._discovery.for_object(reference)
        try:
            scale = await self._client.get_scale(resource, reference["name"], namespace)
        except NotFound:
            described = await self._discovery.describe(f"{resource.plural}.{resource.version}.{resource.group}")
            if "scale" not in described.subresources:
                raise BudgetError(f"{resource.qualified_name} does not implement the scale subresource") from None
            return None
        if scale["metadata"].get("uid") != reference["uid"]:
            return None
        return reference["uid"], int((scale.get("spec") or {}).get("replicas") or 0)

    async def _write(self, budget: JsonObject, status: JsonObject) -> None:
        if same_status(budget.get("status") or {}, status):
            return
        try:
            await self._client.update_status(POD_DISRUPTION_BUDGETS, {**budget, "status": status})
        except NotFound:
            return


class StaleDisruption:
    """Takes back a pod's claim to be a target of disruption when nobody followed it up."""

    def __init__(self, clock: Clock, client: Client, informers: InformerSet) -> None:
        self._clock = clock
        self._client = client
        self._pods = informers.get(PODS).lister

    async def reconcile(self, key: str) -> Result | None:
        pod = self._pods.by_key(key)
        now = self._clock.now()
        stale_in_s = decisions.stale_in_s(pod, now) if pod is not None else None
        if pod is None or stale_in_s is None:
            return None
        if stale_in_s > 0:
            return Result(requeue_after_s=stale_in_s)
        meta = pod["metadata"]
        condition = {
            "type": "DisruptionTarget", "status": "False", "reason": None, "message": None,
            "lastTransitionTime": format_time(now), "observedGeneration": meta.get("generation"),
        }  # fmt: skip
        # With the version, as the pod may be under deletion by now.
        patch = {
            "metadata": {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]},
            "status": {"conditions": [condition]},
        }
        try:
            await self._client.patch_status(
                PODS, meta["name"], patch, namespace=meta["namespace"], type=PatchType.STRATEGIC
            )
        except NotFound:
            return None
        return None


def _counted(pod: JsonObject) -> tuple[object, ...]:
    """A pod's labels, readiness, deletion and owner are all that a budget counts by."""
    meta = pod["metadata"]
    return (
        meta.get("labels"), bool(meta.get("deletionTimestamp")), is_pod_ready(pod), controller_of(pod),
    )  # fmt: skip


def _scale_changed(change: Change) -> bool:
    if change.old is None or change.new is None:
        return True
    old, new = change.old.get("spec") or {}, change.new.get("spec") or {}
    return bool(old.get("replicas") != new.get("replicas"))


def claims_disruption(old: JsonObject | None, new: JsonObject | None) -> bool:
    """Whether a pod's status, in which it says so, has been written, and calls it a target of disruption.

    One that is being deleted, as a target of disruption mostly is at once, has been followed up for good.
    """
    if new is None or new["metadata"].get("deletionTimestamp"):
        return False
    status = new.get("status")
    if not status or (old is not None and old.get("status") is status):
        return False
    for condition in status.get("conditions") or ():
        if condition.get("type") == "DisruptionTarget":
            return bool(condition.get("status") == "True")
    return False


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
) -> Controller[str]:
    """The controller of PodDisruptionBudgets."""
    disruption = Disruption(clock, client, informers, recorder)
    scaled: tuple[Resource, ...] = (*_SCALED, DEPLOYMENTS)
    budgets = informers.get(POD_DISRUPTION_BUDGETS)
    has_budgets = Need(budgets, lambda: len(budgets.lister) > 0)
    return Controller(
        clock, NAME, disruption.reconcile,
        sources=[
            InformerSource(budgets, enqueue_self),
            InformerSource(
                informers.get(PODS), disruption.budgets_of, concerns=disruption.has_budgets, needs=has_budgets
            ),
            *(
                InformerSource(
                    informers.get(r), disruption.budgets_of_owner, predicates=[_scale_changed], needs=has_budgets
                )
                for r in scaled
            ),
        ],
    )  # fmt: skip


def build_stale(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,  # noqa: ARG001 - every controller is built with the same arguments
    rng: Rng,  # noqa: ARG001 - as above
) -> Controller[str]:
    """The controller that takes back stale DisruptionTarget conditions."""
    stale = StaleDisruption(clock, client, informers)
    source = InformerSource(informers.get(PODS), enqueue_self, concerns=claims_disruption, heeds=STATUS)
    return Controller(clock, STALE_NAME, stale.reconcile, sources=[source])
