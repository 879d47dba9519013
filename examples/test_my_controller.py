"""A controller of your own, written with the official Python client, tested against a real API on loopback.

    pip install . pytest kubernetes      # in a clone of holokube
    pytest examples/test_my_controller.py

``kubeconfig`` is a fixture of holokube: a fresh Kubernetes API server for this test alone, started in some
20 ms. No cluster, no Docker, no mocks: selectors, patches, conflicts and validation are the server's own.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kubernetes import client, config

TEAM_LABEL = "example.com/team"
PODS_PER_TEAM = {"web": "50", "data": "200"}


# -- the controller: every namespace of a team gets the team's quota ---------------------------------------


def reconcile_quotas(core: client.CoreV1Api) -> list[str]:
    """Make or mend the quota of every labelled namespace; returns the namespaces that had to be changed."""
    changed = []
    for namespace in core.list_namespace(label_selector=TEAM_LABEL).items:
        name, team = namespace.metadata.name, namespace.metadata.labels[TEAM_LABEL]
        wanted = {"pods": PODS_PER_TEAM[team]}
        try:
            quota = core.read_namespaced_resource_quota("team", name)
        except client.ApiException as error:
            if error.status != 404:
                raise
            meta = client.V1ObjectMeta(name="team")
            core.create_namespaced_resource_quota(
                name, client.V1ResourceQuota(metadata=meta, spec=client.V1ResourceQuotaSpec(hard=wanted))
            )
            changed.append(name)
            continue
        if quota.spec.hard != wanted:
            core.patch_namespaced_resource_quota("team", name, {"spec": {"hard": wanted}})
            changed.append(name)
    return changed


# -- its tests ---------------------------------------------------------------------------------------------


@pytest.fixture
def core(kubeconfig: Path) -> client.CoreV1Api:
    return client.CoreV1Api(config.new_client_from_config(str(kubeconfig)))


def make_namespace(core: client.CoreV1Api, name: str, team: str = "") -> None:
    meta = client.V1ObjectMeta(name=name, labels={TEAM_LABEL: team} if team else None)
    core.create_namespace(client.V1Namespace(metadata=meta))


def test_namespaces_of_a_team_get_a_quota_and_others_do_not(core: client.CoreV1Api) -> None:
    make_namespace(core, "shop", team="web")
    make_namespace(core, "sandbox")
    assert reconcile_quotas(core) == ["shop"]
    assert core.read_namespaced_resource_quota("team", "shop").spec.hard == {"pods": "50"}
    assert core.list_namespaced_resource_quota("sandbox").items == []


def test_a_second_run_has_nothing_to_do(core: client.CoreV1Api) -> None:
    make_namespace(core, "shop", team="web")
    reconcile_quotas(core)
    assert reconcile_quotas(core) == []


def test_a_changed_quota_is_mended(core: client.CoreV1Api) -> None:
    make_namespace(core, "lake", team="data")
    reconcile_quotas(core)
    core.patch_namespaced_resource_quota("team", "lake", {"spec": {"hard": {"pods": "9000"}}})
    assert reconcile_quotas(core) == ["lake"]
    assert core.read_namespaced_resource_quota("team", "lake").spec.hard == {"pods": "200"}


def test_the_server_refuses_what_a_real_one_would(core: client.CoreV1Api) -> None:
    with pytest.raises(client.ApiException) as refused:
        make_namespace(core, "Not_A_Name")
    assert refused.value.status == 422
    assert "RFC 1123" in refused.value.body
