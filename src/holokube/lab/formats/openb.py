"""Alibaba's GPU trace of 2023, "openb": headed CSV files of nodes and of pods.

::

    nodes  sn,cpu_milli,memory_mib,gpu,model
    pods   name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time

``gpu_milli`` is the share that is wanted of each of ``num_gpu`` cards, ``gpu_spec`` the models that will do. Kubernetes
counts whole devices only, so that GPUs become an extended resource of thousandths, summed over the cards of a node:
which card a share is taken from is not told apart.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from holokube.base.errors import UsageError
from holokube.hollow.behaviour import EXIT_CODE
from holokube.kube.types import JsonObject
from holokube.lab.formats.timeline import Change, PodLives, Run, Timeline, ref_of

NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS: Final = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
    "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip
GPU_MILLI: Final = "alibabacloud.com/gpu-milli"
GPU_MODEL: Final = "alibabacloud.com/gpu-card-model"
QOS: Final = "trace.holokube.dev/qos"
NAMESPACE: Final = "openb"
_PODS_PER_NODE: Final = "110"
_HINT: Final = "Give openb_node_list_*.csv and openb_pod_list_*.csv of Alibaba's clusterdata, cluster-trace-gpu-v2023."

_Row = tuple[int, Mapping[str, str]]


def read_openb(paths: Sequence[Path]) -> Timeline:
    """Any number of files of either sort, told apart by their headers."""
    nodes: list[JsonObject] = []
    pods: list[tuple[float, JsonObject, Change | None, PodLives]] = []
    seen: dict[tuple[str, str], str] = {}
    for path in paths:
        sort, rows = _read(path)
        for line, row in rows:
            place = _Place(path, line)
            name = row["sn" if sort == "nodes" else "name"]
            if not name:
                raise place.error("the name is empty")
            if (sort, name) in seen:
                raise place.error(f"{name} is there already, in {seen[sort, name]}")
            seen[sort, name] = str(place)
            if sort == "nodes":
                nodes.append(_node(name, row, place))
            else:
                pods.append(_pod(name, row, place))
    if not nodes and not pods:
        raise UsageError("the openb files have no rows", hint=_HINT)
    objects: list[JsonObject] = list(nodes)
    if pods:
        objects.insert(0, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    changes = [Change(at_s, "apply", pod) for at_s, pod, _, _ in pods]
    changes.extend(gone for _, _, gone, _ in pods if gone is not None)
    changes.sort(key=lambda change: change.at_s)
    lives = tuple(life for *_, life in pods if life.runs)
    ends = [run.end_s for life in lives for run in life.runs if run is not None and run.end_s is not None]
    duration_s = max([0.0, *ends, *(change.at_s for change in changes)])
    return Timeline(tuple(objects), tuple(changes), lives, None, duration_s)


class _Place:
    """A line of a file, for messages."""

    __slots__ = ("_line", "_path")

    def __init__(self, path: Path, line: int) -> None:
        self._path = path
        self._line = line

    def __str__(self) -> str:
        return f"{self._path}, line {self._line}"

    def error(self, what: str) -> UsageError:
        return UsageError(f"{self}: {what}", hint=_HINT)

    def number(self, row: Mapping[str, str], column: str) -> int:
        text = row[column].strip()
        try:
            value = int(float(text)) if text else 0
        except (ValueError, OverflowError):
            value = -1
        if value < 0:
            raise self.error(f"{column} is {text!r}, not a number from 0 on")
        return value


def _read(path: Path) -> tuple[Literal["nodes", "pods"], Iterator[_Row]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="Check the name of the file.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text: {error}", hint=_HINT) from error
    header = next(csv.reader(lines[:1]), [])
    for sort, columns in (("nodes", NODE_COLUMNS), ("pods", POD_COLUMNS)):
        if columns[0] not in header:
            continue
        missing = [column for column in columns if column not in header]
        if missing:
            raise UsageError(f"{path}: the header has no column {', '.join(missing)}", hint=_HINT)
        return ("nodes" if sort == "nodes" else "pods"), _rows(path, lines, len(header))
    raise UsageError(f"{path}: the header is neither that of nodes nor that of pods", hint=_HINT)


def _rows(path: Path, lines: Sequence[str], width: int) -> Iterator[_Row]:
    reader = csv.DictReader(lines, restkey="", restval=None)
    for row in reader:
        if any(value is None for value in row.values()) or "" in row:
            raise _Place(path, reader.line_num).error(f"the row has not {width} columns as the header has")
        yield reader.line_num, row


def _resources(cpu_milli: int, memory_mib: int, gpu_milli: int) -> dict[str, str]:
    found = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}
    if gpu_milli:
        found[GPU_MILLI] = str(gpu_milli)
    return found


def _node(name: str, row: Mapping[str, str], place: _Place) -> JsonObject:
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    if row["model"]:
        labels[GPU_MODEL] = row["model"]
    gpus = place.number(row, "gpu")
    capacity = _resources(place.number(row, "cpu_milli"), place.number(row, "memory_mib"), 1000 * gpus)
    capacity["pods"] = _PODS_PER_NODE
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "status": {"capacity": capacity, "allocatable": dict(capacity)},
    }  # fmt: skip


def _pod(name: str, row: Mapping[str, str], place: _Place) -> tuple[float, JsonObject, Change | None, PodLives]:
    """When a pod came, itself, when it was given up, and how long it ran."""
    created_s = float(place.number(row, "creation_time"))
    gpu_milli = place.number(row, "num_gpu") * place.number(row, "gpu_milli")
    requests = _resources(place.number(row, "cpu_milli"), place.number(row, "memory_mib"), gpu_milli)
    resources: JsonObject = {"requests": requests}
    if GPU_MILLI in requests:
        resources["limits"] = {GPU_MILLI: requests[GPU_MILLI]}
    meta: JsonObject = {"name": name, "namespace": NAMESPACE}
    if row["qos"]:
        meta["labels"] = {QOS: row["qos"]}
    if row["pod_phase"] == "Failed":
        meta["annotations"] = {EXIT_CODE: "1"}
    container = {"name": "main", "image": "openb", "resources": resources}
    spec: JsonObject = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    models = [model for model in row["gpu_spec"].split("|") if model]
    if models:
        term = {"matchExpressions": [{"key": GPU_MODEL, "operator": "In", "values": models}]}
        required = {"nodeSelectorTerms": [term]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    pod: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
    ref = ref_of(pod)
    deleted = row["deletion_time"].strip()
    end_s = float(place.number(row, "deletion_time")) if deleted else None
    if end_s is not None and end_s < created_s:
        raise place.error(f"deletion_time {deleted} is before creation_time {row['creation_time']}")
    if not row["scheduled_time"].strip():
        # It never ran, and its owner gave up on it.
        gone = None if end_s is None else Change(end_s, "delete", pod)
        return created_s, pod, gone, PodLives(ref, ())
    scheduled_s = float(place.number(row, "scheduled_time"))
    return created_s, pod, None, PodLives(ref, (Run(scheduled_s, end_s),))
