"""One admission review and its answer, without any input or output.

A pod is never blocked by trouble of ours: unless told to deny, whatever cannot be sized is admitted as it is, with a
warning. DaemonSets are looked at as well, for a warning only: people apply DaemonSets, and would never see the warnings
about pods, which go to the controller that makes them.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import orjson

from holokube.base.errors import HolokubeError
from holokube.kube import quantity
from holokube.kube.sizing import Sizing, SizingProblem, check, is_enabled, node_name_of, size
from holokube.kube.types import JsonObject

API_VERSION: Final = "admission.k8s.io/v1"
_EMPTY: Final[Mapping[str, Any]] = {}

OnError = Literal["allow", "deny"]
Outcome = Literal["sized", "unchanged", "ignored", "failed", "denied"]


class MalformedReview(HolokubeError):
    """What was sent is no AdmissionReview that we know."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer, and what it means."""

    response: JsonObject
    outcome: Outcome
    problem: SizingProblem | None = None

    @property
    def body(self) -> bytes:
        """The AdmissionReview to send back."""
        return orjson.dumps({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": self.response})


def parse_review(body: bytes) -> JsonObject:
    """The request in the body of a call; :class:`MalformedReview` says what is wrong with it."""
    hint = "Send an AdmissionReview as a Kubernetes API server does."
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise MalformedReview(f"the body is no JSON: {error}", hint=hint) from None
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        raise MalformedReview("the body is no AdmissionReview", hint=hint)
    if review.get("apiVersion") != API_VERSION:
        raise MalformedReview(
            f"the AdmissionReview is of version {review.get('apiVersion')!r}, not {API_VERSION}",
            hint='List "v1" alone in the admissionReviewVersions of the webhook.',
        )
    request = review.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str) or not request["uid"]:
        raise MalformedReview("the AdmissionReview has no request with a uid", hint=hint)
    obj = request.get("object")
    if obj is not None and not isinstance(obj, dict):
        raise MalformedReview("the object of the request is none", hint=hint)
    return request


def is_about_a_pod(request: Mapping[str, Any]) -> bool:
    """Whether it asks about a new pod that opts in."""
    return (
        (request.get("kind") or _EMPTY).get("kind") == "Pod"
        and request.get("operation") == "CREATE"
        and not request.get("subResource")
        and is_enabled(request.get("object") or _EMPTY)
    )


def judge(request: Mapping[str, Any], node: Mapping[str, Any] | None, on_error: OnError = "allow") -> Verdict:
    """Answer a request; ``node`` is the one that its pod is meant for, None if there is no such node."""
    uid = request["uid"]
    if (request.get("kind") or _EMPTY).get("kind") == "DaemonSet":
        return Verdict(_allowed(uid, tuple(_template_warnings(request.get("object") or _EMPTY))), "ignored")
    if not is_about_a_pod(request):
        return Verdict(_allowed(uid, ()), "ignored")
    pod = request["object"]
    try:
        sizing = _size(pod, node)
    except SizingProblem as problem:
        if on_error == "deny":
            status = {"code": 403, "reason": "Forbidden", "message": problem.text}
            return Verdict({"uid": uid, "allowed": False, "status": status}, "denied", problem)
        return Verdict(_allowed(uid, (f"pod not sized: {problem.text}",)), "failed", problem)
    response = _allowed(uid, sizing.notes)
    operations = list(patch_of(pod, sizing))
    if not operations:
        return Verdict(response, "unchanged")
    response["patchType"] = "JSONPatch"
    response["patch"] = base64.b64encode(orjson.dumps(operations)).decode()
    return Verdict(response, "sized")


def _size(pod: Mapping[str, Any], node: Mapping[str, Any] | None) -> Sizing:
    if node is None:
        raise unknown_node(node_name_of(pod))
    return size(pod, node)


def unknown_node(name: str) -> SizingProblem:
    """The problem of a pod that is meant for no node, or for none that we know."""
    if not name:
        return SizingProblem(
            "UnknownNode",
            "the pod does not say on which node it will run, so that it has no size",
            hint="use node-specific sizing for DaemonSets, or take the label enabled away",
        )
    return SizingProblem(
        "UnknownNode", f'node "{name[:63]}" is not known', hint="check the name, and that the node is registered"
    )


def _template_warnings(daemon_set: Mapping[str, Any]) -> Iterator[str]:
    template = (daemon_set.get("spec") or _EMPTY).get("template") or _EMPTY
    if is_enabled(template):
        try:
            yield from check(template).notes
        except SizingProblem as problem:
            yield f"pods will not be sized: {problem.text}"


def _allowed(uid: str, warnings: tuple[str, ...]) -> JsonObject:
    response: JsonObject = {"uid": uid, "allowed": True}
    if warnings:
        response["warnings"] = list(warnings)
    return response


def patch_of(pod: Mapping[str, Any], sizing: Sizing) -> Iterator[JsonObject]:
    """The JSON patch that gives a pod its size: as little as possible, nothing if it has it already."""
    spec, metadata = pod["spec"], pod.get("metadata") or _EMPTY
    for sized in sizing.containers:
        written = spec[sized.list_field][sized.index].get("resources")
        yield from _resource_patch(f"/spec/{sized.list_field}/{sized.index}/resources", written, sized.resources)
    if sizing.pod_resources is not None:
        yield from _resource_patch("/spec/resources", spec.get("resources"), sizing.pod_resources)
    if sizing.annotations:
        yield from _map_patch("/metadata/annotations", metadata.get("annotations"), sizing.annotations)


def _resource_patch(path: str, written: Mapping[str, Any] | None, wanted: JsonObject) -> Iterator[JsonObject]:
    if written is None:
        if wanted:
            yield {"op": "add", "path": path, "value": wanted}
        return
    for field in ("requests", "limits"):
        old = written.get(field)
        new = {
            name: text
            for name, text in (wanted.get(field) or _EMPTY).items()
            if not old or name not in old or quantity.parse(old[name]) != quantity.parse(text)
        }
        if new:
            yield from _map_patch(f"{path}/{field}", old, new)


def _map_patch(path: str, written: Mapping[str, str] | None, wanted: Mapping[str, str]) -> Iterator[JsonObject]:
    """``add`` what is missing, ``replace`` what differs; a patch that replaces what is not there would fail."""
    if written is None:
        yield {"op": "add", "path": path, "value": dict(wanted)}
        return
    for name, text in wanted.items():
        if written.get(name) != text:
            escaped = name.replace("~", "~0").replace("/", "~1")
            yield {"op": "replace" if name in written else "add", "path": f"{path}/{escaped}", "value": text}
