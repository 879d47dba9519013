"""LimitRanger: default sizes, and bounds for them, by namespace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from holokube.apiserver.admission.base import CLAIMS, CREATE_OR_UPDATE, PODS, Attributes, Plugin, refuse
from holokube.apiserver.kinds.pod_resources import container_totals
from holokube.kube import quantity
from holokube.kube.quantity import Quantity
from holokube.kube.types import JsonObject
from holokube.store.store import Store

ANNOTATION: Final = "kubernetes.io/limit-ranger"
_BUCKET: Final = "limitranges"
# Up to here upstream compares thousandths, beyond only whole numbers.
_MAX_MILLI_VALUE: Final = (2**63 - 1) // 1000
_ZERO: Final = Quantity(0)

Amounts = Mapping[str, Quantity]


class LimitRanger(Plugin):
    """Costs one look at the store where there are no LimitRanges."""

    resources = frozenset({PODS, CLAIMS})
    operations = CREATE_OR_UPDATE
    only_sets_on_update = True
    subresources = frozenset({"", "resize"})
    looks_at = frozenset({_BUCKET})
    goes_by_spec = True
    # The containers of a pod change through the resize door only.
    leaves_settled_pods = True

    def __init__(self, store: Store) -> None:
        self._store = store

    def mutate(self, attributes: Attributes) -> None:
        if not self._store.count(_BUCKET) or attributes.served.plural != "pods":
            return
        for limit_range in self._ranges(attributes):
            _fill_in(limit_range, attributes.obj or {})

    def validate(self, attributes: Attributes) -> None:
        if not self._store.count(_BUCKET):
            return
        obj = attributes.obj or {}
        check = _pod_problems if attributes.served.plural == "pods" else _claim_problems
        for limit_range in self._ranges(attributes):
            problems = list(dict.fromkeys(check(limit_range, obj.get("spec") or {})))
            if problems:
                raise refuse(attributes, problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

    @staticmethod
    def _ranges(attributes: Attributes) -> Iterable[JsonObject]:
        is_pod, is_resize = attributes.served.plural == "pods", attributes.subresource == "resize"
        # The containers of a pod change through the resize door only; a claim has no such door.
        if is_resize != (is_pod and attributes.operation == "UPDATE"):
            return ()
        if attributes.old is not None and attributes.old["metadata"].get("deletionTimestamp"):
            return ()
        return attributes.lookup.objects("", "limitranges", attributes.namespace)


def _items(limit_range: JsonObject, kind: str) -> Iterator[JsonObject]:
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        if item.get("type") == kind:
            yield item


def _fill_in(limit_range: JsonObject, pod: JsonObject) -> None:
    defaults: dict[str, dict[str, str]] = {"requests": {}, "limits": {}}
    for item in _items(limit_range, "Container"):
        defaults["requests"].update(item.get("defaultRequest") or {})
        defaults["limits"].update(item.get("default") or {})
    if not defaults["requests"] and not defaults["limits"]:
        return
    spec = pod.get("spec") or {}
    notes: list[str] = []
    for what, key in (("container", "containers"), ("init container", "initContainers")):
        for container in spec.get(key) or ():
            for kind, word in (("requests", "request"), ("limits", "limit")):
                filled = _fill_container(container, kind, defaults[kind])
                if filled:
                    notes.append(f"{', '.join(filled)} {word} for {what} {container.get('name', '')}")
    if notes:
        meta = pod["metadata"]
        text = f"LimitRanger plugin set: {'; '.join(notes)}"
        meta["annotations"] = {**(meta.get("annotations") or {}), ANNOTATION: text}


def _fill_container(container: JsonObject, kind: str, defaults: Mapping[str, str]) -> list[str]:
    given = (container.get("resources") or {}).get(kind) or {}
    missing = sorted(name for name in defaults if name not in given)
    if missing:
        container["resources"] = {
            **(container.get("resources") or {}),
            kind: {**given, **{name: defaults[name] for name in missing}},
        }
    return missing


def _amounts(written: Mapping[str, str] | None) -> dict[str, Quantity]:
    return {name: quantity.parse(text) for name, text in (written or {}).items()}


def _pod_problems(limit_range: JsonObject, spec: JsonObject) -> Iterator[str]:
    for item in (limit_range.get("spec") or {}).get("limits") or ():
        kind = item.get("type")
        if kind == "Container":
            for key in ("containers", "initContainers"):
                for container in spec.get(key) or ():
                    resources = container.get("resources") or {}
                    requests, limits = _amounts(resources.get("requests")), _amounts(resources.get("limits"))
                    yield from _bound_problems(item, requests, limits)
        elif kind == "Pod":
            yield from _bound_problems(item, _pod_total(spec, "requests"), _pod_total(spec, "limits"))


def _pod_total(spec: JsonObject, kind: str) -> dict[str, Quantity]:
    total = container_totals(spec, kind)
    for name, amount in _amounts((spec.get("resources") or {}).get(kind)).items():
        if name in ("cpu", "memory"):
            total[name] = amount
    return total


def _bound_problems(item: JsonObject, requests: Amounts, limits: Amounts) -> Iterator[str]:
    kind = item["type"]
    for name, bound in sorted(_amounts(item.get("min")).items()):
        yield from _below(kind, name, bound, requests.get(name), limits.get(name))
    for name, bound in sorted(_amounts(item.get("max")).items()):
        yield from _above(kind, name, bound, requests.get(name), limits.get(name))
    for name, bound in sorted(_amounts(item.get("maxLimitRequestRatio")).items()):
        yield from _out_of_ratio(kind, name, bound, requests.get(name), limits.get(name))


def _comparable(*amounts: Quantity | None) -> list[int]:
    present = [amount or _ZERO for amount in amounts]
    if all(amount.value() <= _MAX_MILLI_VALUE for amount in present):
        return [amount.milli() for amount in present]
    return [amount.value() for amount in present]


def _below(
    kind: str, name: str, bound: Quantity, request: Quantity | None, limit: Quantity | None
) -> Iterator[str]:
    start = f"minimum {name} usage per {kind} is {bound}"
    requested, limited, least = _comparable(request, limit, bound)
    if request is None:
        yield f"{start}.  No request is specified"
    elif requested < least:
        yield f"{start}, but request is {request}"
    elif limit is not None and limited < least:
        yield f"{start}, but limit is {limit}"


def _above(
    kind: str, name: str, bound: Quantity, request: Quantity | None, limit: Quantity | None
) -> Iterator[str]:
    start = f"maximum {name} usage per {kind} is {bound}"
    requested, limited, most = _comparable(request, limit, bound)
    if limit is None:
        yield f"{start}.  No limit is specified"
    elif limited > most:
        yield f"{start}, but limit is {limit}"
    elif request is not None and requested > most:
        yield f"{start}, but request is {request}"


def _out_of_ratio(
    kind: str, name: str, bound: Quantity, request: Quantity | None, limit: Quantity | None
) -> Iterator[str]:
    start = f"{name} max limit to request ratio per {kind} is {bound}, but"
    requested, limited, _ = _comparable(request, limit, bound)
    if not requested:
        yield f"{start} no request is specified or request is 0"
    elif not limited:
        yield f"{start} no limit is specified or limit is 0"
    elif limited / requested * 1000 > bound.milli():
        yield f"{start} provided ratio is {limited / requested:f}"


def _claim_problems(limit_range: JsonObject, spec: JsonObject) -> Iterator[str]:
    """A claim has requests only."""
    requests = _amounts((spec.get("resources") or {}).get("requests"))
    for item in _items(limit_range, "PersistentVolumeClaim"):
        for name, bound in sorted(_amounts(item.get("min")).items()):
            yield from _below(item["type"], name, bound, requests.get(name), None)
        for name, bound in sorted(_amounts(item.get("max")).items()):
            start = f"maximum {name} usage per {item['type']} is {bound}"
            request = requests.get(name)
            if request is None:
                yield f"{start}.  No request is specified"
            elif request > bound:
                yield f"{start}, but request is {request}"
