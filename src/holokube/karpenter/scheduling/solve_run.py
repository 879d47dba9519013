"""One attempt to place pods: a queue, three places to try for each pod, and wishes given up one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from holokube.karpenter.pausing import Steps, without_pauses
from holokube.karpenter.scheduling.census import Departure, uid_of
from holokube.karpenter.scheduling.existing_nodes import NodesInRun
from holokube.karpenter.scheduling.groundwork import Groundwork
from holokube.karpenter.scheduling.open_claims import Addition, ClaimBoard, ClaimChecks, OpenClaim
from holokube.karpenter.scheduling.pod_forms import PodForm, QueuedPod
from holokube.karpenter.scheduling.problem import Problem, SolveOptions
from holokube.karpenter.scheduling.requirement_states import RequirementState
from holokube.karpenter.scheduling.reservations import Reservations, ReservedError
from holokube.karpenter.scheduling.templates import Template
from holokube.karpenter.scheduling.topology import FormTopology, Topology
from holokube.karpenter.scheduling.type_table import IntArray, RowArray
from holokube.kube.resources import ResourceVector
from holokube.kube.types import JsonObject

NODES: Final = "nodes"
_RANK: Final = attrgetter("rank")
_Opening = tuple[PodForm, Template, RequirementState]
RESOURCE_CLAIMS_IGNORED: Final = "pods with ResourceClaims (dynamic resource allocation) are not supported"


class Failure(NamedTuple):
    """Why a pod has no place; the words are found when they are asked for."""

    form: PodForm
    reserved: str = ""
    is_dra: bool = False


class SolveRun:
    """The state of one attempt. Nothing of it reaches the groundwork, so that attempts do not see each other."""

    def __init__(
        self,
        ground: Groundwork,
        pods: Sequence[QueuedPod],
        leaving: Collection[int] = (),
        moving: Sequence[str] = (),
        options: SolveOptions | None = None,
    ) -> None:
        """``leaving`` are rows of nodes that will be gone, ``moving`` uids of bound pods among ``pods``.

        ``options`` count instead of those of the groundwork's problem, from which only what is about time and reserved
        capacity may differ.
        """
        self._ground = ground
        problem = ground.problem
        options = options or problem.options
        nodes = ground.nodes
        census = ground.census
        self._pods = sorted(pods, key=_RANK)
        names = [nodes.nodes[row].node_name for row in leaving]
        self._topology = Topology(
            census,
            lambda: nodes.hosts,
            dict.fromkeys([queued.form for queued in pods]),
            Departure(census, moving, [census.numbers[n] for n in names if n in census.numbers])
            if leaving or moving
            else None,
        )
        self.nodes = NodesInRun(nodes, leaving, problem.now_s)
        has_reserved = options.reserved_capacity and any(t.table.has_reserved for t in ground.templates)
        types = (one for types in problem.types_of_pool.values() for one in types)
        reservations = Reservations(types, options.reservation_credit) if has_reserved else None
        self._checks = ClaimChecks(
            reservations, problem.well_known,
            is_strict=options.reserved_mode == "strict",
            relax_min_values=options.min_values_policy == "BestEffort",
        )  # fmt: skip
        self.board = ClaimBoard(self._checks, len(ground.columns))
        self.limits: dict[str, ResourceVector] = {name: dict(limit) for name, limit in ground.limits.items()}
        for row in leaving:
            node = nodes.nodes[row]
            for name in self.limits.get(node.pool_name, ()):
                self.limits[node.pool_name][name] += node.capacity.get(name, 0)
        self._blank: dict[Template, tuple[RowArray, IntArray]] = {}
        self._openings: dict[_Opening, tuple[RequirementState, RowArray, IntArray, bool]] = {}
        self._closed: set[_Opening] = set()
        self._joined: Addition | None = None
        """How the last pod that found a place came to a claim; None if it did not, or not with all its wishes."""
        self._changes = 0
        self._failed_at: dict[tuple[PodForm, bool], tuple[int, Failure]] = {}
        self.failures: dict[str, tuple[JsonObject, Failure]] = {}
        """By uid."""
        self.timed_out = False

    def run(self) -> None:
        """Place pods until all have a place, or a whole round brought nothing."""
        without_pauses(self.steps())

    def steps(self, is_late: Callable[[], bool] | None = None) -> Steps[None]:
        """The same pod by pod; it may end because it is late."""
        queue = deque(self._pods)
        pushed_at: dict[str, int] = {}
        while queue:
            queued = queue[0]
            if pushed_at.get(queued.uid) == len(queue):
                break
            if is_late is not None and is_late():
                self.timed_out = True
                break
            queue.popleft()
            failure = self._try(queued)
            if failure is None:
                self.failures.pop(queued.uid, None)
                if queue and queue[0].form is queued.form:
                    self._place_alike(queued, queue, pushed_at, is_late)
                    if self.timed_out:
                        break
            else:
                self.failures[queued.uid] = queued.pod, failure
                queue.append(queued)
                pushed_at[queued.uid] = len(queue)
            yield

    def _place_alike(
        self, like: QueuedPod, queue: deque[QueuedPod], tried: Collection[str], is_late: Callable[[], bool] | None
    ) -> None:
        """Places the pods that come next and are like one just placed, as far as they go to the same place one by one.

        Pods that were tried before have to be seen one by one, for the search ends when a round of them brings nothing.
        """
        if not self._topology.is_idle:
            return
        form, joined = like.form, self._joined
        if joined is None:
            row, count = self.nodes.room_for_alike(form, self._topology.of(form), is_moving=like.is_moving)
        else:
            row, count = -1, self.board.room_for_alike(joined, form)
        pods = self._next_alike(like, count, queue, tried, is_late) if count else None
        if not pods:
            return
        if joined is None:
            self.nodes.place_alike(row, form, pods)
        else:
            self.board.join_alike(joined, form, pods)
        self._changes += len(pods)

    def _next_alike(
        self, like: QueuedPod, count: int, queue: deque[QueuedPod], tried: Collection[str],
        is_late: Callable[[], bool] | None,
    ) -> list[JsonObject]:  # fmt: skip
        """Takes so many pods from the queue as are like one that was placed."""
        form, is_moving = like.form, like.is_moving
        pods: list[JsonObject] = []
        while len(pods) < count and queue:
            one = queue[0]
            if one.form is not form or one.is_moving != is_moving or (tried and one.uid in tried):
                break
            if is_late is not None and is_late():
                self.timed_out = True
                break
            queue.popleft()
            pods.append(one.pod)
        return pods

    @property
    def problem(self) -> Problem:
        """What is being solved."""
        return self._ground.problem

    def topology_of(self, form: PodForm) -> FormTopology:
        """The groups that matter to a form."""
        return self._topology.of(form)

    def _try(self, queued: QueuedPod) -> Failure | None:
        form: PodForm | None = queued.form
        assert form is not None
        known = self._failed_at.get((form, queued.is_moving))
        if known is not None and known[0] == self._changes:
            return known[1]
        if form.has_resource_claims and self._ground.problem.options.ignore_dra_requests:
            return Failure(form, is_dra=True)
        last = form
        while form is not None:
            last = form
            try:
                if self._add(queued, form):
                    self._changes += 1
                    return None
            except ReservedError as error:
                return self._fail(queued, Failure(form, reserved=str(error)))
            form = form.relaxed
        return self._fail(queued, Failure(last))

    def _fail(self, queued: QueuedPod, failure: Failure) -> Failure:
        # Nothing has changed for a pod of the same form until some pod finds a place.
        self._failed_at[queued.form, queued.is_moving] = self._changes, failure
        return failure

    def _add(self, queued: QueuedPod, form: PodForm) -> bool:
        topology = self._topology.of(form)
        found = self.nodes.find(form, topology, is_moving=queued.is_moving)
        if found is not None:
            self._joined = None
            self._place_on_node(*found, form, topology, queued.pod)
            return True
        addition = self.board.find(form, topology)
        if addition is not None:
            self._joined = addition if form is queued.form else None
            self.board.join(addition, form, queued.pod)
            self._record(addition.claim, form, topology)
            return True
        addition = self._opening(form, topology)
        if addition is None:
            return False
        self._joined = addition if form is queued.form else None
        self.board.open(addition, form, queued.pod)
        self._record(addition.claim, form, topology)
        self._charge(addition.claim)
        return True

    def _place_on_node(
        self, row: int, state: RequirementState, form: PodForm, topology: FormTopology, pod: JsonObject
    ) -> None:
        self.nodes.place(row, state, form, pod)
        if self._topology.is_idle:
            return
        table = self._ground.nodes
        host = int(table.host_of_row[row])
        self._topology.record_on_node(form, topology, host, state, table.taints[row], table.nodes[row].hostname)

    def _record(self, claim: OpenClaim, form: PodForm, topology: FormTopology) -> None:
        self._topology.record_on_claim(form, topology, claim.number, claim.state, claim.template.taints, claim.hostname)

    def _opening(self, form: PodForm, topology: FormTopology) -> Addition | None:
        """A new claim from the first pool that has something for the pod.

        A pool with reserved capacity that the pod should wait for keeps it from all pools after it.
        """
        if not topology.opens_new():
            return None
        for template in self._ground.templates:
            if not template.is_tolerated(form.demands.tolerations):
                continue
            claim = self.blank_claim(template)
            if claim is None or (form.hostname is not None and not form.hostname.has(claim.hostname)):
                continue
            addition = self._addition(claim, form, topology)
            if addition is not None:
                return addition
        return None

    def _addition(self, claim: OpenClaim, form: PodForm, topology: FormTopology) -> Addition | None:
        """The new claim with its first pod. What was worked out for a form holds for the next pod that has it."""
        template = claim.template
        if form.volume_alternatives or template.table.has_reserved or form.volumes:
            return self._checks.addition(claim, form, topology, is_new=True)
        state = claim.state.taking(form.requirements)
        after = topology.step(state) if state is not None else None
        if after is None:
            return None
        key = form, template, after
        if key in self._closed:
            return None
        known = self._openings.get(key)
        if known is not None:
            addition = Addition(claim, *known[:3])
            addition.min_values_relaxed = known[3]
            return addition
        made = self._checks.addition(claim, form, topology, is_new=True)
        if made is None:
            self._closed.add(key)
        else:
            self._openings[key] = made.state, made.rows, made.free, made.min_values_relaxed
        return made

    def blank_claim(self, template: Template) -> OpenClaim | None:
        """A claim without pods; None if the pool's limits leave no instance type."""
        blank = self._blank.get(template)
        if blank is None:
            rows = self._rows_within_limits(template)
            blank = self._blank[template] = rows, template.table.room[:, rows]
        if not len(blank[0]):
            return None
        return OpenClaim(len(self.board.claims), template, *blank, len(self._ground.columns))

    def _rows_within_limits(self, template: Template) -> RowArray:
        remaining = self.limits.get(template.pool.name)
        if remaining is None:
            return np.arange(template.table.room.shape[1])
        # Nodes are counted before a run, and not within it.
        return template.within(remaining) if remaining.get(NODES) != 0 else np.zeros(0, dtype=np.intp)

    def _charge(self, claim: OpenClaim) -> None:
        """Take the largest type that the new node may turn out to be off the pool's limits."""
        template = claim.template
        remaining = self.limits.get(template.pool.name)
        if not remaining:
            return
        for name in remaining:
            remaining[name] -= template.largest(name, claim.rows)
        if len(self._rows_within_limits(template)) == len(self._blank[template][0]):
            return
        del self._blank[template]
        self._openings = {key: known for key, known in self._openings.items() if key[1] is not template}


def queued(
    ground: Groundwork, pods: Iterable[JsonObject], is_moving: Callable[[JsonObject], bool] | None = None
) -> tuple[list[QueuedPod], dict[str, tuple[JsonObject, str]]]:
    """Pods with their forms, and those that cannot be placed at all with the reason."""
    found: list[QueuedPod] = []
    refused: dict[str, tuple[JsonObject, str]] = {}
    known, of_book = ground.forms.known, ground.forms.queued
    for pod in pods:
        one = known(id(pod))
        if one is None:
            try:
                one = of_book(pod)
            except LookupError as error:
                refused[uid_of(pod)] = pod, str(error.args[0])
                continue
        if is_moving is not None and is_moving(pod):
            one = QueuedPod(one.pod, one.form, one.uid, one.rank, is_moving=True)
        found.append(one)
    return found, refused
