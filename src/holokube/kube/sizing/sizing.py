"""The size of one pod on one node.

For each tunable (cpu and memory, request and limit) that has a fraction, the pod's budget is that fraction of the
node's allocatable, less what excluded containers ask for, and clamped. The containers share it in the proportion
of what they asked for as written. A pod that was sized before remembers what was written in an annotation:
sizing it again, on another node or after another container was injected, gives what sizing it once would have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from holokube.kube.quantity import QuantityError
from holokube.kube.resources import CPU, MEMORY, ResourceVector, parse_resources, pod_requests
from holokube.kube.sizing.amounts import spread, to_text, units_of
from holokube.kube.sizing.annotations import (
    EXCLUDE_ANNOTATION,
    ORIGINAL_ANNOTATION,
    PREFIX,
    STATUS_ANNOTATION,
    Kind,
    Rules,
    Share,
    SizingProblem,
    Tunable,
    is_enabled,
    node_name_of,
    rules_of,
)
from holokube.kube.types import JsonObject

_EMPTY: Final[Mapping[str, Any]] = {}
_SIZED: Final = (CPU, MEMORY)
_FIELDS: Final = ("requests", "limits")
_KINDS: Final[tuple[Kind, ...]] = ("request", "limit")

Amounts = dict[str, dict[str, str]]
"""Texts by field (requests, limits) and resource (cpu, memory)."""


@dataclass(frozen=True, slots=True)
class SizedContainer:
    """The new ``resources`` of one container."""

    list_field: str
    """``containers`` or ``initContainers``."""
    index: int
    name: str
    resources: JsonObject


@dataclass(frozen=True, slots=True)
class Sizing:
    """What a pod becomes on a node."""

    containers: tuple[SizedContainer, ...]
    """Those that take part, whether they change or not."""
    pod_resources: JsonObject | None
    """The new ``spec.resources``; None if the pod has none."""
    annotations: dict[str, str]
    """What was applied and what was written, to be put on the pod; empty if nothing was asked for."""
    notes: tuple[str, ...] = ()

    def apply(self, pod: Mapping[str, Any]) -> JsonObject:
        """The pod with its new size; the one given stays as it is."""
        metadata, spec = dict(pod.get("metadata") or {}), dict(pod["spec"])
        for sized in self.containers:
            containers = spec[sized.list_field] = list(spec[sized.list_field])
            containers[sized.index] = {**containers[sized.index], "resources": sized.resources}
        if self.pod_resources is not None:
            spec["resources"] = self.pod_resources
        if self.annotations:
            metadata["annotations"] = {**(metadata.get("annotations") or {}), **self.annotations}
        return {**pod, "metadata": metadata, "spec": spec}


@dataclass(slots=True)
class _Member:
    """A container that runs as long as the pod does."""

    list_field: str
    index: int
    container: Mapping[str, Any]
    excluded: bool
    written: Amounts
    units: dict[Tunable, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.container.get("name", ""))


@dataclass(frozen=True, slots=True)
class _Shape:
    """A size but for the name of the node: the same for all pods of a DaemonSet on all nodes of one size."""

    containers: tuple[SizedContainer, ...]
    pod_resources: JsonObject | None
    status: JsonObject
    original: str
    notes: tuple[str, ...]


_shapes: dict[bytes, _Shape] = {}
_SHAPES_MAX: Final = 4096


def size(pod: Mapping[str, Any], node: Mapping[str, Any]) -> Sizing:
    """The size of a pod on a node, whether it opts in or not; :class:`SizingProblem` if it has none.

    What it returns is shared and must not be changed.
    """
    name = str((node.get("metadata") or _EMPTY).get("name", ""))
    allocatable = (node.get("status") or _EMPTY).get("allocatable") or _EMPTY
    key = _key(pod, allocatable)
    shape = _shapes.get(key)
    if shape is None:
        shape = _shape(pod, rules_of(pod), name, allocatable)
        if len(_shapes) >= _SHAPES_MAX:
            _shapes.clear()
        _shapes[key] = shape
    if not shape.original:
        return Sizing((), None, {}, shape.notes)
    annotations = {
        STATUS_ANNOTATION: _json({**shape.status, "node": name}), ORIGINAL_ANNOTATION: shape.original,
    }  # fmt: skip
    return Sizing(shape.containers, shape.pod_resources, annotations, shape.notes)


def _key(pod: Mapping[str, Any], allocatable: Mapping[str, Any]) -> bytes:
    """All that a size depends on."""
    spec = pod.get("spec") or _EMPTY
    annotations = (pod.get("metadata") or _EMPTY).get("annotations") or _EMPTY
    return orjson.dumps((
        [item for item in annotations.items() if item[0].startswith(PREFIX) and item[0] != STATUS_ANNOTATION],
        [(one.get("name"), one.get("resources")) for one in spec.get("containers") or ()],
        [(one.get("name"), one.get("resources"), one.get("restartPolicy")) for one in spec.get("initContainers") or ()],
        spec.get("resources"), allocatable.get(CPU), allocatable.get(MEMORY),
    ))  # fmt: skip


def sized_pod(pod: Mapping[str, Any], node: Mapping[str, Any]) -> JsonObject:
    """The pod as it will be on that node: sized if it opts in and can be, as it is otherwise."""
    if not is_enabled(pod):
        return dict(pod)
    try:
        return size(pod, node).apply(pod)
    except SizingProblem:
        return dict(pod)


def sized_requests(pod: Mapping[str, Any], node: Mapping[str, Any]) -> ResourceVector:
    """What a pod will request on that node, in milli-units; the one way to count daemons on a node or instance type."""
    return pod_requests(sized_pod(pod, node))


def is_sized_on_arrival(pod: Mapping[str, Any]) -> bool:
    """Whether a pod that no API server has seen will be sized: it opts in, and its node is known from the start.

    That is so for pods of DaemonSets; others find their node only after they were admitted.
    """
    if not is_enabled(pod):
        return False
    owners = (pod.get("metadata") or _EMPTY).get("ownerReferences") or ()
    return any(owner.get("kind") == "DaemonSet" for owner in owners) or bool(node_name_of(pod))


def check(pod: Mapping[str, Any]) -> Rules:
    """Find what is wrong with a pod, or the template of one, on whatever node: raises :class:`SizingProblem`."""
    rules = rules_of(pod)
    members = _members(pod, rules)
    for share in rules.shares:
        _weights(share.tunable, members, _pod_level(pod))
    return rules


def _shape(pod: Mapping[str, Any], rules: Rules, node_name: str, allocatable: Mapping[str, Any]) -> _Shape:
    members = _members(pod, rules)
    if not rules.shares and ORIGINAL_ANNOTATION not in ((pod.get("metadata") or _EMPTY).get("annotations") or _EMPTY):
        return _Shape((), None, {}, "", rules.notes)
    pod_level = _pod_level(pod)
    budgets: dict[Tunable, int] = {}
    of_pod: dict[Tunable, int] = {}
    for share in rules.shares:
        tunable = share.tunable
        budget, excluded = _budget(share, members, allocatable, node_name)
        weighed, weights = _weights(tunable, members, pod_level)
        for member, units in zip(weighed, spread(budget, weights) if weights else (), strict=True):
            member.units[tunable] = units
        budgets[tunable] = budget
        of_pod[tunable] = budget + excluded
    sized = {share.tunable.resource for share in rules.shares}
    taking_part = [member for member in members if not member.excluded]
    containers = tuple(
        SizedContainer(member.list_field, member.index, member.name, _resources(member, sized))
        for member in taking_part
    )
    written: JsonObject = {"containers": {member.name: member.written for member in taking_part}}
    if pod_level is not None:
        written["pod"] = pod_level
    partial = Sizing(containers, None, {})
    pod_resources = None if pod_level is None else _pod_resources(partial.apply(pod), pod_level, of_pod, sized)
    return _Shape(containers, pod_resources, _status(allocatable, budgets, members), _json(written), rules.notes)


def _members(pod: Mapping[str, Any], rules: Rules) -> list[_Member]:
    """Containers, and the init containers that stay (native sidecars)."""
    spec = pod.get("spec") or _EMPTY
    originals = _originals(pod).get("containers") or _EMPTY
    names = set()
    members = []
    for list_field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(list_field) or ()):
            name = container.get("name", "")
            names.add(name)
            if list_field == "containers" or container.get("restartPolicy") == "Always":
                excluded = name in rules.excluded
                original = None if excluded else originals.get(name)
                written = _written(container.get("resources") if original is None else original)
                members.append(_Member(list_field, index, container, excluded, written))
    for name in rules.excluded:
        if name not in names:
            raise SizingProblem(
                "UnknownContainer",
                f'annotation {EXCLUDE_ANNOTATION} names "{name[:63]}", which is no container of the pod',
                hint="write names of its containers, separated by commas",
            )
    return members


def _written(resources: Mapping[str, Any] | None) -> Amounts:
    """The amounts of cpu and memory; a request that is left out is its limit, as the API server has it."""
    given = resources or _EMPTY
    requests, limits = (given.get(field) or _EMPTY for field in _FIELDS)
    written: Amounts = {
        "requests": {
            name: str(requests.get(name, limits.get(name))) for name in _SIZED if name in requests or name in limits
        },
        "limits": {name: str(limits[name]) for name in _SIZED if name in limits},
    }
    return {field: amounts for field, amounts in written.items() if amounts}


def _originals(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """What an earlier sizing noted; nothing if the note cannot be read, for anybody may have written it."""
    text = ((pod.get("metadata") or _EMPTY).get("annotations") or _EMPTY).get(ORIGINAL_ANNOTATION)
    if not text:
        return _EMPTY
    try:
        noted = orjson.loads(text)
        everything = [*(noted.get("containers") or _EMPTY).values(), noted.get("pod")]
        for resources in everything:
            for amounts in (resources or _EMPTY).values():
                if any(milli < 0 for milli in parse_resources(amounts).values()):
                    return _EMPTY
    except (orjson.JSONDecodeError, QuantityError, AttributeError, TypeError):
        return _EMPTY
    return noted if isinstance(noted, dict) else _EMPTY


def _pod_level(pod: Mapping[str, Any]) -> Amounts | None:
    """``spec.resources`` as written; None if the pod has none."""
    resources = (pod.get("spec") or _EMPTY).get("resources")
    if not resources:
        return None
    return _written(_originals(pod).get("pod") or resources)


def _units(tunable: Tunable, member: _Member) -> int | None:
    text = member.written.get(tunable.field, _EMPTY).get(tunable.resource)
    if text is None:
        return None
    try:
        units = units_of(tunable.resource, text)
    except QuantityError:
        units = -1
    if units < 0:
        raise SizingProblem(
            "BadQuantity",
            f'the {tunable} of container "{member.name}" is "{text[:40]}"',
            hint="write a quantity that is not negative",
        )
    return units


def _weights(
    tunable: Tunable, members: Sequence[_Member], pod_level: Amounts | None
) -> tuple[list[_Member], list[int]]:
    """The containers that share a budget, and in which proportion; none if the pod as a whole takes it alone."""
    taking_part = [member for member in members if not member.excluded]
    found = [(member, _units(tunable, member)) for member in taking_part]
    missing = [member.name for member, units in found if units is None]
    weights = [units for _, units in found if units is not None]
    name = tunable.fraction_annotation
    if not weights and pod_level is not None and tunable.resource in pod_level.get(tunable.field, _EMPTY):
        return [], []
    if weights and missing:
        raise SizingProblem(
            "PartialTunable",
            f"annotation {name}: some containers have a {tunable}, others have none: {', '.join(missing)[:80]}",
            hint=f"write a {tunable} for all, or add those to exclude-containers",
        )
    if sum(weights) <= 0:
        raise SizingProblem(
            "NothingToDistribute",
            f"annotation {name}: no container has a {tunable} to go by",
            hint=f"write a {tunable} on the containers, or take the annotation away",
        )
    return taking_part, weights


def _budget(
    share: Share, members: Sequence[_Member], allocatable: Mapping[str, Any], node_name: str
) -> tuple[int, int]:
    """What the containers get, and what excluded ones have already."""
    tunable = share.tunable
    if tunable.resource not in allocatable:
        raise SizingProblem(
            "NoAllocatable",
            f'annotation {tunable.fraction_annotation}: node "{node_name}" does not say how much {tunable.resource} '
            "it has",
            hint="wait until its kubelet has reported status.allocatable",
        )
    excluded = sum(_units(tunable, member) or 0 for member in members if member.excluded)
    budget = share.clamped(share.of(units_of(tunable.resource, allocatable[tunable.resource])) - excluded)
    if budget <= 0:
        least = tunable.clamp_annotations("minimum")[0]
        raise SizingProblem(
            "BudgetNotPositive",
            f'annotation {tunable.fraction_annotation}: nothing is left of its share of node "{node_name}"',
            hint=f"write a larger fraction, or a {least}",
        )
    return budget, excluded


def _resources(member: _Member, sized: set[str]) -> JsonObject:
    """The new ``resources`` of a container: sized where there is a fraction, as written otherwise."""
    resources: JsonObject = dict(member.container.get("resources") or _EMPTY)
    for name in _SIZED:
        request, limit = (_final(member, Tunable(name, kind)) for kind in _KINDS)
        if request is not None and limit is not None and name in sized:
            limit = max(request, limit)
            if limit == 0 and _units(Tunable(name, "limit"), member):
                # Kubernetes takes a limit of zero for no limit at all.
                raise SizingProblem(
                    "BudgetTooSmall",
                    f'annotation {Tunable(name, "limit").fraction_annotation}: the share of container '
                    f'"{member.name}" is less than one unit',
                    hint=f"write a larger fraction, or a {Tunable(name, 'limit').clamp_annotations('minimum')[0]}",
                )
        for field_name, units in zip(_FIELDS, (request, limit), strict=True):
            if units is not None:
                text = to_text(name, units, member.written[field_name][name])
                resources[field_name] = {**(resources.get(field_name) or _EMPTY), name: text}
    return resources


def _final(member: _Member, tunable: Tunable) -> int | None:
    units = member.units.get(tunable)
    return _units(tunable, member) if units is None else units


def _pod_resources(
    pod: Mapping[str, Any], written: Amounts, of_pod: Mapping[Tunable, int], sized: set[str]
) -> JsonObject:
    """The new ``spec.resources``: the budget with what excluded containers have, and never too small to be valid."""
    spec = pod["spec"]
    resources: JsonObject = dict(spec["resources"])
    containers = pod_requests(pod, skip_pod_level=True, exclude_overhead=True)
    for name in _SIZED:
        texts = [written.get(field_name, _EMPTY).get(name) for field_name in _FIELDS]
        request, limit = (
            None if text is None else of_pod.get(Tunable(name, kind), units_of(name, text))
            for text, kind in zip(texts, _KINDS, strict=True)
        )
        if name in sized:
            if request is not None:
                unit = 1 if name == CPU else 1000
                request = max(request, -(-containers.get(name, 0) // unit))
            if limit is not None:
                limit = max(limit, request or 0, *_limits(spec, name), 0)
        for field_name, units, text in zip(_FIELDS, (request, limit), texts, strict=True):
            if units is not None and text is not None:
                resources[field_name] = {**(resources.get(field_name) or _EMPTY), name: to_text(name, units, text)}
    return resources


def _limits(spec: Mapping[str, Any], name: str) -> Iterator[int]:
    """The limits of all containers, init containers among them: none may be above that of the pod."""
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        limit = ((container.get("resources") or _EMPTY).get("limits") or _EMPTY).get(name)
        if limit is not None:
            yield units_of(name, limit)


def _status(
    allocatable: Mapping[str, Any], budgets: Mapping[Tunable, int], members: Sequence[_Member]
) -> JsonObject:
    """``{"allocatable": {"cpu": "4"}, "requests": {"cpu": "400m"}}``."""
    status: JsonObject = {"allocatable": {}}
    for tunable, units in budgets.items():
        like = next(
            (m.written[tunable.field][tunable.resource] for m in members if tunable in m.units),
            "1Mi" if tunable.resource == MEMORY else "1",
        )
        status["allocatable"][tunable.resource] = str(allocatable[tunable.resource])
        status.setdefault(tunable.field, {})[tunable.resource] = to_text(tunable.resource, units, like)
    excluded = [member.name for member in members if member.excluded]
    if excluded:
        status["excluded"] = excluded
    return status


def _json(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
