"""The status that the autoscaler publishes, as plain values and as the YAML that people read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from holokube.cluster_autoscaler.cluster_state.readiness import Readiness
from holokube.cluster_autoscaler.cluster_state.registry import ClusterStateRegistry
from holokube.cluster_autoscaler.groups import GroupView
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject

ERROR_MESSAGE_MAX = 500
_TRUNCATED = "<truncated>"

_BaseDumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_BaseDumper):  # type: ignore[misc]  # the C dumper has no type
    """Writes times in double quotes, as Go does, so that the text is the same from both programs."""


class _Time(str):
    """A time of the API."""


def _quoted(dumper: Any, text: _Time) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style='"')


_Dumper.add_representer(_Time, _quoted)


def initial_status() -> JsonObject:
    """What is published before the first turn."""
    return {
        "autoscalerStatus": "Initializing",
        "clusterWide": {
            "health": {"nodeCounts": _counts(Readiness()), **_times(None, None)},
            "scaleUp": _times(None, None), "scaleDown": _times(None, None),
        },
    }


def build_status(registry: ClusterStateRegistry, last: JsonObject, now_s: float) -> JsonObject:
    """The status now. ``last`` is the one before: a condition that has not changed keeps its transition time."""
    before = {group["name"]: group for group in last.get("nodeGroups", ())}
    groups = [_group_status(registry, group, before.get(group.id, {}), now_s) for group in registry.groups]
    wide = last.get("clusterWide", {})
    total = registry.total
    is_scaling_up = any(group["scaleUp"]["status"] == "InProgress" for group in groups)
    candidates = sum(len(names) for names in registry.candidates.values())
    status: JsonObject = {
        "autoscalerStatus": "Running",
        "clusterWide": {
            "health": {
                "nodeCounts": _counts(total),
                **_condition(_health(registry.is_cluster_healthy()), wide.get("health", {}), total.time_s),
            },
            "scaleUp": _condition(
                "InProgress" if is_scaling_up else "NoActivity", wide.get("scaleUp", {}), total.time_s),
            "scaleDown": _scale_down(candidates, wide.get("scaleDown", {}), registry.candidates_at_s),
        },
    }
    if groups:
        status["nodeGroups"] = groups
    return status


def status_text(status: Mapping[str, Any], time: str) -> str:
    """The YAML of the ConfigMap."""
    return str(yaml.dump({**status, "time": time}, Dumper=_Dumper, default_flow_style=False, width=2**31 - 1))


def last_updated_text(now_s: float) -> str:
    """A time as Go prints it by default: ``2026-01-01 00:00:00.25 +0000 UTC``."""
    whole = format_time(now_s)
    fraction = f"{now_s % 1:.6f}"[2:].rstrip("0")
    return f"{whole[:10]} {whole[11:19]}{'.' + fraction if fraction else ''} +0000 UTC"


def _group_status(registry: ClusterStateRegistry, group: GroupView, last: JsonObject, now_s: float) -> JsonObject:
    readiness = registry.readiness(group.id) or Readiness()
    acceptable = registry.acceptable_range(group.id)
    return {
        "name": group.id,
        "health": {
            "nodeCounts": _counts(readiness),
            "cloudProviderTarget": acceptable.target if acceptable else 0,
            "minSize": group.min_size, "maxSize": group.max_size,
            **_condition(_health(registry.is_group_healthy(group.id)), last.get("health", {}), readiness.time_s),
        },
        "scaleUp": _scale_up(registry, group.id, last.get("scaleUp", {}), readiness.time_s, now_s),
        "scaleDown": _scale_down(
            len(registry.candidates.get(group.id, ())), last.get("scaleDown", {}), registry.candidates_at_s
        ),
    }


def _scale_up(registry: ClusterStateRegistry, group_id: str, last: JsonObject, probed_s: float | None,
              now_s: float) -> JsonObject:
    safety = registry.scale_up_safety(group_id, now_s)
    info: JsonObject = {}
    if registry.is_scaling_up(group_id):
        status = "InProgress"
    elif not safety.is_healthy:
        status = "Unhealthy"
    elif safety.backoff is not None:
        status = "Backoff"
        error = safety.backoff.error
        info = {key: text for key, text in (
            ("errorCode", error.code), ("errorMessage", _cut(error.message)),
        ) if text}
    else:
        status = "NoActivity"
    return {"backoffInfo": info, **_condition(status, last, probed_s)}


def _scale_down(candidates: int, last: JsonObject, probed_s: float | None) -> JsonObject:
    condition = _condition("CandidatesPresent" if candidates else "NoCandidates", last, probed_s)
    return {"candidates": candidates, **condition} if candidates else condition


def _condition(status: str, last: JsonObject, probed_s: float | None) -> JsonObject:
    probed = _time(probed_s)
    since = last.get("lastTransitionTime") if last.get("status") == status else probed
    return {"status": status, "lastProbeTime": probed, "lastTransitionTime": since}


def _times(probed_s: float | None, since_s: float | None) -> JsonObject:
    return {"lastProbeTime": _time(probed_s), "lastTransitionTime": _time(since_s)}


def _time(moment_s: float | None) -> _Time | None:
    return None if moment_s is None else _Time(format_time(moment_s))


def _health(is_healthy: bool) -> str:
    return "Healthy" if is_healthy else "Unhealthy"


def _counts(readiness: Readiness) -> JsonObject:
    registered: JsonObject = {
        "total": len(readiness.registered), "ready": len(readiness.ready),
        "notStarted": len(readiness.not_started), "suspended": len(readiness.suspended),
        "unready": {"total": len(readiness.unready), "resourceUnready": len(readiness.resource_unready)},
    }
    if readiness.deleted:
        registered["beingDeleted"] = len(readiness.deleted)
    return {
        "registered": registered, "longUnregistered": len(readiness.long_unregistered),
        "unregistered": len(readiness.unregistered),
    }


def _cut(text: str) -> str:
    if len(text) <= ERROR_MESSAGE_MAX:
        return text
    return text[:ERROR_MESSAGE_MAX - len(_TRUNCATED)] + _TRUNCATED
