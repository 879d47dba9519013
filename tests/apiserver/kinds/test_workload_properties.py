"""Whatever fits the types, the rules answer it: no crash, defaults that settle, old objects left alone."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.decode import Decoder
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.pod_update import (
    prepare_ephemeral_containers,
    prepare_resize,
    validate_ephemeral_containers,
    validate_pod_resize,
)
from holokube.base.rng import Rng
from holokube.kube.schema import Schema, Shape
from holokube.kube.types import JsonObject
from tests.apiserver.kinds.workload_steps import CATALOG, KIND_NAMES, create, decoded, kind_of, update

WORDS = (
    "", "a", "A_", "a.b", "x y", "..", "/a", "../b", "a/b", "cpu", "memory", "hugepages-2Mi",
    "nvidia.com/gpu", "Always", "Never", "OnFailure", "Exists", "In", "Equal", "Localhost", "windows",
    "linux", "Indexed", "RollingUpdate", "OnDelete", "Recreate", "None", "25%", "metadata.name",
    "metadata.labels['a']", "limits.cpu", "10.0.0.1", "::1", "TZ=x", "@every 5m", "* * * * *", "1-3,5",
    "é", "True", "Restart", "RestartAllContainers",
)  # fmt: skip
SCALARS: dict[Shape, tuple[Any, ...]] = {
    Shape.INTEGER: (0, 1, -1, 5, 80, 70_000, 2**31 - 1, -(2**31)),
    Shape.NUMBER: (0, 1.5),
    Shape.BOOLEAN: (True, False),
    Shape.QUANTITY: ("0", "1", "-1", "1.5", "100m", "1n", "2Mi", "3Mi", "1e3", "-5m"),
    Shape.INT_OR_STRING: (0, 1, -1, "25%", "x", "150%", "5", "0%"),
    Shape.STRING: WORDS,
    Shape.ANY: ({}, {"a": 1}, "x"),
}


def arbitrary(schema: Schema, rng: Rng, depth: int = 0) -> Any:
    """Some value of a type: structure at random, scalars from a list of troublemakers."""
    shape = schema.shape
    if shape is Shape.OBJECT:
        if depth > 9:
            return {}
        chance = 0.75 if depth < 2 else rng.choice((0.1, 0.3, 0.5))
        wanted = {
            key: 0.9 if key in schema.required else chance for key in schema.fields if key != "metadata"
        }
        return {
            key: arbitrary(schema.fields[key], rng, depth + 1) for key in wanted if rng.random() < wanted[key]
        }
    if shape is Shape.LIST:
        return [arbitrary(schema.items, rng, depth + 1) for _ in range(rng.choice((0, 1, 1, 2)))]
    if shape is Shape.MAP:
        return {
            rng.choice(WORDS): arbitrary(schema.items, rng, depth + 1) for _ in range(rng.choice((0, 1, 2)))
        }
    if schema.format == "date-time":
        return "2026-01-01T00:00:00Z"
    return rng.choice(SCALARS[shape])


def arbitrary_object(plural: str, rng: Rng) -> JsonObject:
    schema = CATALOG.schema(f"io.k8s.api.{KIND_NAMES[plural]}")
    return {**arbitrary(schema, rng), "metadata": {"name": rng.choice(("w", "a.b"))}}


@pytest.mark.parametrize("plural", KIND_NAMES)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None)
def test_no_object_is_too_strange_for_the_rules(plural: str, seed: int) -> None:
    rng = Rng(seed)
    old = create(plural, arbitrary_object(plural, rng)).obj
    update(plural, old, arbitrary_object(plural, rng))
    if kind_of(plural).has_status:
        update(plural, old, arbitrary_object(plural, rng), status=True)
    kind_of(plural).field_values(old)


@pytest.mark.parametrize("plural", KIND_NAMES)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_defaults_change_nothing_the_second_time(plural: str, seed: int) -> None:
    once = decoded(plural, arbitrary_object(plural, Rng(seed)))
    schema = CATALOG.schema(f"io.k8s.api.{KIND_NAMES[plural]}")
    written = orjson.loads(orjson.dumps(once))
    again = Decoder().decode(written, schema)
    kind_of(plural).default(again)
    assert again == written


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_no_resize_and_no_debugging_is_too_strange(seed: int) -> None:
    rng = Rng(seed)
    old = create("pods", arbitrary_object("pods", rng)).obj
    for prepare, validate in (
        (prepare_resize, validate_pod_resize),
        (prepare_ephemeral_containers, validate_ephemeral_containers),
    ):
        new = decoded("pods", arbitrary_object("pods", rng))
        prepare(new, old)
        validate(new, old, FieldErrors())
