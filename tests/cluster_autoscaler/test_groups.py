"""What a turn reads about a group."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from holokube.cluster_autoscaler.cloud.errors import CloudError, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.provider import GroupOptions, NodeInfo
from holokube.cluster_autoscaler.groups import GroupView, read_group
from holokube.cluster_autoscaler.loop.group_reading import groups_of_nodes, nodes_without_machine, targets_of
from holokube.cluster_autoscaler.taints import to_be_deleted, with_taint
from tests.builders import node
from tests.cluster_autoscaler.loop.fakes import FakeGroup


class Provider:
    def node_gpu_config(self, _node: Any) -> None:
        return None

    async def node_group_for_node(self, found: Any) -> FakeGroup | None:
        name = found["metadata"]["name"]
        if name == "odd":
            raise CloudError("no idea")
        return FakeGroup("g") if name.startswith("g-") else None

    async def has_instance(self, found: Any) -> bool:
        if found["metadata"]["name"] == "gone":
            return False
        raise NotImplementedByProvider("HasInstance")


def read(group: FakeGroup) -> GroupView:
    return asyncio.run(read_group(Provider(), group, GroupOptions()))  # type: ignore[arg-type]  # all it is asked


def test_what_is_not_implemented_has_a_fallback() -> None:
    view = read(FakeGroup("g", target=2))
    assert (view.id, view.target_size, view.template, view.template_error) == ("g", 2, None, "")
    assert view.options == GroupOptions() and view.exists
    own = GroupOptions(scale_down_unneeded_time_s=1.0)
    assert read(FakeGroup("g", own_options=own)).options == own


def test_a_group_that_cannot_tell_is_unusable_and_no_reason_to_stop_reading() -> None:
    group = FakeGroup("g")

    async def refuse() -> int:
        raise CloudError("away")

    async def refuse_template() -> NodeInfo:
        raise CloudError("no template today")

    group.target_size = refuse  # type: ignore[method-assign]  # for this test
    group.template_node_info = refuse_template  # type: ignore[method-assign]  # for this test
    view = read(group)
    assert view.target_size is None and view.template_error == "no template today"
    with pytest.raises(CloudError, match="the size of node group g cannot be had"):
        targets_of([replace(view, target_size=1), view])


def test_nodes_of_nobody_and_nodes_in_doubt_have_no_group() -> None:
    nodes = [node("g-1"), node("foreign"), node("odd")]
    assert asyncio.run(groups_of_nodes(Provider(), nodes)) == {"g-1": "g"}  # type: ignore[arg-type]  # the same


def test_where_nobody_can_tell_a_tainted_node_is_taken_for_gone() -> None:
    nodes = [node("gone"), node("here"), with_taint(node("leaving"), to_be_deleted(0.0))]
    found = asyncio.run(nodes_without_machine(Provider(), nodes))  # type: ignore[arg-type]  # the same
    assert found == {"gone", "leaving"}
