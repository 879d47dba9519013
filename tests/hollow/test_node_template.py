"""Node manifests for many nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holokube.base.errors import UsageError
from holokube.hollow.node_template import (
    NODE_SET,
    NodeTemplate,
    ProfileTemplate,
    index_of,
    marked,
    missing_indexes,
    newest_first,
)
from holokube.hollow.profile import NodeProfile

PLAIN = """
apiVersion: v1
kind: Node
metadata:
  name: sample
  uid: abc
  resourceVersion: "7"
  labels: {kubernetes.io/hostname: sample, pool: a}
status: {capacity: {cpu: "4"}}
"""
TEMPLATED = """
apiVersion: v1
kind: Node
metadata:
  name: {{ Name }}
  labels: {zone: {{ if eq (mod Index 2) 0 }}even{{ else }}odd{{ end }}, team: {{ .team | default "none" | Quote }}}
spec:
  podCIDR: {{ AddCIDR "10.0.0.0/24" Index }}
status:
  addresses: [{type: InternalIP, address: {{ AddIP "192.0.2.1" Index }}}]
"""


def test_a_plain_manifest_gets_the_names() -> None:
    node = NodeTemplate(PLAIN, "f").render("n-3", 3)
    assert node["metadata"] == {"name": "n-3", "labels": {"kubernetes.io/hostname": "n-3", "pool": "a"}}
    assert node["status"] == {"capacity": {"cpu": "4"}}


def test_a_template_counts() -> None:
    template = NodeTemplate(TEMPLATED, "f", {"team": "red"})
    node = template.render("n-300", 300)
    assert node["metadata"]["labels"] == {"zone": "even", "team": "red"}
    assert node["spec"]["podCIDR"] == "10.1.44.0/24"
    assert node["status"]["addresses"][0]["address"] == "192.0.3.45"
    assert template.render("n-1", 1)["metadata"]["labels"]["zone"] == "odd"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}", "is v1 Pod, not a v1 Node"),
        ("- a", "no object"),
        ("a: [", "not YAML"),
        ("{{ Sing }}", "function 'Sing' is not supported"),
        ("apiVersion: v1\nkind: Node\nmetadata: {name: fixed{{/* */}}, labels: {a: {{ Index }}}}", "would be 'fixed'"),
        ("apiVersion: v1\nkind: Node\nmetadata: {labels: [a]}", "must be objects"),
        ("a: 1\n---\nb: 2", "2 YAML documents"),
        ("apiVersion: v1\nkind: Node\nspec: {podCIDR: {{ AddCIDR \"nonsense\" }}}", "AddCIDR"),
    ],
)
def test_bad_templates_are_refused_before_any_node_is_made(text: str, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        NodeTemplate(text, "nodes.yaml")
    assert caught.value.message.startswith("nodes.yaml: ") and why in caught.value.message


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read the template"):
        NodeTemplate.load(tmp_path / "none.yaml")
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="not text"):
        NodeTemplate.load(tmp_path / "binary")


def test_nodes_without_a_template_take_zones_in_turn() -> None:
    maker = ProfileTemplate(NodeProfile(capacity={"cpu": "2"}), ["a", "b"])
    nodes = [maker.render(f"n-{index}", index) for index in range(3)]
    assert [node["metadata"]["labels"]["topology.kubernetes.io/zone"] for node in nodes] == ["a", "b", "a"]
    assert nodes[0]["status"]["capacity"] == {"cpu": "2"}


def test_marks_let_a_fleet_adopt_and_the_set_be_found() -> None:
    node = marked({"metadata": {"name": "n"}}, "pool")
    assert node["metadata"]["labels"] == {NODE_SET: "pool"}
    assert node["metadata"]["annotations"] == {"kwok.x-k8s.io/node": "fake"}


@given(st.lists(st.integers(0, 30), unique=True), st.lists(st.integers(0, 30), unique=True), st.integers(0, 20))
def test_new_numbers_are_the_lowest_free_ones(owned: list[int], taken: list[int], count: int) -> None:
    found = missing_indexes([f"n-{i}" for i in owned], [f"n-{i}" for i in taken], "n", count)
    free = [i for i in range(100) if i not in owned and i not in taken]
    assert found == free[:count]


def test_numbers_are_read_from_names_of_the_set_only() -> None:
    assert [index_of(name, "a") for name in ("a-7", "a-b-7", "b-7", "a-", "a-x", "a-٣")] == [7, -1, -1, -1, -1, -1]


def test_the_newest_go_first_and_of_one_second_the_highest() -> None:
    def node(name: str, created: str) -> dict[str, dict[str, str]]:
        return {"metadata": {"name": name, "creationTimestamp": created}}

    old, new = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    nodes = [node("n-9", old), node("n-10", old), node("n-1", new)]
    assert [n["metadata"]["name"] for n in newest_first(nodes, "n")] == ["n-1", "n-10", "n-9"]
