"""Why things are as they are: the story of a pod, a node or a group, from what a run left behind."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from holokube.base.errors import UsageError
from holokube.kube.timeformat import parse_time
from holokube.lab.result_files import Evidence
from holokube.lab.results import HEARD_AGAIN, SILENCED, Decision, NodeSpan, PodSpan

Kind = Literal["node", "pod", "group"]
KINDS: Final[tuple[Kind, ...]] = ("node", "pod", "group")

_BEFORE_NODE_S: Final = 900.0
"""How long before a node came the decision to make it may have been."""
_ELSEWHERE_MAX: Final = 12
"""Of decisions that are about others, and only perhaps about this, so many are told."""
_NAMES_MAX: Final = 5
_ABOUT_CLUSTER: Final = ("scale-up", "group", "turn", "fault", "machine", "claim")


_PLAIN: Final = {
    "stays: NodeGroupMinSizeReached": "its group must not become smaller",
    "stays: CurrentlyBeingDeleted": "it is on its way out already",
    "stays: NotAutoscaled": "it belongs to no group of the autoscaler's",
    "stays: ScaleDownDisabledAnnotation": "an annotation says that it must not be removed",
    "unneeded": "its pods would fit elsewhere; it goes if that stays so for long enough",
}
"""What upstream's words for a node mean, where the journal has no reasons besides."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened, or was decided, at a time."""

    at_s: float
    who: str
    """Empty for what simply happened."""
    what: str
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Story:
    """What happened to one thing in one run, in the order of time."""

    kind: Kind
    name: str
    run: str
    """The policy."""
    start: str
    summary: tuple[str, ...]
    """What it comes down to; with a time, how it was then."""
    moments: tuple[Moment, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "kind": self.kind, "name": self.name, "policy": self.run, "start": self.start,
            "summary": list(self.summary),
            "moments": [
                {"at_s": one.at_s, "component": one.who, "what": one.what, "why": list(one.why)} for one in self.moments
            ],
        }  # fmt: skip


def parse_subject(text: str) -> tuple[Kind, str]:
    """``node/NAME``, ``pod/NAMESPACE/NAME`` or ``group/NAME``; UsageError if it is none."""
    kind, slash, name = text.partition("/")
    singular = {"nodes": "node", "no": "node", "pods": "pod", "po": "pod", "groups": "group", "nodepool": "group"}
    chosen = next((known for known in KINDS if known == singular.get(kind, kind)), None)
    if chosen is None or not slash or not name or name.count("/") > 1:
        raise UsageError(
            f"{text!r} does not say what is to be explained",
            hint="Write node/NAME, pod/NAMESPACE/NAME or group/NAME.",
        )
    return chosen, name


def explain(runs: Sequence[Evidence], kind: Kind, name: str, at_s: float | None = None) -> list[Story]:
    """The story in each run that knows of it; UsageError with names that are near if none does."""
    end_s = max((run.duration_s for run in runs), default=0.0)
    if at_s is not None and at_s > end_s:
        raise UsageError(f"{span(at_s)} is after the end of the run", hint=f"It ended after {span(end_s)}.")
    found: list[Story] = []
    for run in runs:
        full = _full_name(run, kind, name)
        if full is not None:
            found.append(_TELLERS[kind](run, full, at_s))
    if not found:
        raise _unknown(runs, kind, name)
    return found


def _full_name(run: Evidence, kind: Kind, name: str) -> str | None:
    """The name as the run has it; a pod's namespace may be left out where that is clear."""
    names = _names(run, kind)
    if name in names:
        return name
    if kind == "pod" and "/" not in name:
        matching = [one for one in names if one.endswith(f"/{name}")]
        if len(matching) == 1:
            return matching[0]
    return None


def _names(run: Evidence, kind: Kind) -> dict[str, None]:
    """In the order of time."""
    if kind == "node":
        machines = (_machine(one) for one in run.decisions if one.kind == "machine")
        return dict.fromkeys([*(node.name for node in run.nodes), *_subjects(run, "node"), *machines])
    if kind == "pod":
        return dict.fromkeys([*(pod.name for pod in run.pods), *_subjects(run, "pod")])
    groups = [node.group for node in run.nodes if node.group]
    told = [one.facts["group"] for one in run.decisions if isinstance(one.facts.get("group"), str)]
    return dict.fromkeys([*groups, *_subjects(run, "group"), *told])


def _machine(decision: Decision) -> str:
    """The node that a machine would have become: providers call it ``kwok:NAME``."""
    return decision.subject.rpartition(":")[2]


def _subjects(run: Evidence, kind: str) -> Iterator[str]:
    return (one.subject for one in run.decisions if one.kind == kind)


def _unknown(runs: Sequence[Evidence], kind: Kind, name: str) -> UsageError:
    names = list(dict.fromkeys(known for run in runs for known in _names(run, kind)))
    base = name.rpartition("/")[2]
    same = [known for known in names if known.endswith(f"/{name}")]
    if same:
        hint = f"Name one: {_listed([f'{kind}/{one}' for one in same[:_NAMES_MAX]], 'or')}."
        return UsageError(f"{len(same)} namespaces have a {kind} {name!r}", hint=hint)
    inside = [known for known in names if base in known]
    bases = {known: known.rpartition("/")[2] for known in names}
    near_bases = difflib.get_close_matches(base, dict.fromkeys(bases.values()), n=_NAMES_MAX)
    near = [known for near_base in near_bases for known in names if bases[known] == near_base]
    suggestions = list(dict.fromkeys([*inside[:_NAMES_MAX], *near]))[:_NAMES_MAX]
    if suggestions:
        hint = f"Did you mean {_listed([f'{kind}/{one}' for one in suggestions], 'or')}?"
    elif names:
        hint = f"There are {len(names)}, such as {kind}/{names[0]}."
    else:
        hint = f"There was no {kind} at all."
    return UsageError(f"the run knows no {kind} {name!r}", hint=hint)


# Pods


def _pod_story(run: Evidence, name: str, at_s: float | None) -> Story:
    spans = [pod for pod in run.pods if pod.name == name]
    decided = [_moment(run, one) for one in run.decisions if one.kind == "pod" and one.subject == name]
    lives = [list(_pod_life(run, pod)) for pod in spans]
    # At one time, that it is there comes first, then what was decided, then what came of it.
    moments = [life[0] for life in lives] + decided
    for pod, life in zip(spans, lives, strict=True):
        moments += [*_while_pending(run, pod, at_s), *_at_its_end(run, pod), *life[1:]]
    summary = [_pod_then(run, spans, at_s)] if at_s is not None else [_pod_summary(run, pod) for pod in spans]
    return _story(run, "pod", name, summary, moments, at_s)


def _pod_life(run: Evidence, pod: PodSpan) -> Iterator[Moment]:
    asked = f" and requested {_amounts(pod.cpu_milli, pod.memory_bytes)}" if pod.cpu_milli or pod.memory_bytes else ""
    yield Moment(pod.created_s, "", f"was created by {pod.workload}{asked}" if pod.workload else f"was created{asked}")
    if pod.bound_s is not None:
        node = _node_of(run, pod)
        where = f"was bound to node {node.name}" if node else "was bound"
        why: tuple[str, ...] = ()
        if node is not None and node.created_s > pod.created_s:
            why = (f"the node came at {clock(node.created_s)}{': ' + node.why_added if node.why_added else ''}",)
        yield Moment(pod.bound_s, "", f"{where}, after {span(pod.bound_s - pod.created_s)}", why)
    if pod.ready_s is not None:
        yield Moment(pod.ready_s, "", "became ready")
    if pod.ended_s is not None:
        word = {"done": "ran to its end", "failed": "failed", "evicted": "was evicted"}.get(pod.end, "was deleted")
        yield Moment(pod.ended_s, "", word)


def _while_pending(run: Evidence, pod: PodSpan, at_s: float | None) -> list[Moment]:
    """What autoscalers did about pending pods meanwhile: all that names this one, and the last of the rest."""
    until_s = _pending_until_s(run, pod)
    if at_s is not None:
        until_s = min(until_s, at_s)
    if until_s <= pod.created_s:
        return []
    meanwhile = [
        one for one in run.decisions if pod.created_s <= one.at_s <= until_s and one.kind in _ABOUT_CLUSTER
    ]
    node = _node_of(run, pod)
    named = [one for one in meanwhile if _names_pod(one, pod.name)]
    others = [one for one in meanwhile if one not in named and (node is None or _concerns(one, node))]
    # Of many, the last ones brought its node, or are why it still has none.
    left_out, told = others[:-_ELSEWHERE_MAX], others[-_ELSEWHERE_MAX:]
    # What becomes of a claim tells its name only; that it came to nothing is why the pod went on waiting.
    claims = {one.subject for one in (*named, *told) if one.kind == "claim"}
    fates = [one for one in meanwhile if one.kind == "claim" and one.subject in claims]
    moments = [_moment(run, one, about=True) for one in (*named, *told, *fates)]
    if left_out:
        what = f"{_count(len(left_out), 'earlier decision')} about pending pods, not told here"
        moments.insert(0, Moment(left_out[-1].at_s, "", what))
    return moments


def _names_pod(decision: Decision, name: str) -> bool:
    # Some tell which pods, others only how many.
    pods = decision.facts.get("pods")
    return isinstance(pods, (list, tuple)) and name in pods


def _concerns(decision: Decision, node: NodeSpan) -> bool:
    """Whether a decision may have to do with how a node came."""
    if decision.kind in ("scale-up", "turn", "fault", "machine"):
        return True
    return bool(node.group) and node.group in (decision.subject, decision.facts.get("group"))


def _pending_until_s(run: Evidence, pod: PodSpan) -> float:
    if pod.bound_s is not None:
        return pod.bound_s
    return run.duration_s if pod.ended_s is None else pod.ended_s


def _at_its_end(run: Evidence, pod: PodSpan) -> Iterator[Moment]:
    node = _node_of(run, pod)
    if pod.end != "evicted" or node is None or pod.ended_s is None:
        return
    removals = [
        one
        for one in run.decisions
        if one.kind == "node" and one.subject == node.name and (pod.bound_s or 0.0) <= one.at_s <= pod.ended_s
    ]
    # The decision to remove its node is why it had to go; a node that is on its way out stays for other reasons.
    beside = ("unneeded", HEARD_AGAIN)
    causes = [one for one in removals if one.decision not in beside and not one.decision.startswith("stays")]
    # A node without its kubelet is given up when its pods have been sent away already.
    causes = [one for one in causes if not _spares(one, pod.name)] or causes
    for one in causes[-1:]:
        yield Moment(one.at_s, one.component, f"its node {node.name}: {one.decision}", one.reasons)


def _spares(removal: Decision, name: str) -> bool:
    """Whether a node was removed that this pod was no reason to drain."""
    evicted = removal.facts.get("evicted")
    return isinstance(evicted, (list, tuple)) and name not in evicted


def _pod_summary(run: Evidence, pod: PodSpan) -> str:
    if pod.bound_s is None:
        return f"It was pending for {span(_pending_until_s(run, pod) - pod.created_s)} and never got a node."
    node = _node_of(run, pod)
    where = f" on node {node.name}" if node else ""
    end = "" if pod.ended_s is None else f" until {clock(pod.ended_s)}"
    return f"It was pending for {span(pod.bound_s - pod.created_s)}, then{where} from {clock(pod.bound_s)}{end}."


def _pod_then(run: Evidence, spans: Sequence[PodSpan], at_s: float) -> str:
    then = f"At {clock(at_s)}"
    alive = [pod for pod in spans if pod.created_s <= at_s and (pod.ended_s is None or at_s < pod.ended_s)]
    if not alive:
        return f"{then} it was not there."
    pod = alive[-1]
    if pod.bound_s is None or at_s < pod.bound_s:
        return f"{then} it was pending, for {span(at_s - pod.created_s)} so far."
    node = _node_of(run, pod)
    state = "ready" if pod.ready_s is not None and pod.ready_s <= at_s else "not ready yet"
    if node is None:
        return f"{then} it was {state}."
    if _is_silent(run, node, at_s):
        return f"{then} it was on node {node.name}, whose kubelet was silent."
    return f"{then} it was {state} on node {node.name}."


def _node_of(run: Evidence, pod: PodSpan) -> NodeSpan | None:
    return None if pod.node is None else run.nodes[pod.node]


# Nodes


def _node_story(run: Evidence, name: str, at_s: float | None) -> Story:
    places = [place for place, node in enumerate(run.nodes) if node.name == name]
    decided = [
        _moment(run, one)
        for one in run.decisions
        if (one.kind == "node" and one.subject == name) or (one.kind == "machine" and _machine(one) == name)
    ]
    lives = [list(_node_life(run.nodes[place])) for place in places]
    moments = [life[0] for life in lives] + decided
    summary: list[str] = []
    for place, life in zip(places, lives, strict=True):
        node = run.nodes[place]
        pods = [pod for pod in run.pods if pod.node == place]
        moments += [*_how_it_came(run, node), *life[1:]]
        summary.append(_node_summary(run, node, pods) if at_s is None else _node_then(run, node, pods, at_s))
    if not places:
        summary.append("It never became a node.")
    return _story(run, "node", name, summary, moments, at_s)


def _node_life(node: NodeSpan) -> Iterator[Moment]:
    traits = [part for part in (node.instance_type, node.capacity_type, node.zone) if part]
    sort = f" ({', '.join(traits)})" if traits else ""
    group = f" to group {node.group}" if node.group else ""
    came = f"was added{group}{sort}" if node.created_s > 0 or node.why_added else f"was there from the start{sort}"
    yield Moment(node.created_s, "", came, (node.why_added,) if node.why_added else ())
    if node.ready_s is not None and node.ready_s > node.created_s:
        yield Moment(node.ready_s, "", f"became ready, after {span(node.ready_s - node.created_s)}")
    if node.removed_s is not None:
        yield Moment(node.removed_s, "", "was removed", (node.why_removed,) if node.why_removed else ())


def _how_it_came(run: Evidence, node: NodeSpan) -> list[Moment]:
    """The last decisions to have such a node."""
    if not node.group or node.created_s <= 0:
        return []
    before = [one for one in run.decisions if node.created_s - _BEFORE_NODE_S <= one.at_s <= node.created_s]
    # A group grows by any node; a claim is for one, which Karpenter's providers name after it.
    makers = [
        one
        for one in before
        if (one.kind == "scale-up" and node.group in (one.subject, one.facts.get("group")))
        or (one.kind == "claim" and one.subject in node.name)
    ]
    return [_moment(run, one, about=True) for one in makers[-1:]]


def _node_summary(run: Evidence, node: NodeSpan, pods: Sequence[PodSpan]) -> str:
    until_s = run.duration_s if node.removed_s is None else node.removed_s
    lived_s = until_s - node.created_s
    cost = f", which cost ${node.price_usd_per_hour * lived_s / 3600:,.2f}" if node.price_usd_per_hour else ""
    end = "still there at the end" if node.removed_s is None else f"removed at {clock(node.removed_s)}"
    return f"It was there for {span(lived_s)}{cost}, had {_count(len(pods), 'pod')}, and was {end}."


def _node_then(run: Evidence, node: NodeSpan, pods: Sequence[PodSpan], at_s: float) -> str:
    then = f"At {clock(at_s)}"
    if at_s < node.created_s or (node.removed_s is not None and at_s >= node.removed_s):
        return f"{then} it was not there."
    here = [pod for pod in pods if (pod.bound_s or 0.0) <= at_s and (pod.ended_s is None or at_s < pod.ended_s)]
    state = "ready" if node.ready_s is not None and node.ready_s <= at_s else "not ready yet"
    if _is_silent(run, node, at_s):
        state = "silent"
    first = [pod.name for pod in here[:_NAMES_MAX]]
    more = [f"{len(here) - _NAMES_MAX} more"] if len(here) > _NAMES_MAX else []
    names = _listed([*first, *more], "and") if here else ""
    cpu = sum(pod.cpu_milli for pod in here)
    filled = f", {cpu / node.cpu_milli:.0%} of its CPU requested" if node.cpu_milli else ""
    return f"{then} it was {state} with {_count(len(here), 'pod')}{filled}{f': {names}' if names else ''}."


# Groups


def _group_story(run: Evidence, name: str, at_s: float | None) -> Story:
    moments = [
        _moment(run, one, about=one.subject != name)
        for one in run.decisions
        if (one.kind in ("group", "scale-up") and one.subject == name) or one.facts.get("group") == name
        or (one.kind == "scale-up" and name in (one.facts.get("options") or ()))
        or (one.kind == "machine" and _machine(one).rpartition("-")[0] == name)
    ]  # fmt: skip
    nodes = [node for node in run.nodes if node.group == name]
    for node in nodes:
        why_added = (node.why_added,) if node.why_added else ()
        if node.created_s > 0:
            moments.append(Moment(node.created_s, "", f"node {node.name} was added", why_added))
        if node.removed_s is not None:
            why = (node.why_removed,) if node.why_removed else ()
            moments.append(Moment(node.removed_s, "", f"node {node.name} was removed", why))
    if at_s is None:
        gone = sum(node.removed_s is not None for node in nodes)
        summary = f"It had {_count(len(nodes), 'node')} in all; {gone or 'none'} of them went."
    else:
        here = sum(_is_there(node, at_s) for node in nodes)
        summary = f"At {clock(at_s)} it had {_count(here, 'node')}."
    return _story(run, "group", name, [summary], moments, at_s)


def _is_silent(run: Evidence, node: NodeSpan, at_s: float) -> bool:
    """Whether a fault has taken its kubelet away, and not given it back yet."""
    told = [
        one.decision
        for one in run.decisions
        if one.kind == "node" and one.subject == node.name and node.created_s <= one.at_s <= at_s
        and one.decision in (SILENCED, HEARD_AGAIN)
    ]  # fmt: skip
    return bool(told) and told[-1] == SILENCED


def _is_there(node: NodeSpan, at_s: float) -> bool:
    return node.created_s <= at_s and (node.removed_s is None or at_s < node.removed_s)


_TELLERS: Final = {"pod": _pod_story, "node": _node_story, "group": _group_story}


def _story(
    run: Evidence, kind: Kind, name: str, summary: Iterable[str], moments: Iterable[Moment], at_s: float | None
) -> Story:
    """In order of time and none twice; up to a time, if there is one."""
    ordered = sorted(dict.fromkeys(moments), key=lambda one: one.at_s)
    if at_s is not None:
        ordered = [one for one in ordered if one.at_s <= at_s]
    return Story(kind, name, run.label, run.start, tuple(summary), tuple(ordered))


def _moment(run: Evidence, decision: Decision, *, about: bool = False) -> Moment:
    what = f"{decision.kind} {decision.subject}: {decision.decision}" if about else decision.decision
    start_s = parse_time(run.start).timestamp() if run.start else 0.0
    plain = _PLAIN.get(decision.decision) if decision.kind == "node" and not decision.reasons else None
    reasons = decision.reasons if plain is None else (plain,)
    return Moment(decision.at_s, decision.component, what, (*reasons, *_facts(decision, start_s)))


def _facts(decision: Decision, start_s: float) -> Iterator[str]:
    """Facts that are short enough to be told."""
    for name, value in decision.facts.items():
        if name == "group" or isinstance(value, bool):
            continue
        if name == "since" and isinstance(value, (int, float)):
            # The journal has it in Unix time; a run that does not say when it began cannot tell.
            if start_s:
                yield f"since {clock(value - start_s)}"
        elif name == "expanders" and isinstance(value, (list, tuple)):
            yield from _weighed(value)
        elif isinstance(value, (str, int, float)) and value != "":
            yield f"{name}: {value:g}" if isinstance(value, float) else f"{name}: {value}"
        elif isinstance(value, Mapping) and value and all(isinstance(part, (str, int)) for part in value.values()):
            yield f"{name}: {_some([f'{key} {part}' for key, part in value.items()])}"
        elif isinstance(value, (list, tuple)) and value and all(isinstance(part, str) for part in value):
            # The journal names the first pods of a claim only; how many there are is told among the reasons.
            is_cut = decision.kind == "claim" and name == "pods" and len(value) > _NAMES_MAX
            yield f"{name}: {', '.join(value[:_NAMES_MAX])} and others" if is_cut else f"{name}: {_some(value)}"


def _weighed(steps: Sequence[Any]) -> Iterator[str]:
    """What the expanders of the Cluster Autoscaler thought of each option, one after the other."""
    for step in steps:
        if isinstance(step, Mapping):
            yield f"{step.get('expander')} chose {_some(step.get('kept') or ['nothing'])}"
            for group, text in (step.get("scores") or {}).items():
                yield f"  {group}: {text}"


def _some(parts: Sequence[Any]) -> str:
    more = f" and {len(parts) - _NAMES_MAX} more" if len(parts) > _NAMES_MAX else ""
    return f"{', '.join(map(str, parts[:_NAMES_MAX]))}{more}"


def _listed(names: Sequence[str], word: str) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _amounts(cpu_milli: int, memory_bytes: int) -> str:
    return f"{cpu_milli / 1000:g} CPU and {memory_bytes / 2**20:,.0f} MiB"


def span(seconds: float) -> str:
    """How long, for people: ``2m05s``, ``1h02m``."""
    if seconds < 60:
        return f"{seconds:.3g}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m{rest:02}s"
    return f"{minutes // 60}h{minutes % 60:02}m"


def clock(seconds: float) -> str:
    """When, counted from the beginning: ``05:30:12``."""
    whole = int(seconds)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
