"""Resources of pods and containers: defaults at pod level, and what may be asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Any, TypeAlias

from holokube.apiserver.field_errors import FieldErrors, show
from holokube.apiserver.kinds.checks import NOT_NEGATIVE
from holokube.kube import names, quantity
from holokube.kube.errors import Cause
from holokube.kube.quantity import Quantity
from holokube.kube.resources import is_extended_resource, is_native_resource
from holokube.kube.types import JsonObject

HUGEPAGES = "hugepages-"
_POD_LEVEL = frozenset({"cpu", "memory"})
_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_OBJECT_COUNTS = frozenset(
    {
        "pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    }
)  # fmt: skip
_STANDARD_RESOURCES = (
    _CONTAINER_RESOURCES
    | _OBJECT_COUNTS
    | {"storage", "requests.storage"}
    | {f"{kind}.{name}" for kind in ("requests", "limits") for name in _CONTAINER_RESOURCES}
)
_ZERO = Quantity(0)


def default_pod_level_resources(pod: JsonObject) -> None:
    """Fill ``spec.resources`` from the containers, as far as it is used at all."""
    resources: JsonObject = pod["spec"]["resources"]
    limits: JsonObject = resources.get("limits") or {}
    requests: JsonObject = resources.get("requests") or {}
    if not limits and not requests:
        return
    spec = pod["spec"]
    for name, amount in container_totals(spec, "limits").items():
        if name.startswith(HUGEPAGES) and name not in requests and name not in limits:
            limits[name] = str(amount)
    if limits:
        resources["limits"] = limits
        for name, amount in container_totals(spec, "requests").items():
            if name in _POD_LEVEL and name not in requests:
                requests[name] = str(amount)
        for name, text in limits.items():
            if name not in requests and _is_pod_level(name):
                requests[name] = text
        if requests:
            resources["requests"] = requests


def _is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith(HUGEPAGES)


def container_totals(spec: JsonObject, kind: str) -> dict[str, Quantity]:
    """What the containers need together: exact quantities, where ``kube.resources`` has whole thousandths."""
    total: dict[str, Quantity] = {}
    for container in spec.get("containers") or ():
        _add(total, _amounts(container, kind))
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in spec.get("initContainers") or ():
        amounts = _amounts(container, kind)
        if container.get("restartPolicy") == "Always":
            _add(total, amounts)
            _add(sidecars, amounts)
            amounts = sidecars
        else:
            _add(amounts, sidecars)
        _raise_to(peak, amounts)
    _raise_to(total, peak)
    return total


def _amounts(container: JsonObject, kind: str) -> dict[str, Quantity]:
    written = (container.get("resources") or {}).get(kind) or {}
    return {name: quantity.parse(text) for name, text in written.items()}


def _add(total: dict[str, Quantity], amounts: dict[str, Quantity]) -> None:
    for name, amount in amounts.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: dict[str, Quantity], amounts: dict[str, Quantity]) -> None:
    for name, amount in amounts.items():
        if name not in total or amount > total[name]:
            total[name] = amount


def may_overcommit(name: str) -> bool:
    return is_native_resource(name) and not name.startswith(HUGEPAGES)


@lru_cache(maxsize=4_096)
def _resource_name_problems(name: str) -> tuple[str, ...]:
    problems = names.is_qualified_name(name)
    is_huge_pages = name.startswith((HUGEPAGES, f"requests.{HUGEPAGES}"))
    if not problems and "/" not in name and name not in _STANDARD_RESOURCES and not is_huge_pages:
        problems = ["must be a standard resource type or fully qualified"]
    return tuple(problems)


@lru_cache(maxsize=4_096)
def _container_resource_problems(name: str) -> tuple[str, ...]:
    problems = list(_resource_name_problems(name))
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not name.startswith(HUGEPAGES):
            problems.append("must be a standard resource for containers")
    elif not is_native_resource(name) and not is_extended_resource(name):
        problems.append("doesn't follow extended resource name standard")
    return tuple(problems)


@lru_cache(maxsize=4_096)
def _is_whole(name: str) -> bool:
    return name in _OBJECT_COUNTS or is_extended_resource(name)


# A cluster knows few distinct amounts, and every pod is asked about each of its own; hence the caches. A problem
# is the value to be shown and what is wrong with it.
_Problems: TypeAlias = tuple[tuple[str, str], ...]


@lru_cache(maxsize=16_384)
def _amount_problems(name: str, text: str) -> _Problems:
    amount = quantity.parse(text)
    problems = []
    if amount < _ZERO:
        problems.append((text, NOT_NEGATIVE))
    if _is_whole(name) and amount.milli() % 1000:
        problems.append((text, "must be an integer"))
    if name.startswith(HUGEPAGES) and not _is_whole_pages(name, amount):
        problems.append((str(amount), f"{amount} is not positive integer multiple of {name}"))
    return tuple(problems)


def _is_whole_pages(name: str, amount: Quantity) -> bool:
    try:
        page = quantity.parse(name.removeprefix(HUGEPAGES))
    except ValueError:
        return False
    return page.sign() > 0 and page.milli() % 1000 == 0 and amount.value() % page.value() == 0


@lru_cache(maxsize=16_384)
def _container_problems(name: str, text: str) -> _Problems:
    return (*((name, detail) for detail in _container_resource_problems(name)), *_amount_problems(name, text))


def _validate_container_amount(name: str, text: str, path: str, part: str, errors: FieldErrors) -> None:
    for shown, detail in _container_problems(name, text):
        errors.invalid(f"{path}.{part}[{name}]", shown, detail)


def _validate_pod_amount(name: str, text: str, path: str, part: str, errors: FieldErrors) -> None:
    at = f"{path}.{part}[{name}]"
    problems = _resource_name_problems(name)
    if problems:
        errors.all_invalid(at, name, problems)
    elif not _is_pod_level(name):
        errors.not_supported(at, name, ["cpu", HUGEPAGES, "memory"])
    for shown, detail in _amount_problems(name, text):
        errors.invalid(at, shown, detail)


def validate_container_resources(
    resources: JsonObject, claims: Collection[str], path: str, errors: FieldErrors
) -> None:
    """Limits and requests of a container."""
    _validate_requirements(resources, claims, path, errors, _validate_container_amount)


def _validate_requirements(
    resources: JsonObject,
    claims: Collection[str],
    path: str,
    errors: FieldErrors,
    validate_amount: Callable[[str, str, str, str, FieldErrors], None],
) -> None:
    limits: JsonObject = resources.get("limits") or {}
    requests: JsonObject = resources.get("requests") or {}
    huge_pages = False
    for name, text in limits.items():
        validate_amount(name, text, path, "limits", errors)
        huge_pages = huge_pages or name.startswith(HUGEPAGES)
    for name, text in requests.items():
        validate_amount(name, text, path, "requests", errors)
        huge_pages = huge_pages or name.startswith(HUGEPAGES)
        limit = limits.get(name)
        if limit is not None:
            if limit != text:
                _compare(name, quantity.parse(text), quantity.parse(limit), f"{path}.requests", errors)
        elif not may_overcommit(name):
            errors.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
    if huge_pages and _POD_LEVEL.isdisjoint(limits) and _POD_LEVEL.isdisjoint(requests):
        errors.forbidden(path, "HugePages require cpu or memory")
    wanted = resources.get("claims")
    if wanted:
        _validate_claims(wanted, claims, f"{path}.claims", errors)


def _compare(name: str, amount: Quantity, limit: Quantity, path: str, errors: FieldErrors) -> None:
    if amount != limit and not may_overcommit(name):
        errors.invalid(path, str(amount), f"must be equal to {name} limit of {limit}")
    elif amount > limit:
        errors.invalid(path, str(amount), f"must be less than or equal to {name} limit of {limit}")


def _validate_claims(
    wanted: Iterable[JsonObject], known: Collection[str], path: str, errors: FieldErrors
) -> None:
    seen: set[str] = set()
    for index, claim in enumerate(wanted):
        at = f"{path}[{index}]"
        name = claim.get("name", "")
        if not name:
            errors.required(at)
            continue
        if name in seen:
            errors.duplicate(at, name)
        else:
            key, request = name, claim.get("request")
            if request:
                errors.all_invalid(f"{at}.request", request, names.is_dns1123_label(request))
                key = f"{name}/{request}"
            if key in seen or (not request and any(other.startswith(f"{name}/") for other in seen)):
                errors.duplicate(at, key)
            seen.add(key)
        if name not in known:
            listed = f": {', '.join(sorted(known))}" if known else " which is empty"
            detail = f"must be one of the names in pod.spec.resourceClaims{listed}"
            errors.causes.append(Cause("FieldValueNotFound", f"Not found: {show(name)}: {detail}", at))


def validate_pod_level(spec: JsonObject, claims: Collection[str], path: str, errors: FieldErrors) -> None:
    """``spec.resources``: what it may contain, and that the containers fit into it."""
    resources: JsonObject = spec["resources"]
    at = f"{path}.resources"
    if (spec.get("os") or {}).get("name") == "windows":
        errors.forbidden(at, "may not be set for a windows pod")
        return
    if "claims" in resources:
        errors.forbidden(f"{at}.claims", "claims may not be set for Resources at pod-level")
    _validate_requirements(resources, claims, at, errors, _validate_pod_amount)
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    for name, total in container_totals(spec, "requests").items():
        if name in requests and total > quantity.parse(requests[name]):
            detail = f"must be greater than or equal to aggregate container requests of {total}"
            errors.invalid(f"{at}.requests[{name}]", requests[name], detail)
    for name, total in container_totals(spec, "limits").items():
        if name.startswith(HUGEPAGES) and name in limits and total > quantity.parse(limits[name]):
            detail = f"must be greater than or equal to aggregate container limits of {total}"
            errors.invalid(f"{at}.limits[{name}]", limits[name], detail)
    for index, container in enumerate(spec.get("containers") or ()):
        own: dict[str, Any] = (container.get("resources") or {}).get("limits") or {}
        for name, text in own.items():
            if name in limits and quantity.parse(text) > quantity.parse(limits[name]):
                detail = f"must be less than or equal to pod limits of {limits[name]}"
                errors.invalid(f"{at}.containers[{index}][{name}].limits", text, detail)
