"""Admission reviews for tests, and what their answers do to the pod."""

from __future__ import annotations

import base64
import json
from typing import Any

from holokube.kube.patch.json_patch import apply_json_patch

JsonObject = dict[str, Any]


def review(obj: JsonObject | None, *, operation: str = "CREATE", dry_run: bool = False, **request: Any) -> JsonObject:
    kind = (obj or {}).get("kind", "Pod")
    group = "apps" if kind == "DaemonSet" else ""
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-7",
            "kind": {"group": group, "version": "v1", "kind": kind},
            "resource": {"group": group, "version": "v1", "resource": kind.lower() + "s"},
            "namespace": "default",
            "operation": operation,
            "object": obj,
            "dryRun": dry_run,
            **request,
        },
    }


def body_of(*arguments: Any, **more: Any) -> bytes:
    return json.dumps(review(*arguments, **more)).encode()


def operations(response: JsonObject) -> list[JsonObject]:
    if "patch" not in response:
        return []
    assert response["patchType"] == "JSONPatch"
    found: list[JsonObject] = json.loads(base64.b64decode(response["patch"]))
    return found


def patched(obj: JsonObject, response: JsonObject) -> JsonObject:
    """The object as the API server would make it."""
    result: JsonObject = apply_json_patch(obj, operations(response))
    return result
