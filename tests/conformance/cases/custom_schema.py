"""Schemas of custom resources: validation, pruning, defaults, rules, list types."""

from __future__ import annotations

from typing import Any

from tests.conformance.causes import DUPLICATE, INVALID, REQUIRED, TOO_LONG, UNSUPPORTED
from tests.conformance.model import (
    Cases,
    apply,
    get,
    json_patch,
    merge,
    post,
)
from tests.conformance.objects import WIDGETS as W
from tests.conformance.objects import crd, widget
from tests.conformance.widgets import INT, NAME, TEXT, defined, schema

cases = Cases()

RULES = schema(
    count={"type": "integer", "minimum": 1, "maximum": 10, "multipleOf": 2},
    name={"type": "string", "minLength": 2, "maxLength": 4},
    code={"type": "string", "pattern": "^[a-z]+$"},
    kind={"type": "string", "enum": ["A", "B"]},
    many={"type": "array", "items": INT, "minItems": 1, "maxItems": 2},
    flag={"type": "boolean"},
    size={"type": "number"},
    when={"type": "string", "format": "date-time"},
    amount={"x-kubernetes-int-or-string": True},
    table={"type": "object", "additionalProperties": INT, "maxProperties": 1},
    unique={"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
    keyed={
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["id"],
        "items": {"type": "object", "required": ["id"], "properties": {"id": TEXT, "v": INT}},
    },
    maybe={"type": "string", "nullable": True},
    exclusive={"type": "number", "minimum": 0, "exclusiveMinimum": True},
)
RULED = defined(crd(RULES))
WRONG: dict[str, list[tuple[dict[str, Any], list[tuple[str, str]] | None]]] = {
    "numbers": [
        ({"count": 0}, [(INVALID, "spec.count")]),
        ({"count": 12}, [(INVALID, "spec.count")]),
        ({"count": 3}, [(INVALID, "spec.count")]),
        ({"exclusive": 0}, [(INVALID, "spec.exclusive")]),
        ({"count": 2.5}, None),
    ],
    "strings": [
        ({"name": "a"}, [(INVALID, "spec.name")]),
        ({"name": "abcde"}, [(TOO_LONG, "spec.name")]),
        ({"code": "A1"}, [(INVALID, "spec.code")]),
        ({"kind": "C"}, [(UNSUPPORTED, "spec.kind")]),
        ({"when": "yesterday"}, [("FieldValueTypeInvalid", "spec.when")]),
    ],
    "lists": [
        ({"many": []}, [(INVALID, "spec.many")]),
        ({"many": [1, 2, 3]}, [("FieldValueTooMany", "spec.many")]),
        ({"many": ["x"]}, [("FieldValueTypeInvalid", "spec.many[0]")]),
        ({"many": [None]}, None),
        ({"unique": ["a", "a"]}, [(DUPLICATE, "spec.unique[1]")]),
        ({"keyed": [{"id": "a"}, {"id": "a"}]}, [(DUPLICATE, "spec.keyed[1]")]),
        ({"keyed": [{"v": 1}]}, None),
        ({"many": {}}, [("FieldValueTypeInvalid", "spec.many")]),
    ],
    "types": [
        ({"count": "x"}, [("FieldValueTypeInvalid", "spec.count")]),
        ({"name": 5}, [("FieldValueTypeInvalid", "spec.name")]),
        ({"flag": "true"}, [("FieldValueTypeInvalid", "spec.flag")]),
        ({"amount": True}, None),
    ],
    "objects": [
        ({"table": {"a": "x"}}, [("FieldValueTypeInvalid", "spec.table.a")]),
        ({"table": {"a": 1, "b": 2}}, [("FieldValueTooMany", "spec.table")]),
    ],
    "several-fields": [
        ({"count": 0, "kind": "C"}, [(INVALID, "spec.count"), (UNSUPPORTED, "spec.kind")]),
    ],
}
for name, wrong in WRONG.items():
    cases(
        f"custom/invalid-{name}",
        *RULED,
        *(post(W, widget(spec=spec), 422, "Invalid", *(causes or ())) for spec, causes in wrong),
    )
cases(
    "custom/valid-values",
    *RULED,
    post(
        W,
        widget(
            spec={
                "count": 4,
                "name": "abc",
                "kind": "A",
                "many": [1],
                "amount": "50%",
                "table": {"a": 1},
                "unique": ["b", "a"],
                "keyed": [{"id": "a", "v": 1}],
                "maybe": None,
                "size": 1.5,
                "when": "2020-01-01T00:00:00Z",
            }
        ),
        take=["spec"],
    ),
    merge(W + "/w", {"spec": {"amount": 5}}, take=["spec.amount"]),
)
NEEDS_A = {
    "type": "object",
    "required": ["spec"],
    "properties": {"spec": {"type": "object", "required": ["a"], "properties": {"a": INT}}},
}
cases(
    "custom/required",
    *defined(crd(NEEDS_A)),
    post(W, widget(), 422, "Invalid", (REQUIRED, "spec")),
    post(W, widget(spec={}), 422, "Invalid", (REQUIRED, "spec.a")),
    post(W, widget(spec={"a": 1})),
)
cases(
    "custom/pruning",
    *defined(crd(schema(a=INT))),
    post(W, widget(spec={"a": 1, "b": 2}, frob=1), take=["spec", "frob"]),
)
cases(
    "custom/pruning-strict",
    *defined(crd(schema(a=INT))),
    post(W + "?fieldValidation=Strict", widget(spec={"a": 1, "b": 2}, frob=1), 400, "BadRequest"),
)
cases(
    "custom/pruning-warn",
    *defined(crd(schema(a=INT))),
    post(W + "?fieldValidation=Warn", widget(spec={"a": 1, "b": 2}), take=["spec"]),
)
cases(
    "custom/preserve-unknown-fields",
    *defined(
        crd(
            schema(
                a={"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"n": INT}}
            )
        )
    ),
    post(W, widget(spec={"a": {"n": 1, "x": {"y": 2}}, "b": 1}), take=["spec"]),
)
cases(
    "custom/embedded-resource",
    *defined(
        crd(
            schema(
                a={
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "x-kubernetes-preserve-unknown-fields": True,
                }
            )
        )
    ),
    post(W, widget(spec={"a": {"x": 1}}), 422, "Invalid"),
    post(
        W,
        widget(spec={"a": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "frob": 1}}}),
        take=["spec"],
    ),
)
cases(
    "custom/defaulting",
    *defined(
        crd(
            schema(
                a={"type": "integer", "default": 5},
                o={"type": "object", "default": {}, "properties": {"x": {"type": "string", "default": "y"}}},
                l={
                    "type": "array",
                    "items": {"type": "object", "properties": {"d": {"type": "boolean", "default": True}}},
                },
            )
        )
    ),
    post(W, widget("a"), take=["spec"]),
    post(W, widget("b", spec={}), take=["spec"]),
    post(W, widget("c", spec={"a": 1, "l": [{}]}), take=["spec"]),
    post(W, widget("d", spec={"a": None}), take=["spec"]),
)
cases(
    "custom/defaulting-when-read",
    *defined(crd(schema(a=INT))),
    post(W, widget(spec={})),
    json_patch(
        NAME,
        [
            {
                "op": "add",
                "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/z",
                "value": {"type": "integer", "default": 3},
            }
        ],
    ),
    get(W + "/w", poll=True, has={"spec.z": 3}),
)
cases(
    "custom/nullable-default",
    *defined(crd(schema(a={"type": "integer", "nullable": True, "default": 5}))),
    post(W, widget(spec={"a": None}), take=["spec"]),
)
cases(
    "custom/cel-rule",
    *defined(
        crd(
            {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "properties": {"min": INT, "max": INT},
                        "x-kubernetes-validations": [
                            {"rule": "self.min <= self.max", "message": "min must not exceed max"}
                        ],
                    }
                },
            }
        )
    ),
    post(W, widget(spec={"min": 3, "max": 2}), 422, "Invalid", (INVALID, "spec")),
    post(W, widget(spec={"min": 1, "max": 2})),
)
cases(
    "custom/cel-transition-rule",
    *defined(
        crd(
            schema(
                a={
                    "type": "string",
                    "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "immutable"}],
                }
            )
        )
    ),
    post(W, widget(spec={"a": "x"})),
    merge(W + "/w", {"spec": {"a": "y"}}, 422, "Invalid", (INVALID, "spec.a")),
    merge(W + "/w", {"metadata": {"labels": {"a": "b"}}}),
)
cases(
    "custom/cel-rule-with-reason-and-path",
    *defined(
        crd(
            {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "properties": {"a": INT, "b": INT},
                        "x-kubernetes-validations": [
                            {
                                "rule": "has(self.a) || has(self.b)",
                                "reason": "FieldValueRequired",
                                "fieldPath": ".a",
                            }
                        ],
                    }
                },
            }
        )
    ),
    post(W, widget(spec={}), 422, "Invalid", (REQUIRED, "spec.a")),
)

cases(
    "custom/apply-map-list",
    *RULED,
    apply(W + "/w?fieldManager=a", widget(spec={"keyed": [{"id": "a", "v": 1}]}), 201),
    apply(
        W + "/w?fieldManager=b",
        widget(spec={"keyed": [{"id": "b", "v": 2}]}),
        take=["spec", "metadata.managedFields"],
    ),
)
cases(
    "custom/apply-set-list",
    *RULED,
    apply(W + "/w?fieldManager=a", widget(spec={"unique": ["a"]}), 201),
    apply(W + "/w?fieldManager=b", widget(spec={"unique": ["b"]}), take=["spec", "metadata.managedFields"]),
)
