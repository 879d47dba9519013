"""Carries Deployments out: one ReplicaSet per revision, sized step by step."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.client.audience import ENDING, OWNERS, SPEC
from holokube.client.client import Client
from holokube.client.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from holokube.kube.errors import AlreadyExists, Conflict, NotFound
from holokube.kube.types import JsonObject
from holokube.runtime.app import Component
from holokube.runtime.events import NORMAL, WARNING, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, Need, enqueue_self
from holokube.workloads.deployment_decisions import Plan, Rest, decide
from holokube.workloads.deployment_revisions import REVISION, is_rolling
from holokube.workloads.deployment_status import condition, deadline_s, tells_numbers_only, with_condition
from holokube.workloads.expectations import Echoes
from holokube.workloads.later_looks import LaterLooks
from holokube.workloads.ownership import (
    CONTROLLER_INDEX,
    by_controller,
    claim,
    controller_of,
    group_of,
    is_controlled_by,
    orphans_of,
)
from holokube.workloads.pod_control import namespace_is_terminating
from holokube.workloads.pod_sources import PodOwnerSource, selector_of
from holokube.workloads.pod_templates import same_template
from holokube.workloads.replica_set_decisions import replicas_of
from holokube.workloads.status_writes import same_status

WORKERS = 5
STRATEGY_INDEX = "strategy"
_RECREATE = "Recreate"
_SETS_VERSION = REPLICA_SETS.api_version


class _LastWords(NamedTuple):
    """What was last told of a Deployment that is at rest.

    Each status that is written brings the Deployment back here. What was decided from the same set at the same moment
    is decided again then: it need not be worked out twice.
    """

    rest: Rest
    deployment: JsonObject
    """As it is since."""
    replica_set: JsonObject
    now: datetime
    result: Result | None

    def are_about(self, deployment: JsonObject, replica_set: JsonObject, now: datetime) -> bool:
        return deployment is self.deployment and replica_set is self.replica_set and now == self.now


class DeploymentReconciler:
    """Brings one Deployment a step further."""

    def __init__(
        self, clock: Clock, client: Client, informers: InformerSet, recorder: EventRecorder
    ) -> None:
        self._clock = clock
        self._client = client
        self._recorder = recorder
        self._deployments = informers.get(DEPLOYMENTS).lister
        self._replica_sets = by_controller(informers, REPLICA_SETS).lister
        self._pods = by_controller(informers, PODS).lister
        self._known: dict[str, _LastWords] = {}
        self._echoes = Echoes()

    def concerns_deployment(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Whether a change of a Deployment calls for a look: not if it only shows what was last told of one at rest."""
        return not self._echoes.is_one(old, new)

    def concerns_set(self, old: JsonObject | None, new: JsonObject | None) -> bool:
        """Whether a change of a ReplicaSet calls for a look: not if all that a Deployment at rest tells of it stays."""
        if old is None or new is None:
            return True
        reference = controller_of(new)
        if reference is None:
            return True
        known = self._known.get(f"{new['metadata']['namespace']}/{reference['name']}")
        if known is None:
            return True
        if known.replica_set is new and old is not new:
            # The very state that was last looked at, or written, has nothing new to it, unless to who had it before.
            return bool(old["metadata"].get("ownerReferences") != new["metadata"].get("ownerReferences"))
        return not known.rest.stays(old, new)

    async def reconcile(self, key: str) -> Result | None:
        deployment = self._deployments.by_key(key)
        if deployment is None:
            self._known.pop(key, None)
            self._echoes.forget(key)
            return None
        meta = deployment["metadata"]
        own = self._replica_sets.by_index(CONTROLLER_INDEX, meta["uid"])
        has_orphans = self._replica_sets.has_indexed(CONTROLLER_INDEX, orphans_of(meta["namespace"]))
        if len(own) == 1 and not has_orphans and (known := self._known.get(key)) is not None:
            now = self._clock.now()
            if known.are_about(deployment, own[0], now):
                return known.result
            plan = known.rest.plan(deployment, own[0], now)
            if plan is not None:
                return await self._carry_out_known(key, deployment, own[0], plan, known.rest, now)
        return await self._decide(key, deployment, own)

    async def _carry_out_known(
        self, key: str, deployment: JsonObject, replica_set: JsonObject, plan: Plan, rest: Rest, now: datetime
    ) -> Result | None:
        """Tells how a Deployment at rest is, and remembers what was told."""
        # Of one at rest there is nothing else to carry out.
        written = await self._write(deployment, plan.status, plan.revision)
        result = Result(plan.check_in_s) if plan.check_in_s is not None else None
        if written is not None:
            self._echoes.wrote(key, written)
        self._known[key] = _LastWords(rest, deployment if written is None else written, replica_set, now, result)
        return result

    async def _decide(self, key: str, deployment: JsonObject, own: list[JsonObject]) -> Result | None:
        """The long way: adopts and releases sets, and decides what to do with them."""
        selector = selector_of(deployment)
        if selector.is_empty:
            self._recorder.event(
                deployment, WARNING, "SelectingAll",
                "This deployment is selecting all pods. A non-empty selector is required.",
            )  # fmt: skip
            return None
        space = deployment["metadata"]["namespace"]
        candidates = [*own, *self._replica_sets.by_index(CONTROLLER_INDEX, orphans_of(space))]
        owned = await claim(self._client, DEPLOYMENTS, deployment, REPLICA_SETS, selector, candidates)
        # Only who replaces all pods at once has to know them; all others go by what their sets say.
        pods = {
            rs["metadata"]["uid"]: self._pods.by_index(CONTROLLER_INDEX, rs["metadata"]["uid"])
            for rs in (() if is_rolling(deployment) else owned)
        }
        now = self._clock.now()
        plan = decide(deployment, owned, pods, now)
        if plan.rests and (rest := Rest.after(plan, deployment, owned[0])) is not None:
            return await self._carry_out_known(key, deployment, owned[0], plan, rest, now)
        updated, written = await self._carry_out(deployment, plan)
        if plan.brings_to_rest and _is_as_sent(updated[0], plan.updates[0]):
            rest = Rest.of(written or deployment, updated[0], plan.revision)
            if written is not None and tells_numbers_only(written, updated[0]):
                self._echoes.wrote(key, written)
                self._known[key] = _LastWords(rest, written, updated[0], now, None)
            else:
                # What there is to tell is not worked out yet: these last words are about nothing that is ever seen.
                self._known[key] = _LastWords(rest, {}, {}, now, None)
        return Result(plan.check_in_s) if plan.check_in_s is not None else None

    async def _carry_out(self, deployment: JsonObject, plan: Plan) -> tuple[list[JsonObject], JsonObject | None]:
        """What is written: the sets that were updated, and the Deployment with its new status, None if that is as it
        was."""
        space = deployment["metadata"]["namespace"]
        updated = []
        if plan.create is not None:
            await self._create(deployment, plan.create)
        for rs in plan.updates:
            updated.append(await self._client.update(REPLICA_SETS, rs, space))
            for step in plan.scaled:
                if step.name == rs["metadata"]["name"]:
                    self._recorder.event(deployment, NORMAL, "ScalingReplicaSet", str(step))
        for rs in plan.deletes:
            try:
                await self._client.delete(
                    REPLICA_SETS, rs["metadata"]["name"], space, uid=rs["metadata"]["uid"]
                )
            except NotFound:
                continue
        return updated, await self._write(deployment, plan.status, plan.revision)

    async def _create(self, deployment: JsonObject, replica_set: JsonObject) -> None:
        """Creates the new set; a set of that name is either ours already, or a collision of hashes."""
        name, space = replica_set["metadata"]["name"], deployment["metadata"]["namespace"]
        try:
            await self._client.create(REPLICA_SETS, replica_set, space)
        except AlreadyExists:
            found = await self._client.get(REPLICA_SETS, name, space)
            ours = is_controlled_by(found, deployment) and same_template(
                found["spec"]["template"], replica_set["spec"]["template"]
            )
            if not ours:
                status = dict(deployment.get("status") or {})
                status["collisionCount"] = int(status.get("collisionCount") or 0) + 1
                await self._write(deployment, status, None)
            # Either way the cache is behind; the change on its way to it brings us back here.
            raise Conflict(f"ReplicaSet {space}/{name} exists already, and the cache does not know") from None
        except HolokubeError as error:
            if not namespace_is_terminating(error):
                await self._tell_failure(deployment, name, error)
            raise
        size = replicas_of(replica_set)
        if size > 0:
            self._recorder.event(
                deployment, NORMAL, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}"
            )

    async def _tell_failure(self, deployment: JsonObject, name: str, error: HolokubeError) -> None:
        message = f'Failed to create new replica set "{name}": {error}'
        self._recorder.event(deployment, WARNING, "ReplicaSetCreateError", message)
        if deadline_s(deployment) is None:
            return
        status = dict(deployment.get("status") or {})
        note = condition("Progressing", "False", "ReplicaSetCreateError", message, self._clock.now())
        status["conditions"] = with_condition(status.get("conditions") or [], note)
        try:
            await self._write(deployment, status, None)
        except HolokubeError:
            # The failure to create is the news; it is raised by our caller.
            return

    async def _write(self, deployment: JsonObject, status: JsonObject, revision: str | None) -> JsonObject | None:
        """Status and revision go in one write: a status update of a Deployment may change annotations."""
        meta = deployment["metadata"]
        annotations = meta.get("annotations") or {}
        if revision is not None and annotations.get(REVISION) != revision:
            meta = {**meta, "annotations": {**annotations, REVISION: revision}}
        elif same_status(deployment.get("status") or {}, status):
            return None
        return await self._client.update_status(
            DEPLOYMENTS, {**deployment, "metadata": meta, "status": status}, meta["namespace"]
        )

    def deployments_of_pod(self, pod: JsonObject) -> list[str]:
        """The Deployment behind a pod's ReplicaSet, for ``Recreate``, which waits until old pods are gone."""
        reference = controller_of(pod)
        if reference is None or reference.get("kind") != "ReplicaSet":
            return []
        api_version = reference.get("apiVersion") or ""
        if api_version != _SETS_VERSION and group_of(api_version) != REPLICA_SETS.group:
            return []
        space = pod["metadata"]["namespace"]
        replica_set = self._replica_sets.get(reference["name"], space)
        parent = controller_of(replica_set) if replica_set else None
        if parent is None or parent.get("kind") != "Deployment":
            return []
        deployment = self._deployments.get(parent["name"], space)
        recreates = deployment is not None and _RECREATE in by_strategy(deployment)
        return [f"{space}/{parent['name']}"] if recreates else []


def by_strategy(deployment: JsonObject) -> tuple[str, ...]:
    """Lists a Deployment under the type of its strategy."""
    kind = (deployment["spec"].get("strategy") or {}).get("type")
    return (kind,) if kind else ()


def _is_as_sent(answer: JsonObject, sent: JsonObject) -> bool:
    """Whether a server has taken over a ReplicaSet as it was sent, in all that a Deployment goes by."""
    meta, sent_meta = answer["metadata"], sent["metadata"]
    return bool(
        answer["spec"] == sent["spec"]
        and meta.get("annotations") == sent_meta.get("annotations")
        and meta.get("labels") == sent_meta.get("labels")
    )


def _ends(old: JsonObject | None, new: JsonObject | None) -> bool:
    """Whether a pod goes, comes to its end, or is of another set at its end."""
    if new is None:
        return True
    phase = (new.get("status") or {}).get("phase")
    if phase not in ("Succeeded", "Failed"):
        return False
    return (
        old is None
        or (old.get("status") or {}).get("phase") != phase
        or old["metadata"].get("ownerReferences") != new["metadata"].get("ownerReferences")
    )


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
) -> Component:
    """The controller of Deployments."""
    reconciler = DeploymentReconciler(clock, client, informers, recorder)
    deployments = informers.indexed(DEPLOYMENTS, STRATEGY_INDEX, by_strategy, heeds=SPEC)
    replica_sets = by_controller(informers, REPLICA_SETS)
    # Few Deployments wait for the end of pods; most clusters have none that does.
    waiting = Need(deployments, lambda: deployments.lister.has_indexed(STRATEGY_INDEX, _RECREATE), heeds=SPEC)
    looks = LaterLooks(reconciler.reconcile)
    return Controller(
        clock, "deployment-controller", looks.reconcile, workers=WORKERS, postpone=looks.postpone,
        sources=[
            InformerSource(deployments, enqueue_self, concerns=reconciler.concerns_deployment),
            PodOwnerSource(
                replica_sets, DEPLOYMENTS, deployments, selector_of, concerns=reconciler.concerns_set
            ),
            InformerSource(
                by_controller(informers, PODS), reconciler.deployments_of_pod, concerns=_ends, heeds=ENDING | OWNERS,
                controlled_by=(REPLICA_SETS.group, REPLICA_SETS.kind), hears_orphans=False, needs=waiting,
            ),
        ],
    )  # fmt: skip
