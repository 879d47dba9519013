from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from holokube.base.errors import TransportError
from holokube.client.resources import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    NAMESPACES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from holokube.workloads import garbage_controller, namespace_controller, service_account_controller
from tests.builders import config_map, pod
from tests.workloads.housekeeping import STORM, House
from tests.workloads.test_garbage_controller import widget_definition

JsonObject = dict[str, Any]
WIDGETS = Resource("example.com", "v1", "widgets", "Widget", True)


def house(**options: Any) -> House:
    home = House(
        namespace_controller.build, garbage_controller.build, service_account_controller.build,
        partial(service_account_controller.build_root_ca, root_ca="PEM"), **options,
    )  # fmt: skip
    home.create(NAMESPACES, {"metadata": {"name": "shop"}})
    home.pass_time(60 if options.get("faults") else 5)
    return home


def conditions(home: House, name: str = "shop") -> dict[str, tuple[str, str, str]]:
    listed = home.get(NAMESPACES, name)["status"].get("conditions") or []
    return {c["type"]: (c["status"], c["reason"], c["message"]) for c in listed}


def test_a_deleted_namespace_goes_with_all_that_is_in_it() -> None:
    with house() as home:
        home.create(CUSTOM_RESOURCE_DEFINITIONS, widget_definition())
        home.create(WIDGETS, {"metadata": {"name": "w", "namespace": "shop"}})
        home.create(CONFIG_MAPS, config_map("cm", "shop"))
        home.create(CONFIG_MAPS, config_map("elsewhere"))
        home.create(PODS, pod("unscheduled", "shop"))
        home.delete(NAMESPACES, "shop")
        home.pass_time(4)
        assert home.exists(CONFIG_MAPS, "cm", "shop"), "nothing goes before all servers know"
        home.pass_time(20)
        assert not home.exists(NAMESPACES, "shop")
        assert home.names(WIDGETS) == [] and home.names(CONFIG_MAPS, "shop") == []
        assert home.names(PODS) == [] and home.names(SERVICE_ACCOUNTS, "shop") == []
        assert home.exists(CONFIG_MAPS, "elsewhere")


def test_finalizers_that_hold_content_are_named_in_the_conditions() -> None:
    with house() as home:
        held = config_map("held", "shop")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        home.create(CONFIG_MAPS, held)
        home.delete(NAMESPACES, "shop")
        home.pass_time(10)
        found = conditions(home)
        assert found["NamespaceContentRemaining"] == (
            "True", "SomeResourcesRemain", "Some resources are remaining: configmaps. has 1 resource instances",
        )  # fmt: skip
        assert found["NamespaceFinalizersRemaining"] == (
            "True", "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances",
        )  # fmt: skip
        assert found["NamespaceDeletionContentFailure"][0] == "False"
        home.patch(CONFIG_MAPS, "held", {"metadata": {"finalizers": None}}, "shop")
        home.pass_time(20)
        assert not home.exists(NAMESPACES, "shop")


def test_pods_go_before_what_they_may_need() -> None:
    with house() as home:
        home.create(SECRETS, {"metadata": {"name": "s", "namespace": "shop"}})
        home.create(PODS, pod("running", "shop", node="n1"))
        home.delete(NAMESPACES, "shop")
        home.pass_time(25)
        assert home.get(PODS, "running", "shop")["metadata"]["deletionTimestamp"]
        assert home.exists(SECRETS, "s", "shop")
        home.delete(PODS, "running", "shop", grace_s=0)
        home.pass_time(30)
        assert not home.exists(NAMESPACES, "shop")


def test_other_finalizers_of_the_namespace_are_left_to_their_owners() -> None:
    with house() as home:
        body = {"metadata": {"name": "kept"}, "spec": {"finalizers": ["example.com/mine"]}}
        home.create(NAMESPACES, body)
        home.delete(NAMESPACES, "kept")
        home.pass_time(60)
        assert home.get(NAMESPACES, "kept")["spec"]["finalizers"] == ["example.com/mine"]
        assert {status for status, _, _ in conditions(home, "kept").values()} == {"False"}


def test_a_discovery_that_fails_holds_the_namespace_and_says_so() -> None:
    with house() as home:
        real = home.faulty.request

        async def failing(method: str, path: str, **more: Any) -> Any:
            if path == "/apis/batch/v1":
                raise TransportError("down")
            return await real(method, path, **more)

        home.faulty.request = failing  # type: ignore[method-assign]  # stands for a server that is down
        home.delete(NAMESPACES, "shop")
        home.pass_time(30)
        status, reason, message = conditions(home)["NamespaceDeletionDiscoveryFailure"]
        assert (status, reason) == ("True", "DiscoveryFailed")
        assert message.endswith("unable to retrieve the complete list of server APIs: batch/v1: down")
        home.faulty.request = real  # type: ignore[method-assign]  # as above
        home.pass_time(61)
        assert not home.exists(NAMESPACES, "shop")


@pytest.mark.parametrize("seed", range(3))
def test_namespaces_go_whatever_the_network_does(seed: int) -> None:
    with house(faults=STORM, seed=seed) as home:
        for number in range(10):
            home.create(CONFIG_MAPS, config_map(f"c{number}", "shop"))
        home.delete(NAMESPACES, "shop")
        home.pass_time(200)
        home.calm()
        home.pass_time(200)
        assert not home.exists(NAMESPACES, "shop") and home.names(CONFIG_MAPS, "shop") == []
        assert home.faulty.injected.total() > 20
