"""The pods of a Job: how they are made, which index they work on, when and how they ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from holokube.kube.conditions import get_condition
from holokube.kube.timeformat import parse_time
from holokube.kube.types import JsonObject
from holokube.workloads.pod_control import pod_from_template
from holokube.workloads.pod_status import is_terminating, phase

TRACKING_FINALIZER = "batch.kubernetes.io/job-tracking"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_FAILURES = "batch.kubernetes.io/job-index-failure-count"
INDEX_IGNORED_FAILURES = "batch.kubernetes.io/job-index-ignored-failure-count"
_GENERATE_NAME_CHARS_MAX = 58
_INT32_MAX = 2**31 - 1


def is_indexed(job: Mapping[str, Any]) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def is_tracked(pod: Mapping[str, Any]) -> bool:
    """Whether the pod waits to be counted: it has our finalizer."""
    return TRACKING_FINALIZER in (pod["metadata"].get("finalizers") or ())


def replaces_only_failed(job: Mapping[str, Any]) -> bool:
    """Whether a pod that is merely on its way out is not replaced yet."""
    return job["spec"].get("podReplacementPolicy") == "Failed" or bool(job["spec"].get("podFailurePolicy"))


def is_failed(pod: Mapping[str, Any], job: Mapping[str, Any]) -> bool:
    """A pod that is being deleted counts as failed, as it may never reach that phase."""
    if phase(pod) == "Failed":
        return True
    return not replaces_only_failed(job) and is_terminating(pod) and phase(pod) != "Succeeded"


def completion_index(pod: Mapping[str, Any]) -> int | None:
    text = (pod["metadata"].get("annotations") or {}).get(COMPLETION_INDEX, "")
    return int(text) if text.isdecimal() and text.isascii() else None


def index_failures(pod: Mapping[str, Any], *, ignored: bool = False) -> int:
    """How often its index had failed before it, counted or ignored."""
    name = INDEX_IGNORED_FAILURES if ignored else INDEX_FAILURES
    text = (pod["metadata"].get("annotations") or {}).get(name, "")
    return int(text) if text.isdecimal() and int(text) <= _INT32_MAX else 0


def finished_at(pod: Mapping[str, Any]) -> datetime:
    """When it ended, as well as can be told: by its containers, its readiness, its deletion."""
    moments = _container_ends(pod)
    if moments:
        return max(moments)
    ready = get_condition(pod, "Ready")
    if ready is not None and ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return parse_time(ready["lastTransitionTime"])
    meta = pod["metadata"]
    if meta.get("deletionTimestamp"):
        grace_s = int(meta.get("deletionGracePeriodSeconds") or 0)
        return parse_time(meta["deletionTimestamp"]) - timedelta(seconds=grace_s)
    return parse_time(meta["creationTimestamp"])


def _container_ends(pod: Mapping[str, Any]) -> list[datetime]:
    """When each container ended; nothing if one has not, or does not say."""
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    sidecars = {c["name"] for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    states = [
        *(status.get("containerStatuses") or ()),
        *(c for c in status.get("initContainerStatuses") or () if c.get("name") in sidecars),
    ]
    ends = [((c.get("state") or {}).get("terminated") or {}).get("finishedAt") for c in states]
    return [parse_time(end) for end in ends] if all(ends) else []


def failure_action(job: Mapping[str, Any], pod: Mapping[str, Any]) -> tuple[str, str]:
    """What the failure policy makes of a failed pod: ``Ignore``, ``Count``, ``FailIndex``, ``FailJob`` or
    nothing if no rule matches; and for ``FailJob`` a message."""
    meta = pod["metadata"]
    for number, rule in enumerate((job["spec"].get("podFailurePolicy") or {}).get("rules") or ()):
        action = str(rule.get("action") or "")
        if rule.get("onExitCodes"):
            container = _matching_container(pod, rule["onExitCodes"])
            if container is not None:
                code = container["state"]["terminated"]["exitCode"]
                return action, (
                    f"Container {container['name']} for pod {meta['namespace']}/{meta['name']} failed with "
                    f"exit code {code} matching {action} rule at index {number}"
                )
        elif rule.get("onPodConditions"):
            matched = _matching_condition(pod, rule["onPodConditions"])
            if matched:
                return action, (
                    f"Pod {meta['namespace']}/{meta['name']} has condition {matched} matching {action} "
                    f"rule at index {number}"
                )
    return "", ""


def counts_as_failure(job: Mapping[str, Any], pod: Mapping[str, Any]) -> bool:
    return failure_action(job, pod)[0] != "Ignore"


def _matching_container(pod: Mapping[str, Any], rule: Mapping[str, Any]) -> JsonObject | None:
    status = pod.get("status") or {}
    for container in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())):
        terminated = (container.get("state") or {}).get("terminated")
        if terminated is None or rule.get("containerName") not in (None, container["name"]):
            continue
        code = terminated.get("exitCode") or 0
        listed = code in (rule.get("values") or ())
        if code != 0 and listed == (rule.get("operator") == "In"):
            return dict(container)
    return None


def _matching_condition(pod: Mapping[str, Any], patterns: Iterable[Mapping[str, Any]]) -> str:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        for pattern in patterns:
            wanted = pattern.get("type"), pattern.get("status") or "True"
            if (condition.get("type"), condition.get("status")) == wanted:
                return str(condition["type"])
    return ""


def job_pod(job: JsonObject, index: int | None, replaced: JsonObject | None) -> JsonObject:
    """A pod for a Job, or for one of its indexes; ``replaced`` is the failed pod whose count it goes on with."""
    template = job["spec"]["template"]
    if index is None:
        pod = pod_from_template(template, job)
    else:
        pod = pod_from_template(template, job, generate_name=_indexed_prefix(job["metadata"]["name"], index))
        annotations = {**(pod["metadata"].get("annotations") or {}), COMPLETION_INDEX: str(index)}
        if job["spec"].get("backoffLimitPerIndex") is not None:
            annotations.update(_failure_annotations(job, replaced))
        pod["metadata"]["annotations"] = annotations
        pod["metadata"]["labels"] = {**(pod["metadata"].get("labels") or {}), COMPLETION_INDEX: str(index)}
        spec = {**pod["spec"], "hostname": f"{job['metadata']['name']}-{index}"}
        for name in ("initContainers", "containers"):
            if spec.get(name):
                spec[name] = [_with_index_variable(container) for container in spec[name]]
        pod["spec"] = spec
    finalizers = list(pod["metadata"].get("finalizers") or ())
    if TRACKING_FINALIZER not in finalizers:
        finalizers.append(TRACKING_FINALIZER)
    pod["metadata"]["finalizers"] = finalizers
    return pod


def _failure_annotations(job: JsonObject, replaced: JsonObject | None) -> dict[str, str]:
    failures = ignored = 0
    if replaced is not None:
        failures, ignored = index_failures(replaced), index_failures(replaced, ignored=True)
        if counts_as_failure(job, replaced):
            failures += 1
        else:
            ignored += 1
    annotations = {INDEX_FAILURES: str(failures)}
    if ignored:
        annotations[INDEX_IGNORED_FAILURES] = str(ignored)
    return annotations


def _with_index_variable(container: JsonObject) -> JsonObject:
    env = container.get("env") or []
    if any(variable.get("name") == "JOB_COMPLETION_INDEX" for variable in env):
        return container
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    return {**container, "env": [*env, {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}]}


def _indexed_prefix(job_name: str, index: int) -> str:
    suffix = f"-{index}-"
    return job_name[: _GENERATE_NAME_CHARS_MAX - len(suffix)] + suffix
