"""The Stage resource (``kwok.x-k8s.io/v1alpha1``) as it is written; a field that is unknown is an error."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

API_GROUP = "kwok.x-k8s.io"
API_VERSION = "kwok.x-k8s.io/v1alpha1"


class _Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    pass


class ResourceRef(_Struct, frozen=True):
    kind: str
    api_group: str = msgspec.field(default="v1", name="apiGroup")


class Jq(_Struct, frozen=True):
    expression: str


class Cel(_Struct, frozen=True):
    expression: str


class ExpressionFrom(_Struct, frozen=True):
    """A value taken from the object; ``expressionFrom`` is the older way to write ``jq``."""

    expression_from: str = ""
    jq: Jq | None = None
    cel: Cel | None = None


Operator = Literal["In", "NotIn", "Exists", "DoesNotExist"]


class SelectorJq(_Struct, frozen=True):
    key: str
    operator: Operator
    values: list[str] = []


class MatchExpression(_Struct, frozen=True):
    """``jq`` or ``cel``, or the older flat form of ``jq``."""

    key: str = ""
    operator: Operator | None = None
    values: list[str] = []
    jq: SelectorJq | None = None
    cel: Cel | None = None


class Selector(_Struct, frozen=True):
    match_labels: dict[str, str] = {}
    match_annotations: dict[str, str] = {}
    match_expressions: list[MatchExpression] = []


class Delay(_Struct, frozen=True):
    duration_milliseconds: int | None = None
    duration_from: ExpressionFrom | None = None
    jitter_duration_milliseconds: int | None = None
    jitter_duration_from: ExpressionFrom | None = None


class Event(_Struct, frozen=True):
    type: str = ""
    reason: str = ""
    message: str = ""


class Finalizer(_Struct, frozen=True):
    value: str


class Finalizers(_Struct, frozen=True):
    add: list[Finalizer] = []
    remove: list[Finalizer] = []
    empty: bool = False


class Impersonation(_Struct, frozen=True):
    username: str


class Patch(_Struct, frozen=True):
    template: str
    subresource: str = ""
    root: str = ""
    type: Literal["json", "merge", "strategic"] | None = None
    impersonation: Impersonation | None = None


class Apply(_Struct, frozen=True):
    """Another object to be written; read so that the message can say that it is not supported."""

    template: str = ""
    subresource: str = ""
    type: str | None = None
    impersonation: Impersonation | None = None


class Next(_Struct, frozen=True):
    event: Event | None = None
    finalizers: Finalizers | None = None
    delete: bool = False
    patches: list[Patch] = []
    status_template: str = ""
    status_subresource: str | None = None
    status_patch_as: Impersonation | None = None


class StageStep(_Struct, frozen=True):
    patch: Patch | None = None
    event: Event | None = None
    finalizers: Finalizers | None = None
    delete: bool = False
    apply: Apply | None = None


class StageSpec(_Struct, frozen=True):
    resource_ref: ResourceRef
    selector: Selector | None = None
    weight: int = 0
    weight_from: ExpressionFrom | None = None
    delay: Delay | None = None
    next: Next | None = None
    steps: list[StageStep] = []
    immediate_next_stage: bool | None = None

    def all_steps(self) -> list[StageStep]:
        """``next`` written as steps, then the steps."""
        if self.next is None:
            return self.steps
        following = self.next
        made = [StageStep(event=following.event, finalizers=following.finalizers, delete=following.delete)]
        made += [StageStep(patch=patch) for patch in following.patches]
        if following.status_template:
            subresource = following.status_subresource
            patch = Patch(
                following.status_template,
                subresource="status" if subresource is None else subresource,
                root="status",
                impersonation=following.status_patch_as,
            )
            made.append(StageStep(patch=patch))
        return [*made, *self.steps]


class Metadata(msgspec.Struct, frozen=True):
    name: str


class StageFile(_Struct, frozen=True):
    """One document."""

    api_version: str
    kind: Literal["Stage"]
    metadata: Metadata
    spec: StageSpec
    status: Any = None
