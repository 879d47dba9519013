"""What the hollow cloud lists, kept up to date event by event, compared with reading all Nodes."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.base.rng import Rng
from holokube.karpenter.provider.choice import PROVIDER_PREFIX, instance_of_node
from holokube.karpenter.provider.hollow import HollowProvider
from holokube.kube.types import JsonObject
from holokube.runtime.informers import InformerSet
from tests.karpenter.lab import small_catalog

steps = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.sampled_from(["put", "remove", "list"]), st.sampled_from(["ours", "theirs", ""]),
        st.booleans(),
    ),
    max_size=25,
)  # fmt: skip


def node(name: str, cloud: str, version: int, *, is_deleting: bool) -> JsonObject:
    provider_id = {"ours": f"{PROVIDER_PREFIX}{name}", "theirs": f"other://{name}", "": ""}[cloud]
    deletion = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if is_deleting else {}
    return {
        "metadata": {"name": name, "labels": {"version": str(version)}, **deletion},
        "spec": {"providerID": provider_id} if provider_id else {},
    }


@given(steps)
def test_the_machines_listed_are_those_of_the_nodes_that_there_are(
    drawn: list[tuple[str, str, str, bool]],
) -> None:
    clock, rng = VirtualClock(), Rng("machines")
    informers = InformerSet(clock, cast("Any", None), rng)
    provider = HollowProvider(clock, cast("Any", None), informers, rng, small_catalog())
    nodes: dict[str, JsonObject] = {}
    for version, (name, what, cloud, is_deleting) in enumerate([*drawn, ("", "list", "", False)]):
        old = nodes.get(name)
        if what == "put":
            nodes[name] = node(name, cloud, version, is_deleting=is_deleting)
            provider._on_node("ADDED" if old is None else "MODIFIED", old, nodes[name])
        elif what == "remove" and old is not None:
            del nodes[name]
            provider._on_node("DELETED", old, None)
        elif what == "list":
            ours = [one for one in nodes.values() if one["spec"].get("providerID", "").startswith(PROVIDER_PREFIX)]
            listed = asyncio.run(_listed(provider))
            assert sorted(listed, key=repr) == sorted(map(instance_of_node, ours), key=repr)


async def _listed(provider: HollowProvider) -> list[Any]:
    return await provider.instances()
