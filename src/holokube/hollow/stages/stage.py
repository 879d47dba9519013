"""A Stage made ready: expressions compiled, templates parsed, every mistake found before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from holokube.hollow.draws import Draw
from holokube.hollow.stages import spec as written
from holokube.hollow.stages.errors import QueryError, StageError, TemplateError
from holokube.hollow.stages.jq import SUPPORTED as JQ_SUPPORTED
from holokube.hollow.stages.jq import Query, compile_query
from holokube.hollow.stages.template import Template
from holokube.kube.timeformat import parse_duration, parse_time
from holokube.kube.types import JsonObject

Kind = Literal["Node", "Pod"]
KINDS: tuple[Kind, ...] = ("Node", "Pod")

GENERAL_FUNCTIONS = ("Now", "StartTime", "Version")
NODE_FUNCTIONS = ("NodeIP", "NodeName", "NodePort")
POD_FUNCTIONS = ("NodeIP", "PodIP", "NodeIPWith", "NodeIPsWith", "PodIPWith", "PodIPsWith")

_KIND_FUNCTIONS: dict[Kind, tuple[str, ...]] = {
    "Node": GENERAL_FUNCTIONS + NODE_FUNCTIONS,
    "Pod": GENERAL_FUNCTIONS + POD_FUNCTIONS,
}


@dataclass(frozen=True, slots=True)
class _Requirement:
    query: Query
    operator: written.Operator
    values: frozenset[str]

    def matches(self, obj: Mapping[str, Any]) -> bool:
        found = self.query.run(obj)
        if self.operator == "Exists":
            return bool(found)
        if self.operator == "DoesNotExist":
            return not found
        listed = any(_as_text(value) in self.values for value in found)
        return listed == (self.operator == "In")


def _as_text(value: Any) -> str | None:
    """Values are compared as text; lists and objects equal nothing."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else None


@dataclass(frozen=True, slots=True)
class _Amount:
    """A number that is fixed, or taken from the object."""

    fixed: float | None
    query: Query | None

    def seconds(self, obj: Mapping[str, Any], now_s: float) -> float | None:
        """As a duration; None if there is none, also when the object says so with an empty text."""
        found = self.query.run(obj) if self.query is not None else []
        if found and isinstance(found[0], str):
            if not found[0]:
                return None
            for read in (lambda text: parse_time(text).timestamp() - now_s, parse_duration):
                try:
                    return float(read(found[0]))
                except ValueError:
                    continue
        return None if self.fixed is None else self.fixed / 1000.0

    def weight(self, obj: Mapping[str, Any]) -> int | None:
        """As a weight; None if the object names one that is none."""
        found = self.query.run(obj) if self.query is not None else []
        if found and isinstance(found[0], str):
            try:
                return int(found[0], 0)
            except ValueError:
                return None
        if found and isinstance(found[0], int | float):
            return int(found[0])
        return int(self.fixed or 0)


@dataclass(frozen=True, slots=True)
class CompiledPatch:
    """A patch to be rendered."""

    template: Template
    root: str
    type: Literal["json", "merge", "strategic"]
    subresource: str
    username: str


@dataclass(frozen=True, slots=True)
class CompiledStep:
    """What is done, in the order of the fields."""

    event: written.Event | None
    finalizers: written.Finalizers | None
    delete: bool
    patch: CompiledPatch | None


@dataclass(frozen=True, slots=True)
class Stage:
    """One Stage, ready to be matched and played."""

    name: str
    kind: Kind
    source: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    requirements: tuple[_Requirement, ...]
    amount: _Amount
    duration: _Amount | None
    jitter: _Amount | None
    steps: tuple[CompiledStep, ...]

    def matches(self, obj: Mapping[str, Any]) -> bool:
        """Whether the selector picks the object."""
        meta = obj["metadata"]
        labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
        return (
            all(labels.get(key) == value for key, value in self.labels.items())
            and all(annotations.get(key) == value for key, value in self.annotations.items())
            and all(requirement.matches(obj) for requirement in self.requirements)
        )

    def weight(self, obj: Mapping[str, Any]) -> int | None:
        return self.amount.weight(obj)

    def delay_s(self, obj: Mapping[str, Any], now_s: float, draw: Callable[[], float]) -> float:
        """How long to wait; a jitter is the upper end of a range, and one below the delay replaces it."""
        low = self.duration.seconds(obj, now_s) if self.duration is not None else None
        if low is None:
            return 0.0
        high = self.jitter.seconds(obj, now_s) if self.jitter is not None else None
        if high is None:
            return max(0.0, low)
        if high <= low:
            return max(0.0, high)
        return max(0.0, low + (high - low) * draw())


def choose(stages: list[Stage], obj: Mapping[str, Any], draw: Callable[[], float]) -> Stage | None:
    """The stage of those that match: by weight, evenly among those with none."""
    matching = [stage for stage in stages if stage.matches(obj)]
    if len(matching) <= 1:
        return matching[0] if matching else None
    weights = [stage.weight(obj) for stage in matching]
    valid = [stage for stage, weight in zip(matching, weights, strict=True) if weight is not None] or matching
    total = sum(weight for weight in weights if weight is not None)
    if total <= 0:
        return valid[min(int(draw() * len(valid)), len(valid) - 1)]
    offset = int(draw() * total)
    for stage, weight in zip(matching, weights, strict=True):
        if weight is not None and weight > 0:
            offset -= weight
            if offset < 0:
                return stage
    return matching[-1]


@dataclass(slots=True)
class Decision:
    """What comes next for an object, and when (Unix seconds)."""

    stage: Stage
    due_s: float


def decide(stages: list[Stage], obj: Mapping[str, Any], now_s: float, draw: Draw) -> Decision | None:
    """The next stage of an object; None when no stage wants it. The same state draws the same."""
    meta = obj["metadata"]
    key = f"{meta.get('uid', '')}/{meta.get('resourceVersion', '')}"
    stage = choose(stages, obj, lambda: draw(f"{key}/stage"))
    if stage is None:
        return None
    return Decision(stage, now_s + stage.delay_s(obj, now_s, lambda: draw(f"{key}/{stage.name}/delay")))


def compile_stage(document: written.StageFile, source: str) -> Stage | None:
    """Makes a stage ready; None for one without a selector, which kwok ignores as well."""
    compiler = _Compiler(document, source)
    return compiler.compile() if document.spec.selector is not None else None


class _Compiler:
    def __init__(self, document: written.StageFile, source: str) -> None:
        self._spec = document.spec
        self._name = document.metadata.name
        self._source = source
        self._kind = self._known_kind()

    def _error(self, where: str, what: str, supported: str) -> StageError:
        return StageError(f"{self._source}: stage {self._name}: {where}: {what}", hint=f"Supported: {supported}.")

    def _known_kind(self) -> Kind:
        ref = self._spec.resource_ref
        for kind in KINDS:
            if ref.kind == kind and ref.api_group in ("v1", ""):
                return kind
        raise self._error(
            "resourceRef", f"{ref.api_group} {ref.kind} is not a kind that hollow nodes have", "Node and Pod of v1"
        )

    def compile(self) -> Stage:
        spec = self._spec
        assert spec.selector is not None
        delay = spec.delay or written.Delay()
        fixed_ms = delay.duration_milliseconds
        jitter: _Amount | None = None
        if delay.jitter_duration_milliseconds is not None or delay.jitter_duration_from is not None:
            jitter = self._amount(
                delay.jitter_duration_milliseconds, delay.jitter_duration_from, "delay.jitterDurationFrom"
            )
        duration = self._amount(fixed_ms or 0, delay.duration_from, "delay.durationFrom") if spec.delay else None
        return Stage(
            self._name,
            self._kind,
            self._source,
            spec.selector.match_labels,
            spec.selector.match_annotations,
            tuple(
                self._requirement(number, expression)
                for number, expression in enumerate(spec.selector.match_expressions)
            ),
            self._amount(spec.weight, spec.weight_from, "weightFrom"),
            duration,
            jitter,
            tuple(self._step(number, step) for number, step in enumerate(spec.all_steps())),
        )

    def _requirement(self, number: int, expression: written.MatchExpression) -> _Requirement:
        where = f"selector.matchExpressions[{number}]"
        if expression.cel is not None:
            raise self._error(where, "cel is not supported", f"jq with {JQ_SUPPORTED}")
        jq = expression.jq
        if jq is None:
            if not expression.key or expression.operator is None:
                raise self._error(where, "key and operator are missing", "key, operator and values, or jq with these")
            jq = written.SelectorJq(expression.key, expression.operator, expression.values)
        if (jq.operator in ("In", "NotIn")) != bool(jq.values):
            what = "has no values" if not jq.values else "takes no values"
            raise self._error(where, f"the operator {jq.operator} {what}", "values with In and NotIn only")
        return _Requirement(self._query(jq.key, where), jq.operator, frozenset(jq.values))

    def _query(self, text: str, where: str) -> Query:
        try:
            return compile_query(text)
        except QueryError as error:
            raise self._error(where, str(error), JQ_SUPPORTED) from error

    def _amount(self, fixed: int | None, source: written.ExpressionFrom | None, where: str) -> _Amount:
        if source is None:
            return _Amount(fixed, None)
        if source.cel is not None:
            raise self._error(where, "cel is not supported", f"jq with {JQ_SUPPORTED}")
        text = source.jq.expression if source.jq is not None else source.expression_from
        if not text:
            raise self._error(where, "there is no expression", "expressionFrom, or jq.expression")
        return _Amount(fixed, self._query(text, where))

    def _step(self, number: int, step: written.StageStep) -> CompiledStep:
        if step.apply is not None:
            raise self._error(f"steps[{number}]", "apply is not supported", "event, finalizers, delete and patch")
        if step.event is not None and step.event.type not in ("Normal", "Warning", ""):
            raise self._error(f"steps[{number}].event", f"type {step.event.type!r}", "Normal and Warning")
        patch = self._patch(number, step.patch) if step.patch is not None else None
        return CompiledStep(step.event, step.finalizers, step.delete, patch)

    def _patch(self, number: int, patch: written.Patch) -> CompiledPatch:
        try:
            template = Template(patch.template, functions=_KIND_FUNCTIONS[self._kind])
        except TemplateError as error:
            supported = error.supported or (
                "pipelines, variables, if, else, with, range, break, continue, end and comments"
            )
            where = "statusTemplate" if self._spec.next and self._spec.next.status_template else f"steps[{number}]"
            raise self._error(where, str(error), supported) from error
        username = patch.impersonation.username if patch.impersonation is not None else ""
        return CompiledPatch(template, patch.root, patch.type or "strategic", patch.subresource, username)


def finalizer_operations(current: list[str], wanted: written.Finalizers) -> list[JsonObject]:
    """The JSON patch that adds and removes finalizers; empty when there is nothing to do."""
    removed = {item.value for item in wanted.remove}
    kept = [] if wanted.empty else [value for value in current if value not in removed]
    added = [item.value for item in wanted.add if item.value not in kept]
    if kept + added == current:
        return []
    if not kept and not added:
        return [{"op": "remove", "path": "/metadata/finalizers"}]
    return [{"op": "add", "path": "/metadata/finalizers", "value": kept + added}]
