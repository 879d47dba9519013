from __future__ import annotations

from typing import Any

from holokube.client.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from holokube.workloads import endpoint_mirroring_controller
from tests.workloads.housekeeping import STORM, House

SERVICE = {"metadata": {"name": "outside", "namespace": "default"}, "spec": {"ports": [{"port": 80}]}}


def by_hand(*ips: str) -> dict[str, Any]:
    subsets = [{"addresses": [{"ip": ip} for ip in ips], "ports": [{"port": 8080}]}]
    return {"metadata": {"name": "outside", "namespace": "default"}, "subsets": subsets}


def addresses(home: House) -> list[str]:
    slices = home.run(home.client.list(ENDPOINT_SLICES, "default")).items
    return sorted(
        endpoint["addresses"][0] for s in slices for endpoint in s["endpoints"]
        if s["metadata"]["labels"].get("kubernetes.io/service-name") == "outside"
    )  # fmt: skip


def test_slices_follow_endpoints_that_are_written_by_hand() -> None:
    with House(endpoint_mirroring_controller.build) as home:
        home.create(SERVICES, SERVICE)
        home.create(ENDPOINTS, by_hand("192.0.2.1"))
        home.pass_time(1)
        assert addresses(home) == ["192.0.2.1"]
        home.patch(ENDPOINTS, "outside", {"subsets": by_hand("192.0.2.1", "192.0.2.2")["subsets"]})
        home.pass_time(1)
        assert addresses(home) == ["192.0.2.1", "192.0.2.2"]
        home.delete(ENDPOINTS, "outside")
        home.pass_time(1)
        assert addresses(home) == []


def test_a_service_that_gets_a_selector_loses_its_mirrors() -> None:
    with House(endpoint_mirroring_controller.build) as home:
        home.create(SERVICES, SERVICE)
        home.create(ENDPOINTS, by_hand("192.0.2.1"))
        home.pass_time(1)
        home.patch(SERVICES, "outside", {"spec": {"selector": {"app": "a"}}})
        home.pass_time(1)
        assert addresses(home) == []


def test_mirrors_come_right_whatever_the_network_does() -> None:
    with House(endpoint_mirroring_controller.build, faults=STORM, seed=1) as home:
        home.create(SERVICES, SERVICE)
        home.create(ENDPOINTS, by_hand("192.0.2.1"))
        for number in range(2, 20):
            home.patch(ENDPOINTS, "outside", {"subsets": by_hand(f"192.0.2.{number}")["subsets"]})
            home.pass_time(10)
        home.calm()
        home.pass_time(120)
        assert addresses(home) == ["192.0.2.19"]
        assert home.faulty.injected.total() > 5
