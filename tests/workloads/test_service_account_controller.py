from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from holokube.client.resources import CONFIG_MAPS, NAMESPACES, SERVICE_ACCOUNTS
from holokube.workloads import service_account_controller
from holokube.workloads.service_account_decisions import DESCRIPTION, DESCRIPTION_ANNOTATION
from tests.workloads.housekeeping import STORM, House

ROOT_CA = "-----BEGIN CERTIFICATE-----\n"


def house(**options: Any) -> House:
    root_ca = partial(service_account_controller.build_root_ca, root_ca=ROOT_CA)
    return House(service_account_controller.build, root_ca, **options)


def test_every_namespace_has_a_default_account_and_the_root_certificate() -> None:
    with house() as home:
        home.create(NAMESPACES, {"metadata": {"name": "shop"}})
        home.pass_time(1)
        for namespace in ("default", "kube-system", "shop"):
            assert home.names(SERVICE_ACCOUNTS, namespace) == ["default"]
            published = home.get(CONFIG_MAPS, "kube-root-ca.crt", namespace)
            assert published["data"] == {"ca.crt": ROOT_CA}
            assert published["metadata"]["annotations"] == {DESCRIPTION_ANNOTATION: DESCRIPTION}


def test_what_is_deleted_or_changed_comes_back() -> None:
    with house() as home:
        home.delete(SERVICE_ACCOUNTS, "default")
        home.delete(CONFIG_MAPS, "kube-root-ca.crt", "kube-system")
        meta = {"annotations": {"mine": "stays", DESCRIPTION_ANNOTATION: "x"}}
        home.patch(CONFIG_MAPS, "kube-root-ca.crt", {"metadata": meta, "data": {"ca.crt": "forged", "more": "x"}})
        home.pass_time(1)
        assert home.exists(SERVICE_ACCOUNTS, "default")
        assert home.exists(CONFIG_MAPS, "kube-root-ca.crt", "kube-system")
        mended = home.get(CONFIG_MAPS, "kube-root-ca.crt")
        assert mended["data"] == {"ca.crt": ROOT_CA}
        assert mended["metadata"]["annotations"] == {"mine": "stays", DESCRIPTION_ANNOTATION: DESCRIPTION}


def test_a_namespace_on_its_way_out_gets_nothing() -> None:
    with house() as home:
        home.create(NAMESPACES, {"metadata": {"name": "shop"}})
        home.pass_time(1)
        home.delete(NAMESPACES, "shop")
        home.delete(SERVICE_ACCOUNTS, "default", "shop")
        home.pass_time(30)
        assert home.names(SERVICE_ACCOUNTS, "shop") == []


@pytest.mark.parametrize("seed", range(3))
def test_accounts_are_there_in_the_end_whatever_the_network_does(seed: int) -> None:
    with house(faults=STORM, seed=seed) as home:
        for number in range(20):
            home.create(NAMESPACES, {"metadata": {"name": f"n{number}"}})
            home.pass_time(3)
        home.delete(SERVICE_ACCOUNTS, "default", "kube-public")
        home.calm()
        home.pass_time(120)
        assert home.names(SERVICE_ACCOUNTS) == ["default"] * 24
        assert home.names(CONFIG_MAPS) == ["kube-root-ca.crt"] * 24
        assert home.faulty.injected.total() > 10
