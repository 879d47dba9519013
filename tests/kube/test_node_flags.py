"""What the flags of a hollow kubelet say about its node."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.base.errors import UsageError
from holokube.kube.node_flags import (
    NodeFlags,
    expand,
    flags_of_pod,
    parse_amounts,
    parse_labels,
    parse_pairs,
    parse_taints,
    read_flags,
)
from holokube.kube.taints import Taint


def test_pairs_are_divided_by_commas_and_a_key_alone_has_an_empty_value() -> None:
    assert parse_pairs("a=b, c = d=e ,f", "--x") == {"a": "b", "c": "d=e", "f": ""}
    assert parse_pairs("", "--x") == {}


@pytest.mark.parametrize("text", ["a=b,", ",", "a=b,,c=d"])
def test_an_empty_part_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="has an empty part"):
        parse_pairs(text, "--x")


@pytest.mark.parametrize("text", ["-a=b", "a=b/c", "a/b/c=d"])
def test_what_the_server_would_refuse_as_a_label_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--node-labels"):
        parse_labels(text)


def test_amounts_stay_as_they_were_written() -> None:
    assert parse_amounts("cpu=0.5,memory=1024Mi", "--x") == {"cpu": "0.5", "memory": "1024Mi"}
    for wrong in ("cpu=four", "cpu=-1", "cpu=", "-x=1"):
        with pytest.raises(UsageError, match="--x"):
            parse_amounts(wrong, "--x")


def test_taints_have_a_key_perhaps_a_value_and_an_effect() -> None:
    assert parse_taints("a=b:NoSchedule,c:NoExecute,x.y/z=:PreferNoSchedule") == (
        Taint("a", "b", "NoSchedule"), Taint("c", "", "NoExecute"), Taint("x.y/z", "", "PreferNoSchedule"),
    )  # fmt: skip
    assert parse_taints("") == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a=b", "no effect"),
        ("a=b:Never", "no effect"),
        ("=b:NoSchedule", "no taint"),
        ("a:NoExecute,a:NoExecute", "twice"),
    ],
)
def test_a_taint_that_is_none_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_taints(text)


def test_flags_are_read_in_both_forms_and_others_left_aside() -> None:
    flags = read_flags([
        "fleet", "--node-name", "n", "--node-labels=a=b", "--register-with-taints", "k:NoSchedule", "-v", "--debug",
        "--node-capacity=cpu=4", "--extended-resources=x.y/z=1", "--max-pods=9", "--node-allocatable=cpu=3",
        "--provider-id=p://n", "--profile=fast",
    ])  # fmt: skip
    assert flags == NodeFlags(
        name="n", labels={"a": "b"}, taints=(Taint("k", "", "NoSchedule"),),
        capacity={"cpu": "4", "x.y/z": "1", "pods": "9"}, allocatable={"cpu": "3"}, provider_id="p://n", profile="fast",
    )  # fmt: skip


def test_capacity_and_what_pods_may_have_are_told_where_they_differ() -> None:
    flags = NodeFlags(capacity={"cpu": "4"}, allocatable={"cpu": "3"})
    assert flags.capacity_over({"cpu": "1", "pods": "5"}) == {"cpu": "4", "pods": "5"}
    assert flags.allocatable_over({"cpu": "1", "pods": "5"}) == {"cpu": "3", "pods": "5"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)-$(B)", "1-2"),
        ("$(MISSING)", "$(MISSING)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("cost: 5$ $A $(A", "cost: 5$ $A $(A"),
        ("$(A $(B)", "$(A $(B)"),
    ],
)
def test_variables_are_put_in_as_kubelets_do(text: str, expected: str) -> None:
    assert expand(text, {"A": "1", "B": "2"}) == expected


def pod_spec(*arguments: str, env: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    sidecar = {"name": "proxy", "command": ["/kubemark", "--morph=proxy", "--name=$(N)"]}
    return {"containers": [sidecar, {"name": "k", "args": [*arguments], "env": env or []}]}


def test_the_environment_of_the_container_is_followed() -> None:
    env = [
        {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "G", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['x/group']"}}},
        {"name": "BOTH", "value": "$(G).$(N)"},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
    ]
    spec = pod_spec("--node-name=$(N)", "--node-labels=a=$(BOTH)", "--profile=$(SECRET)", env=env)
    flags = flags_of_pod({"name": "p", "labels": {"x/group": "g"}}, spec)
    assert flags is not None
    assert (flags.name, flags.labels, flags.profile) == ("p", {"a": "g.p"}, "$(SECRET)")


def test_a_pod_without_a_hollow_kubelet_is_no_node() -> None:
    assert flags_of_pod({"name": "p"}, pod_spec("--manage-all-nodes")) is None
    assert flags_of_pod({"name": "p"}, {}) is None


def test_kubemarks_own_program_is_told_apart() -> None:
    flags = flags_of_pod({"name": "p"}, pod_spec("--morph=kubelet", "--name=x"))
    assert flags is not None and flags.is_kubemark and flags.name == "x"
