"""Keeps the pods of StatefulSets: each with a name, a place in the order, and claims of its own."""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.resources import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS
from holokube.kube.errors import AlreadyExists, NotFound
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.runtime.app import Component
from holokube.runtime.events import NORMAL, WARNING, EventRecorder
from holokube.runtime.informers import InformerSet
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.sources import InformerSource, enqueue_self
from holokube.workloads import controller_history as history
from holokube.workloads.expectations import RECHECK_S, Expectations
from holokube.workloads.ownership import CONTROLLER_INDEX, by_controller, claim, orphans_of
from holokube.workloads.pod_control import namespace_is_terminating, slow_start
from holokube.workloads.pod_sources import PodOwnerSource, selector_of
from holokube.workloads.pod_status import next_availability_s
from holokube.workloads.pod_templates import template_hash
from holokube.workloads.stateful_set_decisions import (
    StatefulPlan,
    StatefulState,
    decide,
    decide_status,
    revision_of,
)
from holokube.workloads.stateful_set_pods import (
    POD_NAME,
    claim_owners,
    claims_of,
    is_in_range,
    is_stale_claim,
    ordinal_of,
)
from holokube.workloads.status_writes import write_status

WORKERS = 5
_HASH_LABEL = "controller.kubernetes.io/hash"


class StatefulSetReconciler:
    """Brings one StatefulSet a step further."""

    def __init__(
        self, clock: Clock, client: Client, informers: InformerSet, recorder: EventRecorder
    ) -> None:
        self._clock = clock
        self._client = client
        self._recorder = recorder
        self._sets = informers.get(STATEFUL_SETS).lister
        self._revisions = by_controller(informers, CONTROLLER_REVISIONS).lister
        self._claims = informers.get(PERSISTENT_VOLUME_CLAIMS).lister
        pods = by_controller(informers, PODS)
        self._pods = pods.lister
        self._expectations = Expectations(clock, pods)

    async def reconcile(self, key: str) -> Result | None:
        stateful_set = self._sets.by_key(key)
        if stateful_set is None:
            self._expectations.forget(key)
            return None
        selector = selector_of(stateful_set)
        if selector.is_empty:
            return None
        if not self._expectations.met(key):
            return Result(RECHECK_S)
        pods = await self._claim_pods(stateful_set, selector)
        revisions = await self._claim_revisions(stateful_set, selector)
        current, update = await self._choose_revisions(stateful_set, revisions)
        state = StatefulState(stateful_set, current, update, pods, self._clock.now())
        plan = decide(state)
        failure: HolokubeError | None = None
        try:
            failure = await self._carry_out(key, state, plan)
        finally:
            # Whatever failed, users see what there is.
            await write_status(self._client, STATEFUL_SETS, stateful_set, decide_status(state, plan))
        if failure is not None:
            raise failure
        await self._trim_history(state, revisions)
        return self._look_again(key, state)

    def _look_again(self, key: str, state: StatefulState) -> Result | None:
        waits = [] if self._expectations.met(key) else [RECHECK_S]
        if state.min_ready_s:
            available_in_s = next_availability_s(state.pods, state.min_ready_s, state.now)
            if available_in_s is not None:
                waits.append(max(available_in_s, 0.001))
        return Result(min(waits)) if waits else None

    async def _claim_pods(self, stateful_set: JsonObject, selector: LabelSelector) -> list[JsonObject]:
        meta = stateful_set["metadata"]
        orphans = self._pods.by_index(CONTROLLER_INDEX, orphans_of(meta["namespace"]))
        candidates = [
            *self._pods.by_index(CONTROLLER_INDEX, meta["uid"]),
            *(pod for pod in orphans if ordinal_of(meta["name"], pod) is not None),
        ]
        return await claim(self._client, STATEFUL_SETS, stateful_set, PODS, selector, candidates)

    # Pods and claims

    async def _carry_out(self, key: str, state: StatefulState, plan: StatefulPlan) -> HolokubeError | None:
        stateful_set = state.stateful_set

        async def create_one(pod: JsonObject) -> None:
            await self._create(key, stateful_set, pod)

        async def delete_one(pod: JsonObject) -> None:
            await self._delete(key, stateful_set, pod)

        for pod in plan.claims_for:
            fixed = await self._fix_identity(stateful_set, pod)
            made = await self._ensure_claims(stateful_set, pod)
            fixed = await self._fix_claim_owners(stateful_set, pod, made) or fixed
            if fixed and is_in_range(stateful_set, self._ordinal(stateful_set, pod)):
                self._tell(stateful_set, "update", f"Pod {pod['metadata']['name']}", None)
        return await slow_start(plan.create, create_one) or await slow_start(plan.delete, delete_one)

    async def _create(self, key: str, stateful_set: JsonObject, pod: JsonObject) -> None:
        meta = pod["metadata"]
        if any(is_stale_claim(found, pod) for found in self._existing_claims(stateful_set, pod)):
            # The claim goes with the pod that had this name before; its deletion is on its way.
            return
        try:
            made = await self._ensure_claims(stateful_set, pod)
            created = await self._client.create(PODS, pod, meta["namespace"])
        except AlreadyExists:
            # A late cache, or a foreign pod of that name, which has to go before ours can come.
            raise
        except HolokubeError as error:
            if namespace_is_terminating(error):
                return
            self._tell(stateful_set, "create", f"Pod {meta['name']}", error)
            raise
        self._expectations.created(key, created)
        self._tell(stateful_set, "create", f"Pod {meta['name']}", None)
        await self._fix_claim_owners(stateful_set, created, made)

    async def _delete(self, key: str, stateful_set: JsonObject, pod: JsonObject) -> None:
        meta = pod["metadata"]
        try:
            await self._client.delete(PODS, meta["name"], meta["namespace"], uid=meta["uid"])
        except NotFound:
            return
        except HolokubeError as error:
            self._tell(stateful_set, "delete", f"Pod {meta['name']}", error)
            raise
        self._expectations.deleted(key, pod)
        self._tell(stateful_set, "delete", f"Pod {meta['name']}", None)

    async def _fix_identity(self, stateful_set: JsonObject, pod: JsonObject) -> bool:
        """A pod that was adopted may lack the label with its name; whether it did."""
        meta = pod["metadata"]
        if (meta.get("labels") or {}).get(POD_NAME) != meta["name"]:
            patch = {"metadata": {"labels": {POD_NAME: meta["name"]}}}
            await self._client.patch(PODS, meta["name"], patch, namespace=stateful_set["metadata"]["namespace"])
            return True
        return False

    def _ordinal(self, stateful_set: JsonObject, pod: JsonObject) -> int:
        ordinal = ordinal_of(stateful_set["metadata"]["name"], pod)
        assert ordinal is not None
        return ordinal

    def _existing_claims(self, stateful_set: JsonObject, pod: JsonObject) -> list[JsonObject]:
        wanted = claims_of(stateful_set, self._ordinal(stateful_set, pod))
        found = [self._claims.get(c["metadata"]["name"], c["metadata"]["namespace"]) for c in wanted]
        return [existing for existing in found if existing is not None]

    async def _ensure_claims(self, stateful_set: JsonObject, pod: JsonObject) -> list[JsonObject]:
        """Creates the claims that a pod lacks; those created, which the cache does not know yet."""
        made: list[JsonObject] = []
        if (pod.get("status") or {}).get("phase") not in (None, "", "Pending"):
            return made
        for wanted in claims_of(stateful_set, self._ordinal(stateful_set, pod)):
            name, space = wanted["metadata"]["name"], wanted["metadata"]["namespace"]
            if self._claims.get(name, space) is not None:
                continue
            try:
                made.append(await self._client.create(PERSISTENT_VOLUME_CLAIMS, wanted, space))
            except AlreadyExists:
                continue
            except HolokubeError as error:
                self._tell(stateful_set, "create", f"Claim {name} for Pod {pod['metadata']['name']}", error)
                raise
            self._recorder.event(
                stateful_set, NORMAL, "SuccessfulCreate",
                f"Create Claim {name} Pod {pod['metadata']['name']} in StatefulSet "
                f"{stateful_set['metadata']['name']} success",
            )  # fmt: skip
        return made

    async def _fix_claim_owners(
        self, stateful_set: JsonObject, pod: JsonObject, made: list[JsonObject]
    ) -> bool:
        """Has the pod's claims go, or stay, with it as the retention policy says; whether any had to change."""
        changed = False
        fresh = {claim["metadata"]["name"] for claim in made}
        cached = [c for c in self._existing_claims(stateful_set, pod) if c["metadata"]["name"] not in fresh]
        for found in (*cached, *made):
            owners = claim_owners(found, stateful_set, pod)
            if owners is not None:
                meta = {**found["metadata"], "ownerReferences": owners}
                await self._client.update(PERSISTENT_VOLUME_CLAIMS, {**found, "metadata": meta})
                changed = True
        return changed

    def _tell(self, stateful_set: JsonObject, verb: str, what: str, error: HolokubeError | None) -> None:
        text = f"{verb.title()} {what} in StatefulSet {stateful_set['metadata']['name']}"
        if error is None:
            self._recorder.event(stateful_set, NORMAL, f"Successful{verb.title()}", f"{text} successful")
        else:
            self._recorder.event(stateful_set, WARNING, f"Failed{verb.title()}", f"{text} failed error: {error}")

    # Revisions

    async def _claim_revisions(self, stateful_set: JsonObject, selector: LabelSelector) -> list[JsonObject]:
        meta = stateful_set["metadata"]
        candidates = [
            *self._revisions.by_index(CONTROLLER_INDEX, meta["uid"]),
            *self._revisions.by_index(CONTROLLER_INDEX, orphans_of(meta["namespace"])),
        ]
        claimed = await claim(
            self._client, STATEFUL_SETS, stateful_set, CONTROLLER_REVISIONS, selector, candidates
        )
        return history.in_order(claimed)

    async def _choose_revisions(
        self, stateful_set: JsonObject, revisions: list[JsonObject]
    ) -> tuple[JsonObject, JsonObject]:
        """The revision that pods had, and the one they shall have, made if need be."""
        status = stateful_set.get("status") or {}
        same = [r for r in revisions if history.is_revision_of(r, stateful_set)]
        number = history.highest(revisions) + 1
        if same and same[-1] is revisions[-1]:
            update = same[-1]
        elif same:
            # An old template is back: its revision becomes the newest.
            update = await self._client.update(CONTROLLER_REVISIONS, {**same[-1], "revision": number})
        else:
            # A collision is counted in the status, where zero is shown from the start.
            template = stateful_set["spec"]["template"]
            digest = template_hash(template, int(status.get("collisionCount") or 0))
            labels = {**((template.get("metadata") or {}).get("labels") or {}), _HASH_LABEL: digest}
            update = history.new_revision(stateful_set, number, digest, labels)
            # The collector takes the revisions of a set that is being deleted, which needs none. To make them again
            # would be a race that goes on for as long as we are the quicker one, and on virtual time for ever.
            if not stateful_set["metadata"].get("deletionTimestamp"):
                update = await history.create_revision(self._client, STATEFUL_SETS, stateful_set, update)
        named = [r for r in revisions if r["metadata"]["name"] == status.get("currentRevision")]
        return (named[0] if named else update), update

    async def _trim_history(self, state: StatefulState, revisions: list[JsonObject]) -> None:
        """Revisions that nobody uses go when there are more than the limit, oldest first."""
        limit = state.stateful_set["spec"].get("revisionHistoryLimit")
        used = {state.current["metadata"]["name"], state.update["metadata"]["name"]}
        used |= {revision_of(pod) for pod in state.pods}
        unused = [r for r in revisions if r["metadata"]["name"] not in used]
        for revision in unused[: max(0, len(unused) - (10 if limit is None else int(limit)))]:
            meta = revision["metadata"]
            try:
                await self._client.delete(
                    CONTROLLER_REVISIONS, meta["name"], meta["namespace"], uid=meta["uid"]
                )
            except NotFound:
                continue

    def sets_of_claim(self, found: JsonObject) -> list[str]:
        """Sets whose pod waits for a claim of that name to go away, or for it to come back."""
        space, name = found["metadata"]["namespace"], found["metadata"]["name"]
        return [
            f"{space}/{stateful_set['metadata']['name']}" for stateful_set in self._sets.list(space)
            if any(
                name.startswith(f"{template['metadata']['name']}-{stateful_set['metadata']['name']}-")
                for template in stateful_set["spec"].get("volumeClaimTemplates") or ()
            )
        ]  # fmt: skip


def build(
    clock: Clock,
    client: Client,
    informers: InformerSet,
    recorder: EventRecorder,
    rng: Rng,  # noqa: ARG001 - every controller is built with the same arguments
) -> Component:
    """The controller of StatefulSets."""
    reconciler = StatefulSetReconciler(clock, client, informers, recorder)
    sets = informers.get(STATEFUL_SETS)
    return Controller(
        clock, "statefulset-controller", reconciler.reconcile, workers=WORKERS,
        sources=[
            InformerSource(sets, enqueue_self),
            InformerSource(
                informers.get(PERSISTENT_VOLUME_CLAIMS), reconciler.sets_of_claim,
                predicates=[lambda change: change.deleted or change.added],
            ),
            PodOwnerSource(by_controller(informers, PODS), STATEFUL_SETS, sets, selector_of),
            PodOwnerSource(by_controller(informers, CONTROLLER_REVISIONS), STATEFUL_SETS, sets, selector_of),
        ],
    )  # fmt: skip
