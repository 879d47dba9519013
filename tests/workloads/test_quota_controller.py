from __future__ import annotations

from typing import Any

import pytest

from holokube.client.resources import CONFIG_MAPS, DEPLOYMENTS, PODS, RESOURCE_QUOTAS
from holokube.kube.errors import Forbidden
from holokube.workloads import quota_controller
from tests.builders import config_map, deployment, pod
from tests.workloads.housekeeping import STORM, House

JsonObject = dict[str, Any]


def house(**options: Any) -> House:
    return House(quota_controller.build, **options)


def quota(name: str = "q", scopes: tuple[str, ...] = (), **hard: str) -> JsonObject:
    spec: JsonObject = {"hard": {key.replace("__", "/").replace("_", "."): value for key, value in hard.items()}}
    if scopes:
        spec["scopes"] = list(scopes)
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def sized(name: str, cpu: str, **spec: Any) -> JsonObject:
    resources = {"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}
    return pod(name, containers=[{"name": "c", "image": "i", "resources": resources}], **spec)


def used(home: House, name: str = "q") -> JsonObject:
    return dict(home.get(RESOURCE_QUOTAS, name)["status"].get("used") or {})


def test_a_new_quota_counts_what_is_there() -> None:
    with house() as home:
        for n in range(3):
            home.create(PODS, sized(f"p{n}", "500m"))
        home.create(CONFIG_MAPS, config_map())
        home.create(DEPLOYMENTS, deployment())
        hard = {"pods": "10", "requests_cpu": "4", "configmaps": "5", "count__deployments_apps": "2"}
        home.create(RESOURCE_QUOTAS, quota(**hard))
        home.pass_time(1)
        assert used(home) == {"pods": "3", "requests.cpu": "1500m", "configmaps": "1", "count/deployments.apps": "1"}
        found = home.get(RESOURCE_QUOTAS, "q")
        assert found["status"]["hard"] == found["spec"]["hard"]


def test_what_is_deleted_or_ends_is_given_back() -> None:
    with house() as home:
        home.create(RESOURCE_QUOTAS, quota(pods="2"))
        home.pass_time(1)
        for name in ("a", "b"):
            home.create(PODS, sized(name, "1", node="n1"))
        with pytest.raises(Forbidden, match="exceeded quota"):
            home.create(PODS, sized("c", "1"))
        home.patch(PODS, "a", {"status": {"phase": "Succeeded"}}, subresource="status")
        home.pass_time(1)
        assert used(home) == {"pods": "1"}
        home.delete(PODS, "b", grace_s=0)
        home.pass_time(1)
        assert used(home) == {"pods": "0"}
        home.create(PODS, sized("c", "1"))
        assert used(home) == {"pods": "1"}


def test_limits_follow_the_spec_and_scopes_are_kept() -> None:
    with house() as home:
        home.create(PODS, sized("best", "1"))
        home.create(PODS, pod("effort"))
        home.create(RESOURCE_QUOTAS, quota(scopes=("BestEffort",), pods="5"))
        home.pass_time(1)
        assert used(home) == {"pods": "1"}
        home.patch(RESOURCE_QUOTAS, "q", {"spec": {"hard": {"pods": "7"}}})
        home.pass_time(1)
        assert home.get(RESOURCE_QUOTAS, "q")["status"]["hard"] == {"pods": "7"}


def test_what_nobody_watches_is_counted_every_five_minutes() -> None:
    with house() as home:
        home.create(DEPLOYMENTS, deployment())
        home.create(RESOURCE_QUOTAS, quota(count__deployments_apps="2"))
        home.pass_time(1)
        home.delete(DEPLOYMENTS, "d")
        home.pass_time(310)
        assert used(home) == {"count/deployments.apps": "0"}


@pytest.mark.parametrize("seed", range(3))
def test_the_count_is_right_in_the_end_whatever_the_network_does(seed: int) -> None:
    with house(faults=STORM, seed=seed) as home:
        home.create(RESOURCE_QUOTAS, quota(pods="100"))
        home.pass_time(60)
        for n in range(20):
            home.create(PODS, sized(f"p{n}", "1"))
            if n % 2:
                home.delete(PODS, f"p{n - 1}", grace_s=0)
            home.pass_time(3)
        home.calm()
        home.pass_time(400)
        assert used(home) == {"pods": "10"}
        assert home.faulty.injected.total() > 3
