"""pods/eviction: a delete that asks the pod's disruption budget first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from holokube.apiserver.admission.base import Attributes, Caller
from holokube.apiserver.answers import WriteResult
from holokube.apiserver.options import DeleteOptions, WriteOptions
from holokube.apiserver.subresources.bodies import read_typed, success
from holokube.base.errors import KeyMissing, RevisionMismatch
from holokube.kube import conditions, timeformat
from holokube.kube.errors import ApiError, BadRequest, Cause, Conflict, InternalError, TooManyRequests, forbidden
from holokube.kube.selectors import LabelSelector
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

_MAX_DISRUPTED_PODS = 2000
_ATTEMPTS = 5
_FIELDS_MAX = 4
_META_FIELDS = frozenset({"name", "namespace"})
_OPTION_FIELDS = frozenset({"apiVersion", "kind", "preconditions"})
_RETRY_AFTER_S = 10
_TWO_BUDGETS = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget."


async def evict(
    registry: Registry, namespace: str, name: str, body: Any, options: WriteOptions, caller: Caller
) -> WriteResult:
    """Delete the pod if its budget allows it; 429 if not now."""
    pods = registry.resolve("", "v1", "pods")
    warnings: list[str] = []
    if _is_usual(body, name) and registry.admission.has_no_say(pods, "CREATE", "eviction", namespace):
        delete_options = _delete_options(body, dry_run=options.dry_run)
    else:
        eviction, warnings = read_typed(
            registry, body, "policy", "v1", "Eviction", options, other_versions=("policy/v1beta1",)
        )
        given = (eviction.get("metadata") or {}).get("name")
        if given and given != name:
            raise BadRequest(f"name in URL does not match name in Eviction object: {name} is not {given}")
        delete_options = _delete_options(eviction, dry_run=options.dry_run)
        attributes = Attributes(
            "CREATE", pods, namespace, name, "eviction", eviction, None, caller, registry, delete_options.dry_run,
            warnings=warnings,
        )  # fmt: skip
        await registry.admission.mutate(attributes)
        await registry.admission.validate(attributes)
    pod = registry.get_stored(pods, namespace, name).obj
    if not _ignores_budgets(pod):
        delete_options = await _ask_budget(registry, namespace, pod, delete_options)
    if not delete_options.dry_run:
        delete_options = await _announce(registry, namespace, name, delete_options)
    await registry.delete(pods, namespace, name, delete_options, caller, warnings)
    return WriteResult(Stored(success(), 0), created=True, warnings=warnings)


def _is_usual(body: Any, name: str) -> bool:
    """Whether an eviction has the form in which it is usually sent, with no options or only for a certain pod; others
    have to be read field by field."""
    if type(body) is not dict or body.get("apiVersion") != "policy/v1" or body.get("kind") != "Eviction":
        return False
    meta = body.get("metadata")
    if type(meta) is not dict or meta.keys() != _META_FIELDS or meta["name"] != name:
        return False
    if type(meta["namespace"]) is not str or len(body) > _FIELDS_MAX:
        return False
    if len(body) < _FIELDS_MAX:
        return True
    options = body.get("deleteOptions")
    if type(options) is not dict or options.keys() != _OPTION_FIELDS:
        return False
    only = options["preconditions"]
    if options["apiVersion"] != "v1" or options["kind"] != "DeleteOptions" or type(only) is not dict:
        return False
    return only.keys() == {"uid"} and type(only["uid"]) is str


def _delete_options(eviction: JsonObject, *, dry_run: bool) -> DeleteOptions:
    given = DeleteOptions.parse({}, eviction.get("deleteOptions") or None)
    return replace(given, dry_run=True) if dry_run else given


async def _announce(registry: Registry, namespace: str, name: str, options: DeleteOptions) -> DeleteOptions:
    """Say on the pod why it goes, so that controllers can tell an eviction from a failure."""
    pods = registry.resolve("", "v1", "pods")
    stored = registry.get_stored(pods, namespace, name)
    meta = stored.obj["metadata"]
    if options.uid is not None and options.uid != meta["uid"]:
        return options
    status: JsonObject = dict(stored.obj.get("status") or {})
    target = {
        "type": "DisruptionTarget", "status": "True", "lastProbeTime": None,
        "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
    }  # fmt: skip
    if "observedGeneration" in status:
        target["observedGeneration"] = meta.get("generation")
    now = timeformat.format_time(registry.clock.now())
    status["conditions"] = conditions.set_condition(status.get("conditions") or [], target, now=now)
    key = registry.key(pods, namespace, name)
    announced = {**stored.obj, "metadata": meta.copy(), "status": status}
    changed = registry.store.update(pods.bucket, key, announced, expected=stored.revision, owned=True)
    if options.resource_version == meta["resourceVersion"]:
        return replace(options, resource_version=changed.obj["metadata"]["resourceVersion"])
    return options


def _ignores_budgets(pod: JsonObject) -> bool:
    """Pods that do not count as healthy for any budget may always go."""
    phase = (pod.get("status") or {}).get("phase")
    return bool(pod["metadata"].get("deletionTimestamp")) or phase in ("Succeeded", "Failed", "Pending")


async def _ask_budget(
    registry: Registry, namespace: str, pod: JsonObject, options: DeleteOptions
) -> DeleteOptions:
    if not registry.store.count("poddisruptionbudgets.policy"):
        return options
    labels = pod["metadata"].get("labels") or {}
    budgets = [
        budget
        for budget in registry.objects("policy", "poddisruptionbudgets", namespace)
        if LabelSelector.from_json((budget.get("spec") or {}).get("selector")).matches(labels)
    ]
    if not budgets:
        return options
    if len(budgets) > 1:
        # Upstream's own answer, code and missing reason included: kubectl drain matches on it.
        raise InternalError(_TWO_BUDGETS, status={**InternalError(_TWO_BUDGETS).to_status(), "reason": ""})
    budget = budgets[0]
    if _unhealthy_may_go(pod, budget):
        # The pod was judged unhealthy; it must not be deleted should it have recovered meanwhile.
        return replace(options, uid=pod["metadata"]["uid"], resource_version=pod["metadata"]["resourceVersion"])
    await _take_disruption(registry, namespace, budget, pod, dry_run=options.dry_run)
    return options


def _unhealthy_may_go(pod: JsonObject, budget: JsonObject) -> bool:
    if conditions.is_true(pod, "Ready"):
        return False
    policy = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") or "IfHealthyBudget"
    if policy == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired: int = status.get("desiredHealthy", 0)
    current: int = status.get("currentHealthy", 0)
    return desired > 0 and current >= desired


async def _take_disruption(
    registry: Registry, namespace: str, budget: JsonObject, pod: JsonObject, *, dry_run: bool
) -> None:
    """Book the disruption in the budget's status, so that two evictions cannot spend the same one."""
    served = registry.resolve("policy", "v1", "poddisruptionbudgets")
    name = budget["metadata"]["name"]
    for _ in range(_ATTEMPTS):
        stored = registry.get_stored(served, namespace, name)
        status = _booked(stored.obj, pod["metadata"]["name"], timeformat.format_time(registry.clock.now()))
        if dry_run:
            return
        new = {**stored.obj, "status": status}
        key = registry.key(served, namespace, name)
        try:
            registry.store.update(served.bucket, key, new, expected=stored.revision)
        except (RevisionMismatch, KeyMissing):
            continue
        await registry.store.durable()
        return
    raise Conflict(f'the disruption budget "{name}" changed too often', details={"retryAfterSeconds": _RETRY_AFTER_S})


def _booked(budget: JsonObject, pod_name: str, now: str) -> JsonObject:
    status = budget.get("status") or {}
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _not_now(f"The disruption budget {name} is still being processed by the server.", _RETRY_AFTER_S)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise forbidden("policy", "poddisruptionbudgets", name, "pdb disruptions allowed is negative")
    disrupted = status.get("disruptedPods") or {}
    if len(disrupted) > _MAX_DISRUPTED_PODS:
        raise forbidden(
            "policy", "poddisruptionbudgets", name,
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        )  # fmt: skip
    if allowed == 0:
        raise _not_now(
            f"The disruption budget {name} needs {status.get('desiredHealthy', 0)} healthy pods and has "
            f"{status.get('currentHealthy', 0)} currently"
        )
    generation = budget["metadata"].get("generation", 0)
    left = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed > 1 else "False",
        "reason": "SufficientPods" if allowed > 1 else "InsufficientPods",
        "message": "",
        "observedGeneration": generation,
    }
    return {
        **status,
        "disruptionsAllowed": allowed - 1,
        "disruptedPods": {**disrupted, pod_name: now},
        "conditions": conditions.set_condition(status.get("conditions") or [], left, now=now),
    }


def _not_now(why: str, retry_after_s: int = 0) -> ApiError:
    cause = Cause("DisruptionBudget", why)
    details: JsonObject = {"causes": [cause.to_json()]}
    if retry_after_s:
        details["retryAfterSeconds"] = retry_after_s
    return TooManyRequests(_VIOLATION, details=details)
