"""How many pods of a PodDisruptionBudget may go, from its pods and the scale of their controllers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from holokube.kube.conditions import get_condition, set_condition
from holokube.kube.timeformat import format_time, parse_time
from holokube.kube.types import JsonObject
from holokube.workloads.ownership import controller_of
from holokube.workloads.pod_status import is_pod_ready, is_terminated, is_terminating

DELETION_TIMEOUT_S: Final = 120.0
"""How long an eviction that was granted counts, if the pod is not seen to go."""
STALE_CONDITION_S: Final = 120.0
"""How long a pod may claim to be a target of disruption without being deleted."""
ALLOWED: Final = "DisruptionAllowed"


class BudgetError(Exception):
    """The budget cannot be worked out; the text is for its status."""


@dataclass(slots=True)
class Verdict:
    """The status of a budget, what to tell about it, and when to look again."""

    status: JsonObject
    not_deleted: list[JsonObject] = field(default_factory=list)
    """Pods whose eviction was granted but that are still there."""
    recheck_s: float | None = None


def scaled(value: int | str, total: int) -> int:
    """A number, or a percentage of the total, rounded up."""
    if isinstance(value, int):
        return value
    if not value.endswith("%") or not value[:-1].isdecimal():
        raise BudgetError(f'invalid value for IntOrString: invalid type: string is not a percentage: "{value}"')
    return -(-int(value[:-1]) * total // 100)


def needs_scale(budget: Mapping[str, Any]) -> bool:
    """Whether the number of expected pods comes from their controllers, and not from the pods themselves."""
    spec = budget.get("spec") or {}
    return spec.get("maxUnavailable") is not None or isinstance(spec.get("minAvailable"), str)


def unmanaged(pods: Iterable[JsonObject]) -> list[str]:
    """Names of pods that nothing controls, so that nothing says how many are expected."""
    return [pod["metadata"]["name"] for pod in pods if controller_of(pod) is None]


def expected_and_desired(budget: Mapping[str, Any], pods: Sequence[JsonObject], scale: int) -> tuple[int, int]:
    """How many pods there should be, and how many of them healthy. ``scale`` is their controllers' sum."""
    spec = budget.get("spec") or {}
    if (maximum := spec.get("maxUnavailable")) is not None:
        return scale, max(0, scale - scaled(maximum, scale))
    minimum = spec.get("minAvailable")
    if minimum is None:
        return 0, 0
    if isinstance(minimum, int):
        return len(pods), minimum
    return scale, scaled(minimum, scale)


def judge(
    budget: Mapping[str, Any], pods: Sequence[JsonObject], expected: int, desired: int, now: datetime
) -> Verdict:
    """The budget's new status."""
    old = budget.get("status") or {}
    disrupted, late, recheck_s = _still_disrupted(old.get("disruptedPods") or {}, pods, now)
    healthy = sum(
        is_pod_ready(pod) and not is_terminating(pod) and pod["metadata"]["name"] not in disrupted for pod in pods
    )
    allowed = max(0, healthy - desired) if expected > 0 else 0
    generation = budget["metadata"].get("generation") or 0
    status: JsonObject = {
        "currentHealthy": healthy, "desiredHealthy": desired, "expectedPods": expected,
        "disruptionsAllowed": allowed, "observedGeneration": generation,
    }  # fmt: skip
    if disrupted:
        status["disruptedPods"] = disrupted
    reason = "SufficientPods" if allowed > 0 else "InsufficientPods"
    status["conditions"] = _with_allowed(budget, allowed > 0, reason, "", generation, now)
    return Verdict(status, late, recheck_s)


def failed(budget: Mapping[str, Any], message: str, now: datetime) -> JsonObject:
    """The status when nothing could be worked out: no disruption is allowed, to be safe."""
    old = budget.get("status") or {}
    conditions = _with_allowed(budget, False, "SyncFailed", message, old.get("observedGeneration") or 0, now)
    return {**old, "disruptionsAllowed": 0, "conditions": conditions}


def _still_disrupted(
    granted: Mapping[str, str], pods: Sequence[JsonObject], now: datetime
) -> tuple[dict[str, str], list[JsonObject], float | None]:
    kept: dict[str, str] = {}
    late: list[JsonObject] = []
    recheck_s: float | None = None
    for pod in pods:
        stamp = granted.get(pod["metadata"]["name"])
        if stamp is None or is_terminating(pod):
            continue
        left_s = (parse_time(stamp) + timedelta(seconds=DELETION_TIMEOUT_S) - now).total_seconds()
        if left_s <= 0:
            late.append(pod)
            continue
        kept[pod["metadata"]["name"]] = stamp
        recheck_s = left_s if recheck_s is None else min(recheck_s, left_s)
    return kept, late, recheck_s


def _with_allowed(
    budget: Mapping[str, Any], allowed: bool, reason: str, message: str, generation: int, now: datetime
) -> list[JsonObject]:
    conditions: list[JsonObject] = list((budget.get("status") or {}).get("conditions") or ())
    status = "True" if allowed else "False"
    condition = {
        "type": ALLOWED, "status": status, "reason": reason, "message": message, "observedGeneration": generation,
    }  # fmt: skip
    return set_condition(conditions, condition, now=format_time(now))


def go_selector(selector: Mapping[str, Any] | None) -> str:
    """A label selector as Go prints it, which is what users find in upstream's messages."""
    if selector is None:
        return "nil"
    labels = selector.get("matchLabels") or {}
    listed = "".join(f"{key}: {labels[key]}," for key in sorted(labels))
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{term['key']},Operator:{term['operator']},"
        f"Values:[{' '.join(term.get('values') or ())}],}},"
        for term in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{listed}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"
    )


def stale_in_s(pod: Mapping[str, Any], now: datetime) -> float | None:
    """When the pod's claim to be a target of disruption becomes stale; None if it makes none that could.

    What a kubelet claims never does: it may take its time.
    """
    target = get_condition(pod, "DisruptionTarget")
    if target is None or target.get("status") != "True" or is_terminating(pod) or is_terminated(pod):
        return None
    if target.get("reason") == "TerminationByKubelet":
        return None
    since = target.get("lastTransitionTime")
    passed_s = (now - parse_time(since)).total_seconds() if since else STALE_CONDITION_S
    return max(0.0, STALE_CONDITION_S - passed_s)
