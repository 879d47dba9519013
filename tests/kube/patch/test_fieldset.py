from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.kube.patch.fieldset import EMPTY, FieldSet, FieldSetError, format_path

ELEMENTS = st.sampled_from(["f:a", "f:b", "f:c", 'k:{"name":"x"}', 'v:"y"', "i:1"])
PATHS = st.frozensets(st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple), max_size=8)


def paths_of(fields: FieldSet) -> set[tuple[str, ...]]:
    listed = list(fields.paths())
    assert len(listed) == len(set(listed)) == len(fields)
    return set(listed)


@given(a=PATHS)
def test_a_set_holds_exactly_its_paths(a: frozenset[tuple[str, ...]]) -> None:
    fields = FieldSet.from_paths(a)
    assert paths_of(fields) == a
    assert bool(fields) == bool(a)
    for path in a:
        assert fields.contains(path)
        assert fields.contains(path[:-1]) == (path[:-1] in a)
        assert not fields.contains((*path, "f:zzz"))


@given(a=PATHS, b=PATHS)
def test_operations_are_those_of_plain_sets(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> None:
    left, right = FieldSet.from_paths(a), FieldSet.from_paths(b)
    before = str(left.to_json()), str(right.to_json())
    assert paths_of(left | right) == a | b
    assert paths_of(left - right) == a - b
    assert paths_of(left & right) == a & b
    assert paths_of(left.without(right)) == {
        path for path in a if not any(path[:size] in b for size in range(1, len(path) + 1))
    }
    assert (str(left.to_json()), str(right.to_json())) == before


@given(a=PATHS, b=PATHS)
def test_equal_sets_have_one_spelling(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> None:
    union = FieldSet.from_paths(a).union(FieldSet.from_paths(b))
    again = FieldSet.from_paths(sorted(a | b))
    assert union == again
    assert str(union.to_json()) == str(again.to_json())
    assert hash(union) == hash(again)
    assert FieldSet.from_json(union.to_json()) == union
    assert (union == EMPTY) == (not a and not b)


@given(a=PATHS)
def test_leaves_have_nothing_below_them(a: frozenset[tuple[str, ...]]) -> None:
    def has_child(path: tuple[str, ...]) -> bool:
        return any(len(other) > len(path) and other[: len(path)] == path for other in a)

    assert paths_of(FieldSet.from_paths(a).leaves()) == {path for path in a if not has_child(path)}


def test_union_returns_the_same_document_if_nothing_is_added() -> None:
    fields = FieldSet.of_fields("spec.replicas", "spec.template.spec")
    assert fields.union(FieldSet.of_fields("spec.replicas")).to_json() is fields.to_json()
    assert fields.difference(FieldSet.of_fields("status")).to_json() is fields.to_json()


def test_elements_come_in_upstreams_order() -> None:
    fields = FieldSet.from_json({
        "f:spec": {
            "f:ports": {
                'k:{"protocol":"TCP","port":443}': {".": {}, "f:port": {}},
                'k:{"port":80,"protocol":"TCP"}': {"f:port": {}, ".": {}},
                ".": {},
            },
            "f:a": {},
        },
        "f:metadata": {"f:finalizers": {'v:"b"': {}, 'v:"a"': {}}},
    })  # fmt: skip
    document = fields.to_json()
    assert list(document) == ["f:metadata", "f:spec"]
    assert list(document["f:spec"]) == ["f:a", "f:ports"]
    assert list(document["f:spec"]["f:ports"]) == [
        ".", 'k:{"port":80,"protocol":"TCP"}', 'k:{"port":443,"protocol":"TCP"}'
    ]  # fmt: skip
    assert list(document["f:metadata"]["f:finalizers"]) == ['v:"a"', 'v:"b"']


def test_documents_of_clients_are_spelled_canonically() -> None:
    sent = {'k:{ "b": 1, "a": "<x>" }': {".": {}}, "x:later": {}, "f:a": {".": {}, "y:later": {}}}
    assert FieldSet.from_json(sent).to_json() == {'k:{"a":"\\u003cx\\u003e","b":1}': {}, "f:a": {}}
    assert FieldSet.from_json(None) == EMPTY


@pytest.mark.parametrize("element", ["", "f", "fa", "k:{", "k:[]", "v:", "i:x"])
def test_elements_that_cannot_be_read_are_refused(element: str) -> None:
    with pytest.raises(FieldSetError):
        FieldSet.from_json({element: {}})


def test_documents_must_be_objects() -> None:
    with pytest.raises(FieldSetError, match="fieldsV1 must be an object"):
        FieldSet.from_json({"f:a": []})


def test_paths_are_printed_like_upstream_prints_them() -> None:
    path = ("f:spec", "f:ports", 'k:{"port":80,"protocol":"TCP"}', "f:names", 'v:"a"', "i:3")
    assert format_path(path) == '.spec.ports[port=80,protocol="TCP"].names[="a"][3]'
    assert repr(FieldSet.of_fields("spec.replicas")) == "FieldSet(.spec.replicas)"
