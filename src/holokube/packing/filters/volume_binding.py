"""VolumeBinding: bound volumes must be reachable from the node, and the others must be findable there."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from holokube.kube.affinity import NodeSelector
from holokube.kube.quantity import milli_of
from holokube.kube.selectors import LabelRequirement, LabelSelector, Operator, SelectorError
from holokube.kube.types import JsonObject
from holokube.packing.arrays import ALL, BoolArray, Rows, true_for
from holokube.packing.filters.protocol import Finding, OneReason, Scope
from holokube.packing.nodes import labels_of
from holokube.packing.podclass import PodClass
from holokube.packing.volumes import (
    CSI_CAPACITIES,
    CSI_DRIVERS,
    SELECTED_NODE,
    STORAGE_CLASSES,
    VOLUMES,
    annotation,
    storage_class_name,
)

if TYPE_CHECKING:
    from holokube.packing.state import ClusterState

_NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
_EMPTY: Final[Mapping[str, Any]] = {}


class VolumeBinding(OneReason):
    """See the module."""

    name = "VolumeBinding"
    reason_bound = "node(s) didn't match PersistentVolume's node affinity"
    reason_unbound = "node(s) didn't find available persistent volumes to bind"
    reason_space = "node(s) did not have enough free storage"
    reason_missing = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    scope = Scope.CLUSTER

    def concerns(self, state: ClusterState, cls: PodClass) -> bool:
        """Only pods with claims."""
        del state
        return bool(cls.claims)

    def stamp(self, state: ClusterState, cls: PodClass) -> Hashable:
        """Nodes and storage objects."""
        del cls
        return state.nodes.version, state.volumes.version

    def refusal(self, state: ClusterState, cls: PodClass) -> str:
        """Claims that are lost, going away, or not bound although they should be by now."""
        plan = state.volume_plan(cls)
        return plan.refusal if plan.refused_by == self.name else ""

    def mask(self, state: ClusterState, cls: PodClass, rows: Rows) -> BoolArray:
        """Where all claims are satisfied."""
        plan = state.volume_plan(cls)
        if plan.volume_missing:
            return ~true_for(rows, state.nodes.capacity)
        findable, roomy = _delayed(state, plan.delayed)
        return _reachable(state, plan.volume_affinities, rows) & findable[rows] & roomy[rows]

    def findings(self, state: ClusterState, cls: PodClass, rows: Rows) -> list[Finding]:
        """All that apply: upstream names each."""
        plan = state.volume_plan(cls)
        unreachable = ~_reachable(state, plan.volume_affinities, rows)
        findable, roomy = _delayed(state, plan.delayed)
        missing = true_for(rows, state.nodes.capacity)
        if plan.volume_missing:
            unreachable &= False
        else:
            missing &= False
        hits = (unreachable, ~findable[rows], ~roomy[rows], missing)
        reasons = (self.reason_bound, self.reason_unbound, self.reason_space, self.reason_missing)
        return [Finding(reason, hit, hit) for reason, hit in zip(reasons, hits, strict=True)]


def _reachable(state: ClusterState, affinities: list[NodeSelector], rows: Rows) -> BoolArray:
    mask = true_for(rows, state.nodes.capacity)
    for affinity in affinities:
        mask &= state.nodes.any_term(affinity, rows, by_name=False)
    return mask


def _delayed(state: ClusterState, claims: list[JsonObject]) -> tuple[BoolArray, BoolArray]:
    """Where volumes for the claims can be found or made, and where there is storage enough to make them."""
    capacity = state.nodes.capacity
    findable, roomy = true_for(ALL, capacity), true_for(ALL, capacity)
    if not claims:
        return findable, roomy
    chosen = [(claim, annotation(claim, SELECTED_NODE)) for claim in claims]
    for _, node_name in chosen:
        if node_name is not None:
            findable &= state.nodes.row_numbers == state.nodes.row_of.get(node_name, -1)
    # Small claims first, so that each gets the smallest volume that will do.
    searching = sorted((claim for claim, node_name in chosen if node_name is None), key=claim_size_milli)
    to_make: list[tuple[JsonObject, BoolArray]] = [
        (claim, true_for(ALL, capacity)) for claim, node_name in chosen if node_name is not None
    ]
    to_make += _without_match(state, searching)
    refused = ~findable
    for claim, where in to_make:
        possible, enough = _provisionable(state, claim)
        # The first claim that fails decides what is said of the node.
        undecided = where & findable & roomy
        findable &= ~(undecided & ~possible)
        roomy &= ~(undecided & possible & ~enough)
    # A node other than the one selected for a claim is refused before storage is looked at.
    return findable, roomy | refused


def claim_size_milli(claim: JsonObject) -> int:
    requests = (claim["spec"].get("resources") or _EMPTY).get("requests") or _EMPTY
    return milli_of(requests.get("storage", 0))


def _without_match(state: ClusterState, claims: list[JsonObject]) -> list[tuple[JsonObject, BoolArray]]:
    """For each claim, the rows on which no existing volume can be bound to it."""
    volumes = [v for v in state.volumes.all(VOLUMES).values() if not v["metadata"].get("deletionTimestamp")]
    reach: dict[str, BoolArray] = {}
    taken: dict[str, BoolArray] = {}
    unmatched = []
    for claim in claims:
        without = true_for(ALL, state.nodes.capacity)
        bound = [v for v in volumes if is_bound_to(v, claim) and is_fit(v, claim)]
        free = sorted((v for v in volumes if is_available_for(v, claim)), key=volume_capacity_milli)
        for volume in bound or free:
            name = volume["metadata"]["name"]
            if name not in reach:
                required = (volume["spec"].get("nodeAffinity") or _EMPTY).get("required")
                affinities = [NodeSelector.from_json(required)] if required is not None else []
                reach[name] = _reachable(state, affinities, ALL)
                taken[name] = ~true_for(ALL, state.nodes.capacity)
            usable = without & reach[name] & ~taken[name]
            taken[name] |= usable
            without &= ~usable
        unmatched.append((claim, without))
    return unmatched


def volume_capacity_milli(volume: JsonObject) -> int:
    return milli_of((volume["spec"].get("capacity") or _EMPTY).get("storage", 0))


def is_bound_to(volume: JsonObject, claim: JsonObject) -> bool:
    reference, metadata = volume["spec"].get("claimRef"), claim["metadata"]
    if not reference:
        return False
    if (reference.get("name"), reference.get("namespace")) != (metadata["name"], metadata.get("namespace")):
        return False
    return not reference.get("uid") or reference["uid"] == metadata.get("uid")


def is_fit(volume: JsonObject, claim: JsonObject) -> bool:
    """Whether size, mode and attributes class will do."""
    wanted, offered = claim["spec"], volume["spec"]
    if volume_capacity_milli(volume) < claim_size_milli(claim):
        return False
    if (wanted.get("volumeMode") or "Filesystem") != (offered.get("volumeMode") or "Filesystem"):
        return False
    name = "volumeAttributesClassName"
    return (wanted.get(name) or "") == (offered.get(name) or "")


def is_available_for(volume: JsonObject, claim: JsonObject) -> bool:
    if volume["spec"].get("claimRef") or not is_fit(volume, claim):
        return False
    if (volume.get("status") or _EMPTY).get("phase") != "Available":
        return False
    selector = claim["spec"].get("selector")
    if selector is not None and not LabelSelector.from_json(selector).matches(labels_of(volume)):
        return False
    if storage_class_name(volume) != storage_class_name(claim):
        return False
    return set(claim["spec"].get("accessModes") or ()) <= set(volume["spec"].get("accessModes") or ())


def _provisionable(state: ClusterState, claim: JsonObject) -> tuple[BoolArray, BoolArray]:
    """Where a volume can be made for a claim, and where there is storage enough for it."""
    everywhere = true_for(ALL, state.nodes.capacity)
    storage_class = state.volumes.get(STORAGE_CLASSES, storage_class_name(claim)) or {}
    provisioner = storage_class.get("provisioner") or ""
    if not provisioner or provisioner == _NO_PROVISIONER:
        return ~everywhere, everywhere
    possible = everywhere.copy()
    topologies = storage_class.get("allowedTopologies")
    if topologies:
        possible[:] = False
        for term in topologies:
            possible |= _topology(state, term.get("matchLabelExpressions") or ())
    driver = state.volumes.get(CSI_DRIVERS, provisioner)
    if not ((driver or _EMPTY).get("spec") or _EMPTY).get("storageCapacity") or not claim_size_milli(claim):
        return possible, everywhere
    enough = ~everywhere
    for stock in state.volumes.all(CSI_CAPACITIES).values():
        limit = stock.get("maximumVolumeSize") or stock.get("capacity")
        fits = limit is not None and -(-milli_of(limit) // 1000) >= -(-claim_size_milli(claim) // 1000)
        if stock.get("storageClassName") == storage_class["metadata"]["name"] and fits:
            topology = stock.get("nodeTopology")
            enough |= state.nodes.selected(LabelSelector.from_json(topology), ALL)
    return possible, enough


def _topology(state: ClusterState, expressions: Iterable[JsonObject]) -> BoolArray:
    """Where one allowed topology is; an empty or malformed one is nowhere."""
    try:
        requirements = [
            LabelRequirement.checked(expression.get("key", ""), Operator.IN, expression.get("values"))
            for expression in expressions
        ]
    except SelectorError:
        requirements = []
    if not requirements:
        return ~true_for(ALL, state.nodes.capacity)
    return state.nodes.selected(LabelSelector(requirements), ALL)
