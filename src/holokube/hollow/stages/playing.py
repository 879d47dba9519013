"""What a Stage does to an object, as commands; and when, as a small state per object.

A waiting stage is planned anew whenever the object changes, its delay beginning again, as in kwok. A stage that
still matches after it was played is played again; but not more than once a second, which spares the server a stage
that forgot to end itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from holokube.hollow.draws import Draw
from holokube.hollow.pod_state import NEVER_S, EmitEvent, PatchStatus
from holokube.hollow.stages.errors import TemplateError
from holokube.hollow.stages.stage import CompiledPatch, Decision, Stage, decide, finalizer_operations
from holokube.kube.timeformat import format_time
from holokube.kube.types import JsonObject

REPEAT_MIN_S = 1.0
FAILED_REASON = "StageFailed"

Functions = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class DeleteObject:
    """Remove the object: no grace, and only if it is still this one."""

    uid: str


StageCommand = PatchStatus | DeleteObject | EmitEvent


@dataclass(slots=True)
class StageRun:
    """How far an object has come among the stages."""

    seen: tuple[str, int] = ("", -1)
    """Resource version, and generation of the stages, for which the plan was made."""
    plan: Decision | None = None
    last: Stage | None = None
    last_s: float = 0.0


def general_functions(now_s: float, start_s: float, version: str) -> dict[str, Callable[..., Any]]:
    """The functions that Stages of every kind have."""
    return {
        "Now": lambda: format_time(now_s),
        "StartTime": lambda: format_time(start_s),
        "Version": lambda: version,
    }


def advance(
    run: StageRun,
    stages: list[Stage],
    generation: int,
    obj: Mapping[str, Any],
    now_s: float,
    draw: Draw,
    functions: Functions,
) -> tuple[list[StageCommand], float]:
    """What is due now, and when to look again (Unix seconds)."""
    seen = (str(obj["metadata"].get("resourceVersion", "")), generation)
    if run.seen != seen:
        run.seen, run.plan = seen, decide(stages, obj, now_s, draw)
        if run.plan is not None and run.plan.stage is run.last:
            run.plan.due_s = max(run.plan.due_s, run.last_s + REPEAT_MIN_S)
    if run.plan is None:
        return [], NEVER_S
    if run.plan.due_s > now_s:
        return [], run.plan.due_s
    stage = run.plan.stage
    run.plan, run.last, run.last_s = None, stage, now_s
    try:
        return play(stage, obj, functions), NEVER_S
    except TemplateError as error:
        # Tried again when the object changes: rendering the same once more gives the same.
        return [EmitEvent("Warning", FAILED_REASON, f"stage {stage.name} of {stage.source}: {error}")], NEVER_S


def failed(run: StageRun) -> None:
    """What was decided last could not be written: at the next look it is due at once, if the object is the same."""
    if run.last is not None:
        run.plan = Decision(run.last, 0.0)


def play(stage: Stage, obj: Mapping[str, Any], functions: Functions) -> list[StageCommand]:
    """The commands of a stage: all of it is rendered from the object as it is now."""
    commands: list[StageCommand] = []
    deleted = False
    for step in stage.steps:
        if step.event is not None:
            kind: Literal["Normal", "Warning"] = "Warning" if step.event.type == "Warning" else "Normal"
            commands.append(EmitEvent(kind, step.event.reason, step.event.message))
        if deleted:
            continue
        if step.finalizers is not None:
            operations = finalizer_operations(obj["metadata"].get("finalizers") or [], step.finalizers)
            if operations:
                commands.append(PatchStatus([_uid_test(obj), *operations], "json", ""))
        if step.delete:
            deleted = True
            commands.append(DeleteObject(str(obj["metadata"].get("uid", ""))))
        elif step.patch is not None:
            commands += _patch(step.patch, obj, functions)
    return commands


def _uid_test(obj: Mapping[str, Any]) -> JsonObject:
    return {"op": "test", "path": "/metadata/uid", "value": obj["metadata"].get("uid", "")}


def _patch(patch: CompiledPatch, obj: Mapping[str, Any], functions: Functions) -> list[StageCommand]:
    rendered = patch.template.render_yaml(obj, functions)
    if patch.type == "json":
        if not isinstance(rendered, list) or not all(isinstance(item, dict) for item in rendered):
            raise TemplateError("a patch of type json must render a list of operations")
        root = f"/{patch.root}" if patch.root else ""
        operations = [{**item, "path": f"{root}{item.get('path', '')}"} for item in rendered]
        return [PatchStatus([_uid_test(obj), *operations], "json", patch.subresource, patch.username)]
    if rendered is None:
        return []
    if not isinstance(rendered, dict):
        raise TemplateError("a patch must render an object")
    body: JsonObject = {patch.root: rendered} if patch.root else dict(rendered)
    body["metadata"] = {**(body.get("metadata") or {}), "uid": obj["metadata"].get("uid", "")}
    return [PatchStatus(body, patch.type, patch.subresource, patch.username)]
