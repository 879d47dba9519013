"""What users asked a cluster for, taken from a recording of everything that happened in it.

A recording holds the doings of scheduler, controllers and kubelets as well. Somebody who wants to see what another
autoscaler had made of the same workload needs what came from outside: objects without a controlling owner, their spec,
and how long pods ran; the rest is what the components of the new run will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from statistics import median_low
from typing import Any, Final

from holokube.hollow.behaviour import RUN_TIME
from holokube.kube.timeformat import TimeFormatError, format_duration, parse_time
from holokube.kube.types import JsonObject
from holokube.lab.formats.timeline import Change, PodLives, Ref, Run, Timeline, ref_of
from holokube.lab.scenario.behaviour import annotated

# Made by a component or by the server itself, and made again in any other run.
_MADE_BY_COMPONENTS: Final = frozenset({
    "Event", "Lease", "Endpoints", "EndpointSlice", "ControllerRevision", "CSINode",
    "APIService", "FlowSchema", "PriorityLevelConfiguration", "ComponentStatus", "PodMetrics", "NodeMetrics",
    "NodeClaim", "VolumeAttachment", "CertificateSigningRequest", "IPAddress", "ServiceCIDR",
})  # fmt: skip
_OF_EVERY_CLUSTER: Final = frozenset({
    ("Namespace", "", "default"), ("Namespace", "", "kube-system"), ("Namespace", "", "kube-public"),
    ("Namespace", "", "kube-node-lease"), ("Service", "default", "kubernetes"),
    ("ConfigMap", "kube-system", "extension-apiserver-authentication"),
    ("ConfigMap", "kube-system", "kube-apiserver-legacy-service-account-token-tracking"),
    ("PriorityClass", "", "system-node-critical"), ("PriorityClass", "", "system-cluster-critical"),
})  # fmt: skip
_BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_SERVER_FIELDS: Final = (
    "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
    "managedFields", "selfLink", "finalizers",
)  # fmt: skip
_SERVER_ANNOTATIONS: Final = (
    "kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation", "pv.kubernetes.io/bind-completed", _BOUND_BY_CONTROLLER,
    "volume.kubernetes.io/selected-node", "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
)  # fmt: skip
_BINDINGS: Final = {"PersistentVolume": "claimRef", "PersistentVolumeClaim": "volumeName"}
_ENDING_KINDS: Final = frozenset({"Pod", "Job", "CronJob"})


def workload_of(timeline: Timeline, *, nodes: bool = True) -> Timeline:
    """The part that came from outside, without status; nodes as they were at the beginning, if wanted.

    Changes of which nothing is left (most are of the status) are gone. Lives of pods are those that the timeline tells,
    or else what the status of its pods shows.
    """
    seen: dict[Ref, JsonObject] = {}
    objects: list[JsonObject] = []
    for obj in timeline.objects:
        if _is_asked_for(obj) and (nodes or obj["kind"] != "Node"):
            seen[ref_of(obj)] = bare = _bare(obj)
            objects.append(bare)
    changes: list[Change] = []
    for change in timeline.changes:
        ref = ref_of(change.object)
        if change.object["kind"] == "Node":
            continue
        if change.method == "delete":
            if seen.pop(ref, None) is not None:
                changes.append(replace(change, object=_named(ref)))
        elif _is_asked_for(change.object):
            bare = _bare(change.object)
            if change.method == "patch" or seen.get(ref) != bare:
                seen[ref] = bare
                changes.append(replace(change, object=bare))
    lives = timeline.lives or tuple(pod_lives(timeline))
    return replace(timeline, objects=tuple(objects), changes=tuple(changes), lives=lives)


def with_run_times(timeline: Timeline) -> Timeline:
    """Pods that end by themselves are told so in an annotation, which hollow kubelets go by.

    A pod of its own gets exactly its time. Pods of a Job or CronJob share one template and get the median of theirs.
    Pods of other owners ended because somebody deleted them, so that their lives say nothing.
    """
    runs: dict[Ref, list[Run | None]] = {}
    for life in timeline.lives:
        # An owner whose template was changed is there once for each.
        if life.owner.kind in _ENDING_KINDS:
            runs.setdefault(life.owner, []).extend(life.runs)
    times_s = {owner: time_s for owner, found in runs.items() if (time_s := _run_time_s(found)) is not None}

    def told(obj: JsonObject) -> JsonObject:
        time_s = times_s.get(ref_of(obj))
        return obj if time_s is None else annotated(obj, {RUN_TIME: format_duration(time_s)})

    return replace(
        timeline,
        objects=tuple(told(obj) for obj in timeline.objects),
        changes=tuple(
            replace(change, object=told(change.object)) if change.method == "apply" else change
            for change in timeline.changes
        ),
    )


def pod_lives(timeline: Timeline) -> Iterator[PodLives]:
    """When the pods of each topmost owner ran, as the status of the pods shows."""
    owners: dict[Ref, Ref] = {}
    runs: dict[str, tuple[Ref, Run]] = {}
    start_s = timeline.start_s or 0.0
    for at_s, method, obj in _everything(timeline):
        ref = ref_of(obj)
        owner = _controller(obj)
        if owner is not None and method != "delete":
            owners[ref] = owner
        if obj["kind"] != "Pod":
            continue
        uid = obj["metadata"].get("uid") or str(ref)
        if method == "delete":
            if uid in runs and runs[uid][1].end_s is None:
                runs[uid] = (ref, Run(runs[uid][1].start_s, at_s))
            continue
        run = _status_run(obj, start_s)
        if run is not None:
            runs[uid] = (ref, run)
    grouped: dict[Ref, list[Run]] = {}
    for pod, lived in runs.values():
        grouped.setdefault(_topmost(pod, owners), []).append(lived)
    for owner, found in grouped.items():
        found.sort(key=lambda lived: lived.start_s)
        yield PodLives(owner, tuple(found))


def _everything(timeline: Timeline) -> Iterator[tuple[float, str, JsonObject]]:
    yield from ((0.0, "apply", obj) for obj in timeline.objects)
    yield from ((change.at_s, change.method, change.object) for change in timeline.changes if change.method != "patch")


def _topmost(ref: Ref, owners: Mapping[Ref, Ref]) -> Ref:
    for _ in range(len(owners)):
        above = owners.get(ref)
        if above is None:
            break
        ref = above
    return ref


def _controller(obj: Mapping[str, Any]) -> Ref | None:
    meta = obj["metadata"]
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller"):
            namespace = "" if owner["kind"] == "Node" else meta.get("namespace") or ""
            return Ref(owner["apiVersion"], owner["kind"], namespace, owner["name"])
    return None


def _status_run(pod: Mapping[str, Any], start_s: float) -> Run | None:
    """From the first container's start to the last one's end, once all have ended."""
    status = pod.get("status") or {}
    mains = status.get("containerStatuses") or ()
    started: list[float] = []
    ended: list[float] = []
    for container in (*(status.get("initContainerStatuses") or ()), *mains):
        state = container.get("state") or {}
        for word in ("running", "terminated"):
            started.extend(_seconds(state.get(word), "startedAt"))
    for container in mains:
        ended.extend(_seconds((container.get("state") or {}).get("terminated"), "finishedAt"))
    if not started:
        return None
    is_over = len(ended) == len(pod.get("spec", {}).get("containers") or ())
    return Run(max(0.0, min(started) - start_s), max(0.0, max(ended) - start_s) if is_over else None)


def _seconds(state: Mapping[str, Any] | None, field: str) -> Iterable[float]:
    try:
        return [parse_time((state or {})[field]).timestamp()]
    except (KeyError, TypeError, TimeFormatError):
        return []


def _run_time_s(runs: Iterable[Run | None]) -> float | None:
    times_s = [run.end_s - run.start_s for run in runs if run is not None and run.end_s is not None]
    return median_low(times_s) if times_s else None


def _is_asked_for(obj: Mapping[str, Any]) -> bool:
    ref = ref_of(obj)
    if obj["kind"] in _MADE_BY_COMPONENTS or _controller(obj) is not None:
        return False
    if ref.kind == "PersistentVolume" and _PROVISIONED_BY in (obj["metadata"].get("annotations") or {}):
        return False
    if ref.kind == "ServiceAccount" and ref.name == "default":
        return False
    if ref.kind == "ConfigMap" and ref.name == "kube-root-ca.crt":
        return False
    if "rbac.authorization.k8s.io/" in ref.api_version and ref.name.startswith("system:"):
        return False
    return (ref.kind, ref.namespace, ref.name) not in _OF_EVERY_CLUSTER


def _bare(obj: JsonObject) -> JsonObject:
    """An object as a user would write it; a node keeps what it has to offer, since nothing else tells it."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in _SERVER_FIELDS}
    annotations = meta.get("annotations")
    if annotations is not None:
        kept = {key: value for key, value in annotations.items() if key not in _SERVER_ANNOTATIONS}
        meta.pop("annotations")
        if kept:
            meta["annotations"] = kept
    bare = {key: value for key, value in obj.items() if key != "status"}
    bare["metadata"] = meta
    status = obj.get("status") or {}
    if obj["kind"] == "Node" and status:
        bare["status"] = {key: status[key] for key in ("capacity", "allocatable") if key in status}
    if obj["kind"] == "Pod":
        bare["spec"] = {key: value for key, value in obj.get("spec", {}).items() if key != "nodeName"}
    if obj["kind"] == "Job":
        bare = _bare_job(bare)
    if obj["kind"] in _BINDINGS and _BOUND_BY_CONTROLLER in (annotations or {}):
        # Who is bound to whom was decided in the other cluster, and by uids that are gone.
        bare["spec"] = {key: value for key, value in obj["spec"].items() if key != _BINDINGS[obj["kind"]]}
    return bare


def _bare_job(job: JsonObject) -> JsonObject:
    """Without the selector that the server made of a uid that is gone."""
    spec = job.get("spec") or {}
    if spec.get("manualSelector") or "selector" not in spec:
        return job
    spec = {key: value for key, value in spec.items() if key != "selector"}
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels")
    if labels:
        kept = {key: value for key, value in labels.items() if not key.endswith(("controller-uid", "job-name"))}
        spec["template"] = {**template, "metadata": {**template["metadata"], "labels": kept}}
    return {**job, "spec": spec}


def _named(ref: Ref) -> JsonObject:
    meta: JsonObject = {"name": ref.name}
    if ref.namespace:
        meta["namespace"] = ref.namespace
    return {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": meta}
