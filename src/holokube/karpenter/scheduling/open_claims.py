"""Claims that a run has opened: the second of the three places where a pod may go, and how the third comes to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from holokube.karpenter.scheduling.claim_order import ClaimOrder
from holokube.karpenter.scheduling.existing_nodes import union
from holokube.karpenter.scheduling.host_ports import HostPort, any_conflict
from holokube.karpenter.scheduling.min_values import unmet_min_values
from holokube.karpenter.scheduling.pod_forms import PodForm
from holokube.karpenter.scheduling.requirement_states import RequirementState
from holokube.karpenter.scheduling.reservations import Reservations, ReservationsFullError, ReservedError
from holokube.karpenter.scheduling.templates import Template
from holokube.karpenter.scheduling.topology import FormTopology
from holokube.karpenter.scheduling.topology_groups import placeholder
from holokube.karpenter.scheduling.volume_demands import Volumes
from holokube.kube.requirements import HOSTNAME_LABEL
from holokube.kube.types import JsonObject
from holokube.pricing.instance_types import InstanceType, Offering

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
RowArray = npt.NDArray[np.intp]


class OpenClaim:
    """A node to be. Its arrays are replaced, never changed, so that claims may share them."""

    __slots__ = (
        "free", "min_values_relaxed", "number", "pods", "ports", "rejected", "reserved", "rows", "state", "template",
        "used", "volumes",
    )  # fmt: skip

    def __init__(self, number: int, template: Template, rows: RowArray, free: IntArray, columns: int) -> None:
        self.number = number
        self.template = template
        self.state: RequirementState = template.state
        self.rows = rows
        """Rows of the template's types that are still possible."""
        self.free = free
        """By resource and row: what is left beside the pods it has."""
        self.used: IntArray = np.zeros(columns, dtype=np.int64)
        self.pods: list[JsonObject] = []
        self.ports: tuple[HostPort, ...] = ()
        self.volumes: Volumes = {}
        self.reserved: list[Offering] = []
        self.rejected: set[tuple[PodForm, RequirementState]] = set()
        self.min_values_relaxed = False

    @property
    def hostname(self) -> str:
        """Stands for the node until it has a name."""
        return placeholder(self.number)

    @property
    def types(self) -> list[InstanceType]:
        """The instance types that are still possible."""
        return self.template.table.types_of(self.rows)


class Addition:
    """How a claim would look with a pod more."""

    __slots__ = ("claim", "free", "is_only", "min_values_relaxed", "place", "reserved", "rows", "state")

    def __init__(self, claim: OpenClaim, state: RequirementState, rows: RowArray, free: IntArray) -> None:
        self.claim = claim
        self.state = state
        self.rows = rows
        self.free = free
        self.reserved: list[Offering] = []
        self.min_values_relaxed = False
        self.place = -1
        self.is_only = True
        """Whether no other open claim has a place for such a pod."""


class ClaimChecks:
    """The rules by which a pod may join a claim. Taints and what hostname groups say are checked before."""

    def __init__(
        self,
        reservations: Reservations | None,
        well_known: frozenset[str],
        *,
        is_strict: bool,
        relax_min_values: bool,
    ) -> None:
        self._reservations = reservations
        self._well_known = well_known
        self._is_strict = is_strict
        self._relax_min_values = relax_min_values

    def addition(self, claim: OpenClaim, form: PodForm, topology: FormTopology, *, is_new: bool) -> Addition | None:
        """The claim with a pod of this form; None if it does not fit. ReservedError if the pod should wait."""
        waiting: ReservedError | None = None
        found: Addition | None = None
        for state in self._states(claim, form, topology):
            try:
                found = self._with(claim, form, state, is_new)
            except ReservedError as error:
                waiting = error
                continue
            waiting = None
            if found is not None:
                return found
        if waiting is not None:
            raise waiting
        return found

    def _states(self, claim: OpenClaim, form: PodForm, topology: FormTopology) -> Iterator[RequirementState]:
        """The states that the claim could be in then: one, or one for each alternative of the pod's volumes."""
        state = claim.state.taking(form.requirements)
        if state is None:
            return
        if not form.volume_alternatives:
            after = topology.step(state)
            if after is not None:
                yield after
            return
        for wanted in form.volume_alternatives:
            on_host = wanted.get(HOSTNAME_LABEL)
            if on_host is not None and not on_host.has(claim.hostname):
                continue
            there = state.taking(wanted.without(HOSTNAME_LABEL) if on_host is not None else wanted)
            after = topology.step(there) if there is not None else None
            if after is not None:
                yield after

    def _with(self, claim: OpenClaim, form: PodForm, state: RequirementState, is_new: bool) -> Addition | None:
        key = form, state
        if key in claim.rejected:
            return None
        template = claim.template
        fits: BoolArray = np.logical_and.reduce(claim.free >= form.vector[:, None], axis=0)
        if state is not claim.state or is_new:
            fits &= template.table.rows(state)[claim.rows]
        for mask in (template.without_port_conflicts(form.ports), self._attachable(claim, form)):
            if mask is not None:
                fits &= mask[claim.rows]
        (kept,) = fits.nonzero()
        if not len(kept):
            claim.rejected.add(key)
            return None
        if len(kept) == len(fits):
            addition = Addition(claim, state, claim.rows, claim.free - form.vector[:, None])
        else:
            addition = Addition(claim, state, claim.rows[kept], claim.free[:, kept] - form.vector[:, None])
        if template.has_min_values and not self._keeps_min_values(addition, is_new):
            claim.rejected.add(key)
            return None
        if self._reservations is not None and template.table.has_reserved:
            return self._with_reservations(addition)
        return addition

    @staticmethod
    def _attachable(claim: OpenClaim, form: PodForm) -> BoolArray | None:
        return claim.template.attaching(union(claim.volumes, form.volumes)) if form.volumes else None

    def _keeps_min_values(self, addition: Addition, is_new: bool) -> bool:
        types = addition.claim.template.table.types_of(addition.rows)
        unmet = unmet_min_values(types, addition.state.requirements)
        if not unmet:
            return True
        if not self._relax_min_values or not is_new:
            # A claim that is open keeps to what it was opened with.
            return False
        addition.state = addition.state.with_min_values(unmet)
        addition.min_values_relaxed = True
        return True

    def _with_reservations(self, addition: Addition) -> Addition | None:
        assert self._reservations is not None
        claim = addition.claim
        try:
            addition.reserved = self._reservations.to_hold(
                claim.number, claim.reserved, claim.template.table.types_of(addition.rows),
                addition.state.requirements, self._well_known, is_strict=self._is_strict,
            )  # fmt: skip
        except ReservationsFullError:
            return None
        return addition

    def goes_by_room(self, claim: OpenClaim, form: PodForm) -> bool:
        """Whether more pods of a form can join a claim that one has just joined for as long as there is room."""
        return not (
            self._reservations is not None
            or claim.template.has_min_values
            or form.ports
            or form.volumes
            or form.volume_alternatives
        ) and claim.state.taking(form.requirements) is claim.state

    def commit(self, addition: Addition, form: PodForm, pod: JsonObject) -> None:
        """Give the claim its pod."""
        claim = addition.claim
        claim.state, claim.rows, claim.free = addition.state, addition.rows, addition.free
        claim.used = claim.used + form.vector
        claim.pods.append(pod)
        if form.ports:
            claim.ports = (*claim.ports, *form.ports)
        if form.volumes:
            claim.volumes = union(claim.volumes, form.volumes)
        if self._reservations is not None and claim.template.table.has_reserved:
            self._reservations.hold(claim.number, addition.reserved)
            claim.reserved = addition.reserved


class ClaimBoard:
    """All open claims of a run, with bounds by which most can be passed over at a glance."""

    def __init__(self, checks: ClaimChecks, columns: int) -> None:
        self._checks = checks
        self.claims: list[OpenClaim] = []
        self.order = ClaimOrder()
        self._bounds: IntArray = np.zeros((columns, 64), dtype=np.int64)
        """By resource and claim: the most that is left on any of its rows."""
        self._eligible: dict[PodForm, BoolArray] = {}
        """By claim: False where a form will never find a place."""

    def find(self, form: PodForm, topology: FormTopology) -> Addition | None:
        """The first claim, by number of pods, that a pod can join.

        One that should hold on to its reserved capacity is passed over like one that is too small.
        """
        self.order.sort()
        count = len(self.claims)
        if not count:
            return None
        mask: BoolArray = np.logical_and.reduce(self._bounds[:, :count] >= form.vector[:, None], axis=0)
        if topology.host_groups:
            open_claims = topology.open_claims(count)
            if open_claims is not None:
                mask &= open_claims
        eligible = self._eligible.get(form)
        if eligible is not None:
            known = min(len(eligible), count)
            mask[:known] &= eligible[:known]
        order = self.order.claims
        (places,) = mask[order].nonzero()
        closed: set[RequirementState] = set()
        for place, number in zip(places.tolist(), order[places].tolist(), strict=True):
            claim = self.claims[number]
            if claim.state in closed:
                continue
            if not form.volume_alternatives and not _is_open(claim.state, form, topology):
                closed.add(claim.state)
                continue
            addition = self._try(claim, form, topology)
            if addition is not None:
                addition.place = place
                addition.is_only = bool(place == places[-1])
                return addition
        return None

    def _try(self, claim: OpenClaim, form: PodForm, topology: FormTopology) -> Addition | None:
        if not claim.template.is_tolerated(form.demands.tolerations) or (
            form.hostname is not None and not form.hostname.has(claim.hostname)
        ):
            self._rule_out(claim, form)
            return None
        if form.ports and any_conflict(form.ports, claim.ports):
            self._rule_out(claim, form)
            return None
        try:
            addition = self._checks.addition(claim, form, topology, is_new=False)
        except ReservedError:
            return None
        if addition is None and (form, claim.state) in claim.rejected and not topology.domain_groups:
            # Without topology, what did not fit in this state will not in a narrower one.
            self._rule_out(claim, form)
        return addition

    def _rule_out(self, claim: OpenClaim, form: PodForm) -> None:
        eligible = self._eligible.get(form)
        if eligible is None or claim.number >= len(eligible):
            grown = np.ones(max(2 * len(self.claims), 64), dtype=np.bool_)
            if eligible is not None:
                grown[: len(eligible)] = eligible
            eligible = self._eligible[form] = grown
        eligible[claim.number] = False

    def join(self, addition: Addition, form: PodForm, pod: JsonObject) -> None:
        """Add a pod to the claim that :meth:`find` found for it."""
        self._checks.commit(addition, form, pod)
        self.order.count(addition.place)
        self._bounds[:, addition.claim.number] = addition.free.max(axis=1)

    def room_for_alike(self, joined: Addition, form: PodForm) -> int:
        """How many more pods would join, one by one, the claim that one of this form has just joined.

        Where hostnames and topology have no say. Claims that had no place for the first have none for the others.
        """
        claim = joined.claim
        if not joined.is_only or not self._checks.goes_by_room(claim, form):
            return 0
        free = claim.free
        return int(np.minimum.reduce([free[column] // milli for column, milli in form.amounts]).max())

    def join_alike(self, joined: Addition, form: PodForm, pods: Sequence[JsonObject]) -> None:
        """Add pods to the claim for which :meth:`room_for_alike` was told."""
        claim, taken = joined.claim, form.vector * len(pods)
        free = claim.free - taken[:, None]
        (kept,) = (free.min(axis=0) >= 0).nonzero()
        if len(kept) < len(claim.rows):
            claim.rows, free = claim.rows[kept], free[:, kept]
        claim.free = free
        claim.used = claim.used + taken
        claim.pods.extend(pods)
        self.order.count_more(len(pods))
        self._bounds[:, claim.number] = free.max(axis=1)

    def open(self, addition: Addition, form: PodForm, pod: JsonObject) -> None:
        """Open a claim for its first pod."""
        claim = addition.claim
        assert claim.number == len(self.claims), "claims are numbered as they are opened"
        self._checks.commit(addition, form, pod)
        claim.min_values_relaxed = addition.min_values_relaxed
        if claim.number == self._bounds.shape[1]:
            self._bounds = np.concatenate((self._bounds, np.zeros_like(self._bounds)), axis=1)
        self._bounds[:, claim.number] = addition.free.max(axis=1)
        self.claims.append(claim)
        self.order.append(claim.number)


def _is_open(state: RequirementState, form: PodForm, topology: FormTopology) -> bool:
    """Whether labels and topology allow a pod on a claim in this state, whatever its size."""
    after = state.taking(form.requirements)
    return after is not None and topology.step(after) is not None
