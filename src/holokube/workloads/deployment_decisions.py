"""What a Deployment does next with its ReplicaSets: create, scale, clean up; and what it says of itself.

``decide`` works on copies of the sets as if its writes had succeeded, and hands out each changed set once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from holokube.kube.conditions import conditions_of, find_condition
from holokube.kube.types import JsonObject
from holokube.workloads import deployment_revisions as revisions
from holokube.workloads import deployment_status as statuses
from holokube.workloads.pod_status import is_terminated
from holokube.workloads.replica_set_decisions import replicas_of

_NEVER = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Scaled:
    """One step in the size of a set, for the event."""

    name: str
    before: int
    after: int

    def __str__(self) -> str:
        direction = "up" if self.before < self.after else "down"
        return f"Scaled {direction} replica set {self.name} from {self.before} to {self.after}"


@dataclass(slots=True)
class Plan:
    """All that has to be written, in this order, and when to look again."""

    create: JsonObject | None = None
    updates: list[JsonObject] = field(default_factory=list)
    scaled: list[Scaled] = field(default_factory=list)
    deletes: list[JsonObject] = field(default_factory=list)
    status: JsonObject = field(default_factory=dict)
    revision: str | None = None
    """For the Deployment's own annotation; None leaves it."""
    check_in_s: float | None = None
    rests: bool = False
    """Whether all pods are wanted of one set, that has the size for it: what changes from now on are numbers."""
    brings_to_rest: bool = False
    """Whether that will be so once the only set has the size that this plan gives it."""

    @property
    def only_tells(self) -> bool:
        """Whether nothing is to be written but the status. To decide again at the same moment then changes nothing."""
        return self.create is None and not self.updates and not self.deletes


def decide(
    deployment: JsonObject,
    replica_sets: Sequence[JsonObject],
    pods: Mapping[str, Sequence[JsonObject]],
    now: datetime,
) -> Plan:
    """``pods`` are the pods of each set, by the set's uid."""
    return _Rollout(deployment, replica_sets, pods, now).plan()


@dataclass(frozen=True, slots=True)
class Rest:
    """A Deployment and its only set, between which nothing was left to do but to tell how many pods there are.

    Objects are never changed: as long as both have the very same specs, annotations and labels, that holds.
    """

    spec: JsonObject
    annotations: object
    set_spec: JsonObject
    set_annotations: object
    set_labels: object
    revision: str | None

    @classmethod
    def after(cls, plan: Plan, deployment: JsonObject, replica_set: JsonObject) -> Rest | None:
        """What may be gone by after a plan for these two; None if it left more to do."""
        return cls.of(deployment, replica_set, plan.revision) if plan.rests else None

    @classmethod
    def of(cls, deployment: JsonObject, replica_set: JsonObject, revision: str | None) -> Rest:
        """The same for two that are known to be at rest, as after a plan that brings them to it."""
        meta, set_meta = deployment["metadata"], replica_set["metadata"]
        return cls(
            deployment["spec"], meta.get("annotations"), replica_set["spec"], set_meta.get("annotations"),
            set_meta.get("labels"), revision,
        )  # fmt: skip

    def stays(self, old: JsonObject, new: JsonObject) -> bool:
        """Whether a change of the set is none to the Deployment: only that its controller has seen what is wanted, of
        which nothing is told, is new."""
        was, now = old["metadata"], new["metadata"]
        before, after = old.get("status") or {}, new.get("status") or {}
        if not (
            new["spec"] is self.set_spec
            and old["spec"] is self.set_spec
            and now.get("annotations") is self.set_annotations
            and now.get("labels") is self.set_labels
            and was.get("ownerReferences") == now.get("ownerReferences")
            and was.get("deletionTimestamp") == now.get("deletionTimestamp")
            and before.keys() == after.keys()
            and "terminatingReplicas" in before
        ):
            return False
        for name, value in after.items():  # noqa: SIM110 - all() with a generator costs twice as much
            if before[name] != value and name != "observedGeneration":
                return False
        return True

    def plan(self, deployment: JsonObject, replica_set: JsonObject, now: datetime) -> Plan | None:
        """The plan for these two, for which the set must be the Deployment's only one; None if it has to be decided."""
        meta, set_meta = deployment["metadata"], replica_set["metadata"]
        if not (
            deployment["spec"] is self.spec
            and replica_set["spec"] is self.set_spec
            and meta.get("annotations") is self.annotations
            and set_meta.get("annotations") is self.set_annotations
            and set_meta.get("labels") is self.set_labels
            and not meta.get("deletionTimestamp")
        ):
            return None
        conditions = conditions_of(deployment)
        if statuses.tells_numbers_only(deployment, replica_set):
            status = statuses.count_status(deployment, (replica_set,), replica_set, conditions, now)
            return Plan(status=status, revision=self.revision, rests=True)
        progressing = find_condition(conditions, "Progressing")
        if progressing is None or progressing.get("reason") == statuses.PAUSED:
            return None
        status = statuses.rollout_status(deployment, (replica_set,), replica_set, conditions, now)
        check_in_s = statuses.progress_check_in_s(deployment, status, now)
        return Plan(status=status, revision=self.revision, check_in_s=check_in_s, rests=True)


class _Rollout:
    def __init__(
        self,
        deployment: JsonObject,
        replica_sets: Sequence[JsonObject],
        pods: Mapping[str, Sequence[JsonObject]],
        now: datetime,
    ) -> None:
        self.deployment = deployment
        self.wanted = replicas_of(deployment)
        self.surge, self.unavailable = revisions.fenceposts(deployment)
        self.pods = pods
        self.now = now
        self.plan_ = Plan()
        self.originals = {rs["metadata"]["name"]: rs for rs in replica_sets}
        self.sets = dict(self.originals)
        new, old = revisions.split(deployment, replica_sets)
        self.new_name = new["metadata"]["name"] if new else ""
        self.old_names = [rs["metadata"]["name"] for rs in old]
        self.conditions = statuses.pause_conditions(deployment, now)

    @property
    def new(self) -> JsonObject | None:
        return self.sets[self.new_name] if self.new_name else None

    @property
    def old(self) -> list[JsonObject]:
        return [self.sets[name] for name in self.old_names] if self.old_names else []

    @property
    def all(self) -> list[JsonObject]:
        sets = self.old
        if self.new_name:
            sets.append(self.sets[self.new_name])
        return sets

    def plan(self) -> Plan:
        if self.deployment["metadata"].get("deletionTimestamp"):
            self.plan_.status = statuses.count_status(
                self.deployment, self.all, self.new, self.conditions, self.now
            )
            return self.plan_
        self._annotate_new()
        if self.deployment["spec"].get("paused"):
            self._scale()
            self._clean_up()
            self._finish(rollout=False)
        elif self._is_scaling():
            self._scale()
            self._finish(rollout=False)
            self.plan_.brings_to_rest = self._will_rest()
        elif revisions.is_rolling(self.deployment):
            self._roll()
            self._finish(rollout=True)
            self.plan_.rests = self.plan_.only_tells and len(self.sets) == 1
        else:
            self._recreate()
            self._finish(rollout=True)
        return self.plan_

    def _finish(self, *, rollout: bool) -> None:
        plan = self.plan_
        plan.updates = [
            rs for name, rs in self.sets.items() if name in self.originals and rs is not self.originals[name]
        ]
        count = statuses.rollout_status if rollout else statuses.count_status
        plan.status = count(self.deployment, self.all, self.new, self.conditions, self.now)
        if rollout:
            plan.check_in_s = statuses.progress_check_in_s(self.deployment, plan.status, self.now)

    # Revisions

    def _annotate_new(self) -> None:
        """Keeps the annotations and ``minReadySeconds`` of the new set up to date, if there is one."""
        new = self.new
        if new is None:
            return
        revision = revisions.next_revision(self.old) if self.old_names else 1
        annotations = revisions.new_annotations(self.deployment, new, revision)
        if annotations != revisions.annotations_of(new):
            new = {**new, "metadata": {**new["metadata"], "annotations": annotations}}
        min_ready_s = self.deployment["spec"].get("minReadySeconds") or 0
        if (new["spec"].get("minReadySeconds") or 0) != min_ready_s:
            new = {**new, "spec": {**new["spec"], "minReadySeconds": min_ready_s}}
        self.sets[self.new_name] = new
        self.plan_.revision = annotations.get(revisions.REVISION)
        if statuses.deadline_s(self.deployment) is not None and find_condition(self.conditions, "Progressing") is None:
            message = f'Found new replica set "{self.new_name}"'
            self._note("FoundNewReplicaSet", message)

    def _create_new(self) -> None:
        revision = revisions.next_revision(self.old)
        total = sum(replicas_of(rs) for rs in self.old)
        size = self.wanted
        if revisions.is_rolling(self.deployment):
            size = max(0, min(self.wanted, self.wanted + self.surge - total))
        created = revisions.new_replica_set(self.deployment, revision, size)
        self.new_name = created["metadata"]["name"]
        self.sets[self.new_name] = created
        self.plan_.create = created
        self.plan_.revision = str(revision)
        if statuses.deadline_s(self.deployment) is not None:
            self._note("NewReplicaSetCreated", f'Created new replica set "{self.new_name}"')

    def _note(self, reason: str, message: str) -> None:
        note = statuses.condition("Progressing", "True", reason, message, self.now)
        self.conditions = statuses.with_condition(self.conditions, note)

    def _will_rest(self) -> bool:
        """Whether a plan that gives a new size leaves nothing to be decided: there is one set, of the present template,
        that has the size and says so, and all else was put right on the way."""
        new, sets = self.new, self.sets
        return (
            new is not None
            and len(sets) == 1
            and new is not self.originals.get(self.new_name)
            and revisions.is_rolling(self.deployment)
            and replicas_of(new) == self.wanted
            and not self._is_scaling()
        )

    # Scaling outside a rollout

    def _is_scaling(self) -> bool:
        """Whether the wanted number changed since the sets were last sized."""
        for rs in self.all:
            desired = revisions.number_annotation(rs, revisions.DESIRED_REPLICAS)
            if replicas_of(rs) > 0 and desired is not None and desired != self.wanted:
                return True
        return False

    def _scale(self) -> None:
        active = [rs for rs in self.all if replicas_of(rs) > 0]
        if len(active) <= 1:
            newest_old = max(self.old, key=revisions.by_creation, default=None)
            only = active[0] if active else self.new or newest_old
            if only is not None:
                self._resize(only, self.wanted)
            return
        if self._is_saturated():
            for rs in active:
                if rs["metadata"]["name"] != self.new_name:
                    self._resize(rs, 0)
        elif revisions.is_rolling(self.deployment):
            self._scale_in_proportion(active)

    def _is_saturated(self) -> bool:
        new = self.new
        return new is not None and (
            replicas_of(new) == self.wanted
            and revisions.number_annotation(new, revisions.DESIRED_REPLICAS) == self.wanted
            and _available(new) == self.wanted
        )

    def _scale_in_proportion(self, active: list[JsonObject]) -> None:
        """In the middle of a rollout every set gets its share, larger ones first."""
        allowed = self.wanted + self.surge if self.wanted > 0 else 0
        to_add = allowed - sum(replicas_of(rs) for rs in active)
        # Among sets of one size, new ones grow first and old ones shrink first.
        active = sorted(active, key=revisions.by_creation, reverse=to_add > 0)
        active.sort(key=replicas_of, reverse=True)
        sizes: dict[str, int] = {}
        added = 0
        for rs in active:
            share = self._share(rs, to_add, added)
            sizes[rs["metadata"]["name"]] = replicas_of(rs) + share
            added += share
        largest = active[0]["metadata"]["name"]
        sizes[largest] = max(0, sizes[largest] + to_add - added)
        for rs in active:
            self._resize(rs, sizes[rs["metadata"]["name"]], force=True)

    def _share(self, rs: JsonObject, to_add: int, added: int) -> int:
        size = replicas_of(rs)
        left = to_add - added
        if size == 0 or left == 0 or to_add == 0:
            return 0
        if self.wanted == 0:
            share = -size
        else:
            before = revisions.number_annotation(rs, revisions.MAX_REPLICAS) or int(
                (self.deployment.get("status") or {}).get("replicas") or 0
            )
            if before == 0:
                return 0
            # Rounded half up, in whole numbers.
            share = (2 * size * (self.wanted + self.surge) + before) // (2 * before) - size
        return min(share, left) if to_add > 0 else max(share, left)

    def _resize(self, rs: JsonObject, size: int, *, force: bool = False) -> bool:
        """Gives a set a new size, and notes the wanted number on it; True if its size changed."""
        before = replicas_of(rs)
        if before == size and not force:
            return False
        meta = rs["metadata"]
        annotations = {**revisions.annotations_of(rs), **revisions.size_annotations(self.deployment)}
        if before == size and annotations == revisions.annotations_of(rs):
            return False
        self.sets[meta["name"]] = {
            **rs,
            "metadata": {**meta, "annotations": annotations},
            "spec": {**rs["spec"], "replicas": size},
        }
        if before == size:
            return False
        self.plan_.scaled.append(Scaled(meta["name"], before, size))
        return True

    # Rollouts

    def _roll(self) -> None:
        if self.new is None:
            self._create_new()
        elif self._grow_new():
            return
        if not self._shrink_old() and statuses.is_complete(self.deployment, self.deployment.get("status") or {}):
            self._clean_up()

    def _grow_new(self) -> bool:
        new = self.new
        assert new is not None
        size = replicas_of(new)
        if size == self.wanted:
            return False
        if size > self.wanted:
            return self._resize(new, self.wanted)
        room = self.wanted + self.surge - sum(replicas_of(rs) for rs in self.all)
        return self._resize(new, size + max(0, min(room, self.wanted - size)))

    def _shrink_old(self) -> bool:
        """Takes away old pods: those that are not available first, then as many as availability allows."""
        if not self.old_names:
            return False
        old = sorted((rs for rs in self.old if replicas_of(rs) > 0), key=revisions.by_creation)
        new = self.new
        assert new is not None
        least = self.wanted - self.unavailable
        total = sum(replicas_of(rs) for rs in self.all)
        spare = total - least - (replicas_of(new) - _available(new))
        if not old or spare <= 0:
            return False
        changed = False
        for rs in old:
            unhealthy = replicas_of(rs) - _available(rs)
            if unhealthy < 0:
                # Its status is from before it was made smaller: what is available is not known yet.
                return False
            step = min(spare, unhealthy)
            if step > 0:
                changed = self._resize(rs, replicas_of(rs) - step) or changed
                spare -= step
        available = sum(_available(rs) for rs in self.all)
        surplus = available - least
        for name in [rs["metadata"]["name"] for rs in old]:
            step = min(surplus, replicas_of(self.sets[name]))
            if step > 0:
                changed = self._resize(self.sets[name], replicas_of(self.sets[name]) - step) or changed
                surplus -= step
        return changed

    def _recreate(self) -> None:
        running = [rs for rs in self.old if replicas_of(rs) > 0]
        for rs in running:
            self._resize(rs, 0)
        if running:
            return
        if self._old_pods_run():
            return
        if self.new is None:
            self._create_new()
        new = self.new
        assert new is not None
        self._resize(new, self.wanted)
        if statuses.is_complete(self.deployment, self.deployment.get("status") or {}):
            self._clean_up()

    def _old_pods_run(self) -> bool:
        if any(int((rs.get("status") or {}).get("replicas") or 0) > 0 for rs in self.old):
            return True
        return any(
            not is_terminated(pod) for rs in self.old for pod in self.pods.get(rs["metadata"]["uid"], ())
        )

    def _clean_up(self) -> None:
        """Old empty sets beyond the history limit go, the lowest revisions first."""
        limit = self.deployment["spec"].get("revisionHistoryLimit")
        if limit is None or limit == _NEVER:
            return
        alive = [rs for rs in self.old if not rs["metadata"].get("deletionTimestamp")]
        alive.sort(key=lambda rs: (revisions.revision_of(rs) or 0, revisions.by_creation(rs)))
        for rs in alive[: max(0, len(alive) - limit)]:
            status = rs.get("status") or {}
            seen = (rs["metadata"].get("generation") or 0) <= (status.get("observedGeneration") or 0)
            if replicas_of(rs) == 0 and not status.get("replicas") and seen:
                self.plan_.deletes.append(rs)


def _available(rs: JsonObject) -> int:
    return int((rs.get("status") or {}).get("availableReplicas") or 0)
