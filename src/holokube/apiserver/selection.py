"""Which objects a list or watch is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from holokube.apiserver.kinds.base import Kind
from holokube.apiserver.options import ListOptions
from holokube.apiserver.resources import Served
from holokube.kube.errors import BadRequest
from holokube.kube.jsonpath import simple_path
from holokube.kube.types import JsonObject

Matcher = Callable[[JsonObject], bool]


@dataclass(frozen=True, slots=True)
class Selection:
    """A compiled selector. ``matches`` is None when everything is selected, so that callers can skip the test."""

    prefix: str
    matches: Matcher | None
    name: str = ""
    """Set when the selector can only match this one name."""


def select(served: Served, kind: Kind, namespace: str, options: ListOptions) -> Selection:
    """Compile the selectors of a request; unsupported fields are a BadRequest."""
    prefix = f"{namespace}/" if served.namespaced and namespace else ""
    tests: list[Matcher] = []
    labels = options.label_selector
    if labels is not None and not labels.is_empty:
        label_match = labels.matches

        def by_labels(obj: JsonObject) -> bool:
            return label_match(obj["metadata"].get("labels") or {})

        tests.append(by_labels)
    exact_name = ""
    fields = options.field_selector
    if fields is not None and not fields.is_empty:
        check_fields(served, kind, [requirement.field for requirement in fields.requirements])
        exact_name = fields.required_value("metadata.name") or ""
        paths = {path.removeprefix("."): simple_path(path) for path in served.info.selectable_fields}

        def by_fields(obj: JsonObject) -> bool:
            meta = obj["metadata"]
            values = dict(kind.field_values(obj))
            values["metadata.name"] = meta["name"]
            values["metadata.namespace"] = meta.get("namespace", "")
            for label, path in paths.items():
                values[label] = path(obj)
            return fields.matches(lambda field: values.get(field, ""))

        tests.append(by_fields)
    if not tests:
        return Selection(prefix, None, exact_name)
    if len(tests) == 1:
        return Selection(prefix, tests[0], exact_name)
    return Selection(prefix, lambda obj: all(test(obj) for test in tests), exact_name)


def check_fields(served: Served, kind: Kind, labels: list[str]) -> None:
    """Refuse field selectors that upstream does not know for this resource."""
    known = set(kind.field_labels) or {"metadata.name", "metadata.namespace"}
    known.update(path.removeprefix(".") for path in served.info.selectable_fields)
    for label in labels:
        if label in known:
            continue
        if served.type.custom or kind.field_labels:
            raise BadRequest(f"field label not supported: {label}")
        raise BadRequest(f'"{label}" is not a known field selector: only "metadata.name", "metadata.namespace"')
