"""Where a plan departs from what the real Cluster Autoscaler did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

_EVICTION = "Normal ScaleDown deleting pod for node scale down"

Record = dict[str, Any]
Loop = dict[str, Any]


def controllers_of(scenario: Record) -> dict[str, str]:
    """Each pod of a scenario, namespace/name, and who controls it; itself if nobody does."""
    controllers: dict[str, str] = {}
    for pod in scenario.get("pods") or ():
        namespace, count = pod.get("namespace") or "default", pod.get("count") or 1
        for name in [f"{pod['name']}-{index}" for index in range(count)] if count > 1 else [pod["name"]]:
            owner = f"{pod['ownerKind']}/{pod['ownerName']}" if pod.get("ownerKind") else name
            controllers[f"{namespace}/{name}"] = f"{namespace}/{owner}"
    return controllers


def differences(record: Record, answer: Record) -> list[str]:
    """Every field of every loop in which an answer agrees with none of the recorded runs."""
    loops = answer["loops"]
    recorded = [run["loops"] for run in record["runs"]]
    if len(loops) != len(recorded[0]):
        return [f"{len(loops)} loops instead of {len(recorded[0])}"]
    controllers = controllers_of(record["scenario"])
    found: list[str] = []
    for number, loop in enumerate(loops):
        runs = [run[number] for run in recorded]
        is_chance = _chance_chose(runs)
        for field, read in _FIELDS.items():
            ours, theirs = read(loop, controllers), [read(run, controllers) for run in runs]
            if ours not in theirs:
                expected = " or ".join(dict.fromkeys(map(_text, theirs)))
                found.append(f"loop {number}: {field}: {_text(ours)} instead of {expected}")
        check = _chosen_deletions if is_chance else _same_deletions
        found += [f"loop {number}: {problem}" for problem in check(loop, runs)]
    return found


def _chance_chose(runs: list[Loop]) -> bool:
    """Whether chance decided which of the nodes went: the runs differ, or they took some of more nodes in turns."""
    if len({_deleted(run) for run in runs}) > 1:
        return True
    in_turns = {tuple(node["node"] for node in run["scaleDown"]["deleting"]) for run in runs}
    staying = {node["node"] for node in runs[0]["scaleDown"]["unremovable"]}
    left_over = set(runs[0].get("unneeded") or ()) - _deleted(runs[0]) - staying
    return len(in_turns) > 1 and bool(left_over)


def _same_deletions(loop: Loop, runs: list[Loop]) -> list[str]:
    ours, theirs = _deleted(loop), _deleted(runs[0])
    problems = [] if ours == theirs else [f"deleted: {_text(ours)} instead of {_text(theirs)}"]
    if loop.get("targets") not in [run.get("targets") for run in runs]:
        problems.append(f"targets: {loop.get('targets')} instead of {runs[0].get('targets')}")
    evictions, expected = _evictions(loop), {_evictions(run) for run in runs}
    if evictions not in expected:
        problems.append(f"evictions: {evictions} instead of {' or '.join(map(str, sorted(expected)))}")
    return problems


def _chosen_deletions(loop: Loop, runs: list[Loop]) -> list[str]:
    """Which of several nodes goes first is chance; how many go is not, nor that nobody needs them."""
    ours, theirs = _deleted(loop), [_deleted(run) for run in runs]
    problems = []
    if len(ours) not in {len(nodes) for nodes in theirs}:
        problems.append(f"deleted: {_text(ours)}, as many as in none of {' or '.join(map(_text, theirs))}")
    if not ours <= set(loop.get("unneeded") or ()):
        problems.append(f"deleted: {_text(ours - set(loop.get('unneeded') or ()))} which is not unneeded")
    if _evictions(loop) != len(loop.get("evicted") or ()):
        problems.append(f"evictions: {_evictions(loop)} were told of, {len(loop.get('evicted') or ())} happened")
    return problems


def _evictions(loop: Loop) -> int:
    return sum(event == _EVICTION for event in loop.get("events") or ())


def _deleted(loop: Loop) -> frozenset[str]:
    return frozenset(node["node"] for node in (loop.get("scaleDown") or {}).get("deleting") or ())


def _option(option: Loop | None, controllers: dict[str, str]) -> Any:
    if not option:
        return None
    pods = Counter(controllers[pod] for pod in option.get("pods") or ())
    return option["group"], option["nodeCount"], tuple(sorted(pods.items()))


def _options(loop: Loop, controllers: dict[str, str]) -> Any:
    return sorted(_option(option, controllers) for option in loop.get("options") or ())


def _pods(field: str) -> Callable[[Loop, dict[str, str]], Any]:
    def read(loop: Loop, controllers: dict[str, str]) -> Any:
        return sorted(Counter(controllers[pod] for pod in (loop.get("scaleUp") or {}).get(field) or ()).items())

    return read


def _remain(loop: Loop, controllers: dict[str, str]) -> Any:
    """Which pods nothing can be done for, and what each group has against them."""
    return sorted(
        (controllers[pod["pod"]], sorted(pod["rejected"].items()), sorted(pod["skipped"].items()))
        for pod in (loop.get("scaleUp") or {}).get("remainUnschedulable") or ()
    )


def _infos(loop: Loop, _: dict[str, str]) -> Any:
    infos = (loop.get("scaleUp") or {}).get("infos") or ()
    return sorted((info["group"], info["current"], info["new"], info["max"]) for info in infos)


def _unremovable(loop: Loop, _: dict[str, str]) -> Any:
    nodes = (loop.get("scaleDown") or {}).get("unremovable") or ()
    return sorted((node["node"], node["reason"], node.get("blockingReason") or "") for node in nodes)


def _events(loop: Loop, _: dict[str, str]) -> Any:
    """By reason; an event is ``Type Reason message``. Those of evictions go with the nodes that are deleted."""
    told = [event for event in loop.get("events") or () if event != _EVICTION]
    return sorted(Counter(" ".join(event.split(" ", 2)[:2]) for event in told).items())


_FIELDS: dict[str, Callable[[Loop, dict[str, str]], Any]] = {
    "best": lambda loop, controllers: _option(loop.get("best"), controllers),
    "options": _options,
    "scale-up result": lambda loop, _: (loop.get("scaleUp") or {}).get("result"),
    "scale-up infos": _infos,
    "triggered": _pods("triggered"),
    "await evaluation": _pods("awaitEvaluation"),
    "remain unschedulable": _remain,
    "unneeded": lambda loop, _: sorted(loop.get("unneeded") or ()),
    "scale-down result": lambda loop, _: (loop.get("scaleDown") or {}).get("result"),
    "unremovable": _unremovable,
    "events": _events,
}


def _text(value: Any) -> str:
    return str(sorted(value)) if isinstance(value, (set, frozenset)) else str(value)
