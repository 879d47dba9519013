"""What ``kubectl get ... -o yaml`` prints, and ``kubectl apply -f`` takes: one moment of a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson

from holokube.apiserver.manifests import read_manifests
from holokube.kube.types import JsonObject
from holokube.kube.yaml_text import dump_document
from holokube.lab.formats.timeline import Run, Timeline, check_object, ref_of


def read_kubectl(path: Path) -> Timeline:
    """A dump, a snapshot or plain manifests: a timeline in which nothing changes."""
    manifests = read_manifests(str(path))
    objects = tuple(check_object(obj, manifests.where(index)) for index, obj in enumerate(manifests.objects))
    return Timeline(objects)


def write_kubectl(timeline: Timeline, at_s: float, *, as_json: bool) -> Iterator[str]:
    """The objects that are there at a time, as one ``List``."""
    items = [_without_version(obj) for obj in objects_at(timeline, at_s)]
    head: JsonObject = {"apiVersion": "v1", "kind": "List", "metadata": {}}
    if as_json:
        yield orjson.dumps({**head, "items": items}, option=orjson.OPT_INDENT_2).decode() + "\n"
        return
    yield dump_document(head)
    yield "items:\n" if items else "items: []\n"
    for item in items:
        yield dump_document([item])


def objects_at(timeline: Timeline, at_s: float) -> list[JsonObject]:
    """What is there at a time; pods that have run to their end are not."""
    over = {
        life.owner
        for life in timeline.lives
        if life.owner.kind == "Pod" and life.runs and _ended(life.runs[-1], at_s)
    }
    return [obj for obj in timeline.state_at(at_s) if ref_of(obj) not in over]


def _ended(run: Run | None, at_s: float) -> bool:
    return run is not None and run.end_s is not None and run.end_s <= at_s


def _without_version(obj: JsonObject) -> JsonObject:
    """As `kubectl` prints it, less what only the server it came from understands."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("resourceVersion", "managedFields")}
    return {**obj, "metadata": meta}
