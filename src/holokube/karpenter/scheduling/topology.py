"""All topology groups of one run: which of them bind a form, and what is recorded where."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from holokube.karpenter.scheduling.census import Census, Departure
from holokube.karpenter.scheduling.label_index import SpecIndex
from holokube.karpenter.scheduling.pod_forms import PodForm
from holokube.karpenter.scheduling.requirement_states import RequirementState
from holokube.karpenter.scheduling.topology_groups import BoolArray, DomainGroup, HostGroup
from holokube.karpenter.scheduling.topology_specs import GroupKind, GroupSpec, LabelSet
from holokube.kube.requirements import HOSTNAME_LABEL, Requirement
from holokube.kube.taints import Taint

AnyGroup = DomainGroup | HostGroup


class FormTopology:
    """The groups that matter to one form."""

    __slots__ = ("anti_recorded", "domain_groups", "host_groups", "on_host", "steps", "steps_stamp")

    def __init__(self, on_host: Requirement | None) -> None:
        self.on_host = on_host
        self.domain_groups: list[tuple[DomainGroup, bool, Requirement | None]] = []
        """With whether the form counts for the group itself, and what it requires strictly of the key."""
        self.host_groups: list[tuple[HostGroup, bool]] = []
        self.anti_recorded: list[AnyGroup] = []
        """Groups by which others keep away from it."""
        self.steps: dict[RequirementState, RequirementState | None] = {}
        self.steps_stamp = -1

    def step(self, state: RequirementState) -> RequirementState | None:
        """The state after topology has had its say, hostnames left out; None if it forbids the node."""
        groups = self.domain_groups
        if not groups:
            return state
        stamp = 0
        for group, _, _ in groups:
            stamp += group.version
        if stamp != self.steps_stamp:
            self.steps.clear()
            self.steps_stamp = stamp
        if state in self.steps:
            return self.steps[state]
        found = self.steps[state] = self._step(state)
        return found

    def _step(self, state: RequirementState) -> RequirementState | None:
        requirements = state.requirements
        chosen = []
        for group, selects, of_pod in self.domain_groups:
            domains = group.choose(selects, of_pod, requirements.get(group.spec.key))
            if domains is None:
                return None
            chosen.append(domains)
        return state.narrowed(tuple(chosen))

    def open_claims(self, claims: int) -> BoolArray | None:
        """Which open claims hostname groups allow; None if any."""
        return _all_of(group.open_claims(selects, self.on_host, claims) for group, selects in self.host_groups)

    def open_nodes(self, hosts: npt.NDArray[np.intp]) -> BoolArray | None:
        """Which nodes hostname groups allow; None if any."""
        return _all_of(group.open_nodes(selects, self.on_host, hosts) for group, selects in self.host_groups)

    def opens_new(self) -> bool:
        """Whether hostname groups allow a new node."""
        for group, selects in self.host_groups:  # noqa: SIM110 - a plain loop costs half of all() with a generator
            if not group.opens_new(selects, self.on_host):
                return False
        return True


def _all_of(masks: Iterable[BoolArray | None]) -> BoolArray | None:
    found: BoolArray | None = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else found & mask
    return found


class Topology:
    """The groups of a run. Counts start from the census, without the pods that are moving and the nodes that go."""

    def __init__(
        self,
        census: Census,
        hosts: Callable[[], Mapping[str, int]],
        forms: Iterable[PodForm],
        departure: Departure | None = None,
    ) -> None:
        self._census = census
        self._hosts = hosts
        """Asked for when the first group over hostnames is counted."""
        self._departure = departure
        self._live: dict[Hashable, AnyGroup] = {}
        self._inverse: dict[Hashable, AnyGroup] = {}
        self._of_form: dict[PodForm, FormTopology] = {}
        self._against_labels: dict[LabelSet, list[AnyGroup]] = {}
        self._counting_labels: dict[LabelSet, list[AnyGroup]] = {}
        self._live_index: SpecIndex[AnyGroup] = SpecIndex()
        listed = list(forms)
        # The first pod that asks for a group decides where it reaches; those that are bound come before all others.
        self._new_inverse: dict[Hashable, GroupSpec] = {}
        self._new_inverse_index: SpecIndex[Hashable] = SpecIndex()
        for form in listed:
            for spec in form.anti_specs:
                if spec.identity not in census.inverse_specs and spec.identity not in self._new_inverse:
                    self._new_inverse[spec.identity] = spec
                    self._new_inverse_index.add(spec, spec.identity)
        for form in listed:
            self.of(form)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is counted: no pod cares where others are."""
        return not self._live and not self._inverse

    def of(self, form: PodForm) -> FormTopology:
        """The groups of a form; new ones begin to count now."""
        found = self._of_form.get(form)
        if found is None:
            for spec in form.specs:
                if spec.identity not in self._live:
                    self._begin(spec)
            found = self._of_form[form] = self._bind(form)
        return found

    def _begin(self, spec: GroupSpec) -> None:
        group = self._live[spec.identity] = self._group(spec, inverse=False)
        self._live_index.add(group.spec, group)
        for labels, counting in self._counting_labels.items():
            if spec.selects(labels):
                counting.append(group)

    def _inverse_group(self, identity: Hashable) -> AnyGroup:
        found = self._inverse.get(identity)
        if found is None:
            spec = self._census.inverse_specs.get(identity) or self._new_inverse[identity]
            found = self._inverse[identity] = self._group(spec, inverse=True)
        return found

    def _group(self, spec: GroupSpec, *, inverse: bool) -> AnyGroup:
        leaving = self._departure.of_group(spec, inverse=inverse) if self._departure is not None else {}
        if spec.is_hostname:
            return HostGroup(spec, self._census.host_base(spec, self._hosts(), inverse=inverse), leaving)
        base = self._census.base(spec, inverse=inverse)
        counts = dict(base.counts)
        for domain, pods in leaving.items():
            counts[domain] -= pods
            if counts[domain] <= 0:
                del counts[domain]
        for domain in base.known:
            counts.setdefault(domain, 0)
        gone = self._departure.of_nodes(spec) if self._departure is not None and not inverse else {}
        for domain, nodes in base.nodes.items():
            if nodes > gone.get(domain, 0):
                counts.setdefault(domain, 0)
        return DomainGroup(spec, counts)

    def _bind(self, form: PodForm) -> FormTopology:
        found = FormTopology(form.strict.get(HOSTNAME_LABEL))
        bound = [self._live[spec.identity] for spec in form.specs]
        bound += self._against(form.labels)
        for group in dict.fromkeys(bound):
            selects = group.spec.selects(form.labels)
            if isinstance(group, HostGroup):
                found.host_groups.append((group, selects))
            else:
                found.domain_groups.append((group, selects, form.strict.get(group.spec.key)))
        found.anti_recorded = [self._inverse_group(spec.identity) for spec in form.anti_specs]
        return found

    def _against(self, labels: LabelSet) -> list[AnyGroup]:
        """Groups by which pods with these labels are kept away from others."""
        found = self._against_labels.get(labels)
        if found is None:
            wanted = (*self._census.inverse_index.selecting(labels), *self._new_inverse_index.selecting(labels))
            found = self._against_labels[labels] = [self._inverse_group(identity) for identity in wanted]
        return found

    def _recorded(self, labels: LabelSet) -> list[AnyGroup]:
        """Groups that count pods with these labels; the list grows when groups are added."""
        found = self._counting_labels.get(labels)
        if found is None:
            found = self._counting_labels[labels] = list(self._live_index.selecting(labels))
        return found

    def record_on_claim(
        self,
        form: PodForm,
        found: FormTopology,
        claim: int,
        state: RequirementState,
        taints: tuple[Taint, ...],
        name: str,
    ) -> None:
        """Count a pod placed on an open claim that is now in ``state``."""
        for group in self._recorded(form.labels):
            if group.spec.filter is None or group.spec.filter.admits(state, name, taints):
                if isinstance(group, HostGroup):
                    group.record_claim(claim)
                else:
                    _record(group, state, every=group.spec.kind is GroupKind.ANTI_AFFINITY)
        for group in found.anti_recorded:
            if isinstance(group, HostGroup):
                group.record_claim(claim)
            else:
                _record(group, state, every=True)

    def record_on_node(
        self,
        form: PodForm,
        found: FormTopology,
        host: int,
        state: RequirementState,
        taints: tuple[Taint, ...],
        name: str,
    ) -> None:
        """Count a pod placed on a node that is now in ``state``."""
        for group in self._recorded(form.labels):
            if group.spec.filter is None or group.spec.filter.admits(state, name, taints):
                if isinstance(group, HostGroup):
                    group.record_node(host)
                else:
                    _record(group, state, every=group.spec.kind is GroupKind.ANTI_AFFINITY)
        for group in found.anti_recorded:
            if isinstance(group, HostGroup):
                group.record_node(host)
            else:
                _record(group, state, every=True)


def _record(group: DomainGroup, state: RequirementState, *, every: bool) -> None:
    """Count in the one domain that is left, or for anti-affinity in each that is listed, forbidden ones too."""
    requirement = state.requirements.get(group.spec.key)
    if requirement is not None and (every or (not requirement.complement and len(requirement.values) == 1)):
        group.record(requirement.values)
