"""Custom resources for cases: a definition that is established, and schemas for it."""

from __future__ import annotations

from typing import Any

from tests.conformance.model import get, post
from tests.conformance.objects import crd

NAME = "customresourcedefinitions/widgets.{u}.example.com"


def defined(body: dict[str, Any], versions: tuple[str, ...] = ("v1",)) -> tuple[Any, ...]:
    """The definition, established, and its endpoints answering."""
    return (
        post("customresourcedefinitions", body),
        get(NAME, poll=True, has={"status.conditions.*.status": ["True", "True"]}),
        *(get(f"/apis/{{u}}.example.com/{version}/widgets", poll=True) for version in versions),
    )


def schema(**properties: Any) -> dict[str, Any]:
    """A schema whose spec has these properties."""
    return {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": properties},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        },
    }


OPEN = defined(crd())
STATUS: dict[str, Any] = {"subresources": {"status": {}}}
INT, TEXT = {"type": "integer"}, {"type": "string"}
