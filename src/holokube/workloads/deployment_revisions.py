"""The revisions of a Deployment: which ReplicaSet is the new one, how it is made, named and annotated."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from holokube.kube.types import JsonObject
from holokube.workloads.ownership import controller_reference
from holokube.workloads.pod_templates import POD_TEMPLATE_HASH, same_template, scaled_value, template_hash
from holokube.workloads.replica_set_decisions import replicas_of

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = frozenset({
    "kubectl.kubernetes.io/last-applied-configuration", REVISION, REVISION_HISTORY, DESIRED_REPLICAS,
    MAX_REPLICAS, "deprecated.deployment.rollback.to",
})  # fmt: skip
_HISTORY_CHARS_MAX = 2000
_NAME_CHARS_MAX = 253
_INT32_MAX = 2**31 - 1


def annotations_of(obj: JsonObject) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}


def by_creation(replica_set: JsonObject) -> tuple[str, str]:
    """Sort key: the oldest first. Times in the API's form sort as text."""
    meta = replica_set["metadata"]
    return meta.get("creationTimestamp") or "", meta["name"]


def revision_of(obj: JsonObject) -> int | None:
    """Its revision number; zero if it has none, None if it is not a number."""
    try:
        return int(annotations_of(obj).get(REVISION, "0"))
    except ValueError:
        return None


def split(
    deployment: JsonObject, replica_sets: Sequence[JsonObject]
) -> tuple[JsonObject | None, list[JsonObject]]:
    """The set with the present template, the oldest if there are several, and all others."""
    template = deployment["spec"]["template"]
    if len(replica_sets) == 1:
        only = replica_sets[0]
        return (only, []) if same_template(only["spec"]["template"], template) else (None, [only])
    new = None
    for candidate in sorted(replica_sets, key=by_creation):
        if same_template(candidate["spec"]["template"], template):
            new = candidate
            break
    return new, [rs for rs in replica_sets if rs is not new]


def next_revision(old: Iterable[JsonObject]) -> int:
    return max((revision_of(rs) or 0 for rs in old), default=0) + 1


def is_rolling(deployment: JsonObject) -> bool:
    return bool((deployment["spec"].get("strategy") or {}).get("type", "RollingUpdate") == "RollingUpdate")


def fenceposts(deployment: JsonObject) -> tuple[int, int]:
    """Surge and unavailability in pods. Both zero would never get anywhere, so then one may be missing."""
    return _fenceposts_for(deployment, replicas_of(deployment))


def least_available(deployment: JsonObject) -> int:
    """How many pods have to be available."""
    wanted = replicas_of(deployment)
    return wanted - _fenceposts_for(deployment, wanted)[1]


def _fenceposts_for(deployment: JsonObject, wanted: int) -> tuple[int, int]:
    strategy = deployment["spec"].get("strategy") or {}
    # As ``is_rolling`` has it, without a call.
    if strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return 0, 0
    rolling = strategy.get("rollingUpdate") or {}
    return _fenceposts(rolling.get("maxSurge"), rolling.get("maxUnavailable"), wanted)


@lru_cache(maxsize=16_384)
def _fenceposts(max_surge: int | str | None, max_unavailable: int | str | None, wanted: int) -> tuple[int, int]:
    surge = scaled_value(max_surge, wanted, round_up=True)
    unavailable = scaled_value(max_unavailable, wanted, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return surge, min(unavailable, wanted)


def new_annotations(deployment: JsonObject, replica_set: JsonObject, revision: int) -> dict[str, str]:
    """Annotations of the new set: the Deployment's own, and its revision.

    A set that had a lower revision is rolled back to: its former numbers are kept in the history.
    """
    annotations = dict(annotations_of(replica_set))
    annotations.update({k: v for k, v in annotations_of(deployment).items() if k not in _NOT_COPIED})
    before = annotations.get(REVISION)
    try:
        before_number = int(before or "0")
    except ValueError:
        return annotations
    if before_number >= revision:
        return annotations
    annotations[REVISION] = str(revision)
    if before is not None:
        history = [entry for entry in annotations.get(REVISION_HISTORY, "").split(",") if entry]
        while history and len(",".join([*history, before])) > _HISTORY_CHARS_MAX:
            del history[0]
        annotations[REVISION_HISTORY] = ",".join([*history, before])
    return annotations


def size_annotations(deployment: JsonObject) -> dict[str, str]:
    wanted = replicas_of(deployment)
    return {DESIRED_REPLICAS: str(wanted), MAX_REPLICAS: str(wanted + fenceposts(deployment)[0])}


def number_annotation(obj: JsonObject, name: str) -> int | None:
    """A non-negative number in an annotation; None if there is none."""
    text = annotations_of(obj).get(name, "")
    return int(text) if text.isdecimal() and text.isascii() and int(text) <= _INT32_MAX else None


def new_replica_set(deployment: JsonObject, revision: int, replicas: int) -> JsonObject:
    """The ReplicaSet of the present template. Its name follows from it, so that it cannot be made twice."""
    meta, spec = deployment["metadata"], deployment["spec"]
    digest = template_hash(spec["template"], (deployment.get("status") or {}).get("collisionCount"))
    source = spec["template"].get("metadata") or {}
    labels = {**(source.get("labels") or {}), POD_TEMPLATE_HASH: digest}
    selector = dict(spec["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), POD_TEMPLATE_HASH: digest}
    body: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name'][: _NAME_CHARS_MAX - 1 - len(digest)]}-{digest}",
            "namespace": meta["namespace"],
            "labels": labels,
            "ownerReferences": [controller_reference(deployment)],
        },
        "spec": {
            "replicas": replicas,
            "selector": selector,
            "template": {**spec["template"], "metadata": {**source, "labels": labels}},
        },
    }
    if spec.get("minReadySeconds"):
        body["spec"]["minReadySeconds"] = spec["minReadySeconds"]
    body["metadata"]["annotations"] = {
        **new_annotations(deployment, body, revision), **size_annotations(deployment),
    }  # fmt: skip
    return body
