"""SimKube's traces, version 2: ``.sktrace``, one msgpack map.

::

    version         2
    config          trackedObjects: {"apps/v1.Deployment": {podSpecTemplatePaths, trackLifecycle, skipOwned}}
    events          [{ts: unix seconds, applied_objs: [...], deleted_objs: [...]}]
    index           {"apps/v1.Deployment": {"ns/name": hash of the object}}
    pod_lifecycles  {("apps/v1.Deployment", "ns/name"): {hash of the pod: [{"Finished": [start, end]}
                                                        | {"Running": start} | "Empty"]}}

Its driver applies what it finds with server-side apply, into namespaces of its own, and knows only objects that live
in a namespace; pods of workloads are made by the workloads' controllers. So a trace is written of the workload alone.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import orjson

from holokube.base.errors import UsageError
from holokube.kube.types import JsonObject
from holokube.lab.formats.timeline import Change, PodLives, Ref, Run, Timeline, check_object, ref_of
from holokube.lab.formats.workload import workload_of

VERSION: Final = 2
_FIELDS: Final = ("version", "config", "events", "index", "pod_lifecycles")
_HINT: Final = "Give a trace as `skctl export` writes it; traces of SimKube before 2.0 must be exported again."
# Kinds of which SimKube knows by itself where the pod template is. It refuses a tracked kind of which it does not.
_TRACKED: Final = {
    ("apps/v1", "DaemonSet"), ("apps/v1", "Deployment"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"),
    ("batch/v1", "CronJob"), ("batch/v1", "Job"), ("v1", "Pod"),
}  # fmt: skip


def read_simkube(path: Path) -> Timeline:
    """A trace; UsageError says what is wrong with it."""
    trace = _decoded(path)
    for field in _FIELDS:
        if field not in trace:
            raise UsageError(f"{path}: the trace has no {field!r}", hint=_HINT)
    if trace["version"] != VERSION:
        raise UsageError(f"{path}: trace version {trace['version']!r} is not {VERSION}", hint=_HINT)
    events = trace["events"]
    if not isinstance(events, list) or not events:
        raise UsageError(f"{path}: the trace has no events", hint=_HINT)
    times = [_time(event, f"{path}: events[{number}]") for number, event in enumerate(events)]
    start = times[0]
    changes: list[Change] = []
    for number, event in enumerate(events):
        if times[number] < times[number - 1 if number else 0]:
            raise UsageError(f"{path}: events[{number}].ts goes back in time", hint="Events must be in order of time.")
        changes.extend(_changes(event, float(times[number] - start), f"{path}: events[{number}]"))
    lives = tuple(_lives(trace["pod_lifecycles"], start, str(path)))
    return Timeline((), tuple(changes), lives, float(start), float(times[-1] - start))


def _decoded(path: Path) -> Mapping[str, Any]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="Check the name of the file.") from error
    try:
        trace = msgspec.msgpack.decode(raw)
    except (msgspec.DecodeError, TypeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not msgpack: {error}", hint=_HINT) from error
    if not isinstance(trace, dict):
        raise UsageError(f"{path} holds a {type(trace).__name__}, not a trace", hint=_HINT)
    return trace


def _time(event: Any, where: str) -> int:
    ts = event.get("ts") if isinstance(event, dict) else None
    if isinstance(ts, bool) or not isinstance(ts, int):
        raise UsageError(f"{where}: ts is {ts!r}, not a number of seconds since 1970", hint=_HINT)
    return ts


def _changes(event: Mapping[str, Any], at_s: float, where: str) -> Iterable[Change]:
    for field in ("applied_objs", "deleted_objs"):
        listed = event.get(field)
        if not isinstance(listed, list):
            raise UsageError(f"{where}.{field} is not a list", hint=_HINT)
        for number, obj in enumerate(listed):
            checked = check_object(obj, f"{where}.{field}[{number}]")
            yield Change(at_s, "apply" if field == "applied_objs" else "delete", checked)


def _lives(found: Any, start: int, path: str) -> Iterable[PodLives]:
    if not isinstance(found, dict):
        raise UsageError(f"{path}: pod_lifecycles is not a map", hint=_HINT)
    for key, by_hash in found.items():
        where = f"{path}: pod_lifecycles[{key!r}]"
        if not (isinstance(key, tuple) and len(key) == 2 and all(isinstance(part, str) for part in key)):
            raise UsageError(f"{where}: the key is not a pair of a kind and a name", hint=_HINT)
        if not isinstance(by_hash, dict):
            raise UsageError(f"{where} is not a map", hint=_HINT)
        owner = _owner(key[0], key[1], where)
        for pod_hash, lifecycles in by_hash.items():
            if not isinstance(pod_hash, int) or not isinstance(lifecycles, list):
                raise UsageError(f"{where}: {pod_hash!r} is not a hash with a list", hint=_HINT)
            runs = tuple(_run(lifecycle, start, where) for lifecycle in lifecycles)
            yield PodLives(owner, runs, pod_hash)


def _owner(gvk: str, name: str, where: str) -> Ref:
    api_version, dot, kind = gvk.lstrip("/").rpartition(".")
    # A group has dots of its own; the kind is behind the one after the version.
    if not dot or not api_version or not kind or api_version.count("/") > 1:
        raise UsageError(f"{where}: {gvk!r} is not of the form group/version.Kind", hint=_HINT)
    namespace, slash, base = name.rpartition("/")
    return Ref(api_version, kind, namespace if slash else "", base)


def _run(lifecycle: Any, start: int, where: str) -> Run | None:
    match lifecycle:
        case "Empty":
            return None
        case {"Running": int(began)}:
            return Run(float(began - start), None)
        case {"Finished": [int(began), int(ended)]}:
            return Run(float(began - start), float(ended - start))
    raise UsageError(f"{where}: {lifecycle!r} is none of Empty, Running and Finished", hint=_HINT)


def write_simkube(timeline: Timeline, *, default_start_s: float = 0.0) -> tuple[bytes, Counter[str]]:
    """The workload of a timeline as a trace, and how many objects of which kinds it has no place for."""
    workload = workload_of(timeline, nodes=False)
    start = math.floor(default_start_s if timeline.start_s is None else timeline.start_s)
    homeless: set[Ref] = set()
    events = _events(workload, start, homeless)
    left_out = Counter(ref.kind for ref in homeless)
    written = {ref: obj for event in events for obj in event["applied_objs"] for ref in (ref_of(obj),)}
    lives = [life for life in workload.lives if life.owner in written]
    index: dict[str, dict[str, int]] = {}
    for ref, obj in written.items():
        index.setdefault(_gvk(ref), {})[f"{ref.namespace}/{ref.name}"] = _hash(obj)
    lifecycles: dict[tuple[str, str], dict[int, list[Any]]] = {}
    for life in lives:
        key = (_gvk(life.owner), f"{life.owner.namespace}/{life.owner.name}")
        lifecycles.setdefault(key, {})[life.template] = [_lifecycle(run, start) for run in life.runs]
    trace = {
        "version": VERSION,
        "config": {"trackedObjects": _tracked(written, {_gvk(life.owner) for life in lives})},
        "events": events,
        "index": index,
        "pod_lifecycles": lifecycles,
    }
    return msgspec.msgpack.encode(trace), left_out


def _events(workload: Timeline, start: int, homeless: set[Ref]) -> list[JsonObject]:
    """Events of whole seconds, and into ``homeless`` what lives in no namespace.

    The driver applies before it deletes, so an apply after a delete begins a new one.
    """
    events: list[JsonObject] = [{"ts": start, "applied_objs": [], "deleted_objs": []}]
    at_start = (Change(0.0, "apply", obj) for obj in workload.objects)
    for change in (*at_start, *workload.changes):
        if not change.object["metadata"].get("namespace"):
            if change.method == "apply":
                homeless.add(ref_of(change.object))
            continue
        if change.method == "patch":
            raise UsageError(
                f"{ref_of(change.object)} is patched at {change.at_s:g} s, and nothing says what it was before",
                hint="SimKube's traces hold whole objects; take a recording that begins with what it changes.",
            )
        ts = start + math.floor(change.at_s)
        field = "applied_objs" if change.method == "apply" else "deleted_objs"
        last = events[-1]
        if last["ts"] != ts or (field == "applied_objs" and last["deleted_objs"]):
            last = {"ts": ts, "applied_objs": [], "deleted_objs": []}
            events.append(last)
        last[field].append(change.object)
    end = start + math.ceil(workload.duration_s)
    if events[-1]["ts"] < end:
        # The driver stops at the last event, so one that is empty keeps it going until the end.
        events.append({"ts": end, "applied_objs": [], "deleted_objs": []})
    return events


def _tracked(written: Iterable[Ref], with_lives: set[str]) -> dict[str, JsonObject]:
    tracked: dict[str, JsonObject] = {}
    for ref in written:
        if (ref.api_version, ref.kind) not in _TRACKED:
            continue
        config: JsonObject = {"trackLifecycle": True} if _gvk(ref) in with_lives else {}
        if ref.kind == "Pod":
            config["skipOwned"] = True
        tracked[_gvk(ref)] = config
    return tracked


def _gvk(ref: Ref) -> str:
    return f"{ref.api_version}.{ref.kind}"


def _lifecycle(run: Run | None, start: int) -> Any:
    if run is None:
        return "Empty"
    began = start + math.floor(run.start_s)
    return {"Running": began} if run.end_s is None else {"Finished": [began, start + math.floor(run.end_s)]}


def _hash(obj: JsonObject) -> int:
    """SimKube's own is made by Rust's hasher; its driver asks only whether there is one."""
    text = orjson.dumps(obj, option=orjson.OPT_SORT_KEYS)
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
