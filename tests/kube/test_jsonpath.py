from __future__ import annotations

from typing import Any

import pytest

from holokube.kube.jsonpath import JsonPathError, compile_path, simple_path

OBJECT: dict[str, Any] = {
    "metadata": {"labels": {"app.kubernetes.io/name": "z"}},
    "spec": {"a.b": 1, "on": True, "none": None, "m": {"x": 5}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "False"}]},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.m.x", [5]),
        ("{.spec.m.x}", [5]),
        ("spec.m.x", [5]),
        ("$.spec.m.x", [5]),
        (".status.conditions[0].type", ["Ready"]),
        (".status.conditions[-1].type", ["Old"]),
        (".status.conditions[7].type", []),
        (".status.conditions[*].status", ["True", "False"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Old')].status", ["False"]),
        ('.status.conditions[?(@.type!="Ready")].type', ["Old"]),
        (r".metadata.labels.app\.kubernetes\.io/name", ["z"]),
        ('.metadata.labels["app.kubernetes.io/name"]', ["z"]),
        (".metadata.labels['app.kubernetes.io/name']", ["z"]),
        (r".spec.a\.b", [1]),
        (".spec.missing.x", []),
        (".spec.m.x.deeper", []),
    ],
)
def test_a_path_finds_its_values(path: str, expected: list[Any]) -> None:
    assert compile_path(path)(OBJECT) == expected


@pytest.mark.parametrize(("path", "text"), [(".spec.on", "true"), (".spec.m.x", "5"), (".spec.none", ""), (".no", "")])
def test_the_first_value_is_shown_as_kubernetes_prints_it(path: str, text: str) -> None:
    assert simple_path(path)(OBJECT) == text


@pytest.mark.parametrize("path", [".spec[", "..", ".spec.", ".a[?(@.b)]", ".a b"])
def test_what_is_no_simple_path_is_refused_with_the_place(path: str) -> None:
    with pytest.raises(JsonPathError, match="cannot read JSON path"):
        compile_path(path)
