from __future__ import annotations

import pytest

from holokube.apiserver.discovery import Discovery
from holokube.apiserver.http.negotiation import Format
from holokube.apiserver.resources import version_priority
from tests.apiserver.worlds import World, in_world

V2 = Format(discovery_v2=True)


def test_the_core_group_lists_its_resources_with_short_names() -> None:
    async def body(world: World) -> None:
        listing = Discovery(world.registry).answer("/api/v1", Format())
        assert listing is not None
        rows = {row["name"]: row for row in listing["resources"]}
        assert rows["pods"]["shortNames"] == ["po"]
        assert rows["pods"]["categories"] == ["all"]
        assert rows["pods/eviction"]["group"] == "policy"
        assert rows["nodes"]["namespaced"] is False

    in_world(body)


def test_a_group_names_its_preferred_version() -> None:
    async def body(world: World) -> None:
        group = Discovery(world.registry).answer("/apis/autoscaling", Format())
        assert group is not None
        assert group["preferredVersion"]["version"] == "v2"
        assert [version["version"] for version in group["versions"]] == ["v2", "v1"]

    in_world(body)


@pytest.mark.parametrize("path", ["/apis/none.example.com", "/apis/apps/v9", "/api/v1/pods", "/apis/apps/v1/jobs"])
def test_other_paths_are_not_discovery(path: str) -> None:
    async def body(world: World) -> None:
        assert Discovery(world.registry).answer(path, Format()) is None

    in_world(body)


def test_aggregated_discovery_tells_everything_at_once() -> None:
    async def body(world: World) -> None:
        discovery = Discovery(world.registry)
        core, groups = discovery.answer("/api", V2), discovery.answer("/apis", V2)
        assert core is not None and groups is not None
        assert core["items"][0]["metadata"] == {}
        names = [item["metadata"]["name"] for item in groups["items"]]
        assert "apps" in names and "" not in names
        apps = next(item for item in groups["items"] if item["metadata"]["name"] == "apps")
        deployments = next(r for r in apps["versions"][0]["resources"] if r["resource"] == "deployments")
        assert deployments["scope"] == "Namespaced"
        assert {sub["subresource"] for sub in deployments["subresources"]} == {"scale", "status"}

    in_world(body)


def test_versions_are_ordered_as_kubernetes_orders_them() -> None:
    versions = ["v1beta1", "foo1", "v11alpha2", "v10", "v2", "v1", "v3beta1", "v12alpha1", "foo10", "v11beta2"]
    assert sorted(versions, key=version_priority) == [
        "v10", "v2", "v1", "v11beta2", "v3beta1", "v1beta1", "v12alpha1", "v11alpha2", "foo1", "foo10",
    ]  # fmt: skip
