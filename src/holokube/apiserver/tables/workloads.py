"""Controllers of pods: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job, CronJob and their kin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.apiserver.tables.cells import (
    condition_status,
    is_deleting,
    labels_text,
    name_of,
    selector_text,
    spec_of,
    status_of,
    template_cells,
)
from holokube.apiserver.tables.layout import (
    AGE,
    CONTAINERS,
    IMAGES,
    NAME,
    NONE,
    SELECTOR,
    UNSET,
    Ages,
    Layout,
    column,
)
from holokube.kube.timeformat import format_age, parse_time
from holokube.kube.types import JsonObject

# In order of precedence: a job can carry several of these at once.
_JOB_ENDS = ("Complete", "Failed")
_JOB_STATES = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def deployment_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    return [
        name_of(obj),
        f"{status.get('readyReplicas') or 0}/{spec.get('replicas') or 0}",
        status.get("updatedReplicas") or 0,
        status.get("availableReplicas") or 0,
        ages.of(obj),
        *template_cells(spec),
        selector_text(spec.get("selector"), empty="", wrong="<invalid>"),
    ]


def replica_set_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    return [*_replica_counts(obj, ages), *template_cells(spec), selector_text(spec.get("selector"))]


def replication_controller_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    return [*_replica_counts(obj, ages), *template_cells(spec), labels_text(spec.get("selector"))]


def _replica_counts(obj: JsonObject, ages: Ages) -> list[Any]:
    status = status_of(obj)
    return [
        name_of(obj),
        spec_of(obj).get("replicas") or 0,
        status.get("replicas") or 0,
        status.get("readyReplicas") or 0,
        ages.of(obj),
    ]


def stateful_set_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    ready = f"{status_of(obj).get('readyReplicas') or 0}/{spec.get('replicas') or 0}"
    return [name_of(obj), ready, ages.of(obj), *template_cells(spec)]


def daemon_set_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    pod_spec = (spec.get("template") or {}).get("spec") or {}
    return [
        name_of(obj),
        status.get("desiredNumberScheduled") or 0,
        status.get("currentNumberScheduled") or 0,
        status.get("numberReady") or 0,
        status.get("updatedNumberScheduled") or 0,
        status.get("numberAvailable") or 0,
        labels_text(pod_spec.get("nodeSelector")),
        ages.of(obj),
        *template_cells(spec),
        selector_text(spec.get("selector")),
    ]


def job_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    return [
        name_of(obj),
        _job_state(obj, status),
        _completions(spec, status),
        _job_duration(status, ages),
        ages.of(obj),
        *template_cells(spec),
        selector_text(spec.get("selector")),
    ]


def _job_state(obj: JsonObject, status: JsonObject) -> str:
    conditions = status.get("conditions")
    for state in _JOB_ENDS:
        if condition_status(conditions, state) == "True":
            return state
    if is_deleting(obj):
        return "Terminating"
    for state in _JOB_STATES:
        if condition_status(conditions, state) == "True":
            return state
    return "Running"


def _completions(spec: JsonObject, status: JsonObject) -> str:
    succeeded = status.get("succeeded") or 0
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(status: JsonObject, ages: Ages) -> str:
    started, completed = status.get("startTime"), status.get("completionTime")
    if not started:
        return ""
    if not completed:
        return ages.since(started)
    return format_age((parse_time(completed) - parse_time(started)).total_seconds())


def cron_job_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    suspended = spec.get("suspend")
    last = status.get("lastScheduleTime")
    job_spec = (spec.get("jobTemplate") or {}).get("spec") or {}
    return [
        name_of(obj),
        spec.get("schedule") or "",
        spec.get("timeZone") or NONE,
        UNSET if suspended is None else str(suspended),
        len(status.get("active") or ()),
        ages.since(last) if last else NONE,
        ages.of(obj),
        *template_cells(job_spec),
        selector_text(job_spec.get("selector")),
    ]


def controller_revision_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    owner = NONE
    for reference in (obj.get("metadata") or {}).get("ownerReferences") or ():
        if reference.get("controller"):
            group, _, version = (reference.get("apiVersion") or "").rpartition("/")
            kind = (reference.get("kind") or "").lower()
            qualified = f"{kind}.{group.lower()}" if group and version else kind
            owner = f"{qualified}/{reference.get('name')}"
    return [name_of(obj), owner, obj.get("revision") or 0, ages.of(obj)]


_REPLICA_COLUMNS = (
    NAME,
    column("Desired", "Pods wanted.", type="integer"),
    column("Current", "Pods there are.", type="integer"),
    column("Ready", "Pods that are ready.", type="integer"),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
)

LAYOUTS: Mapping[tuple[str, str], Layout] = {
    ("apps", "deployments"): Layout(
        (
            NAME,
            column("Ready", "Pods that are ready, of those wanted."),
            column("Up-to-date", "Pods made from the newest template."),
            column("Available", "Pods that have been ready for long enough."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        deployment_cells,
    ),
    ("apps", "replicasets"): Layout(_REPLICA_COLUMNS, replica_set_cells),
    ("", "replicationcontrollers"): Layout(_REPLICA_COLUMNS, replication_controller_cells),
    ("apps", "statefulsets"): Layout(
        (NAME, column("Ready", "Pods that are ready, of those wanted."), AGE, CONTAINERS, IMAGES),
        stateful_set_cells,
    ),
    ("apps", "daemonsets"): Layout(
        (
            NAME,
            column("Desired", "Nodes that should run the pod.", type="integer"),
            column("Current", "Nodes that should run the pod and do.", type="integer"),
            column("Ready", "Nodes on which the pod is ready.", type="integer"),
            column("Up-to-date", "Nodes that run the newest template.", type="integer"),
            column("Available", "Nodes on which the pod has been ready for long enough.", type="integer"),
            column("Node Selector", "Labels a node must carry."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        daemon_set_cells,
    ),
    ("batch", "jobs"): Layout(
        (
            NAME,
            column("Status", "How far the job is."),
            column("Completions", "Pods that succeeded, of those that must."),
            column("Duration", "Time from start to completion, or until now."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        job_cells,
    ),
    ("batch", "cronjobs"): Layout(
        (
            NAME,
            column("Schedule", "When jobs are started, in cron form."),
            column("Timezone", "Time zone of the schedule."),
            column("Suspend", "Whether no new jobs are started.", type="boolean"),
            column("Active", "Jobs that are running.", type="integer"),
            column("Last Schedule", "Time since a job was started last."),
            AGE,
            CONTAINERS,
            IMAGES,
            SELECTOR,
        ),
        cron_job_cells,
    ),
    ("apps", "controllerrevisions"): Layout(
        (
            NAME,
            column("Controller", "Owner of the revision."),
            column("Revision", "Number of the revision."),
            AGE,
        ),
        controller_revision_cells,
    ),
}
