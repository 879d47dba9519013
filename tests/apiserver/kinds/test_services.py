"""Addresses and ports of Services, and what a change of type does to them."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.apiserver.kinds.service_addresses import NODE_PORTS, SERVICE_RANGE
from holokube.kube.errors import Invalid
from holokube.kube.types import JsonObject
from tests.apiserver.worlds import World, in_world


def service(name: str = "web", **spec: Any) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"ports": [{"port": 80}], **spec}}


def test_a_service_gets_an_address_of_the_range_and_the_usual_defaults() -> None:
    async def body(world: World) -> JsonObject:
        return await world.create("services", service(selector={"app": "web"}))

    spec = in_world(body)["spec"]
    address = spec.pop("clusterIP")
    assert IPv4Address(address) in SERVICE_RANGE
    assert spec.pop("clusterIPs") == [address]
    assert spec == {
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "selector": {"app": "web"},
        "type": "ClusterIP",
        "sessionAffinity": "None",
        "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
    }


def test_applying_the_same_manifest_again_keeps_what_the_server_chose() -> None:
    async def body(world: World) -> tuple[JsonObject, JsonObject]:
        manifest = service(type="NodePort")
        return await world.create("services", manifest), await world.update("services", manifest)

    before, after = in_world(body)
    assert after["spec"] == before["spec"]


def test_tcp_and_udp_of_one_port_share_a_node_port() -> None:
    async def body(world: World) -> list[int]:
        ports = [{"name": "tcp", "port": 53}, {"name": "udp", "port": 53, "protocol": "UDP"}, {"name": "w", "port": 80}]
        made = await world.create("services", service(type="NodePort", ports=ports))
        return [port["nodePort"] for port in made["spec"]["ports"]]

    tcp, udp, web = in_world(body)
    assert tcp == udp != web
    assert {tcp, web} <= set(NODE_PORTS)


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"clusterIP": "10.96.0.1"}, "spec.clusterIPs", "provided IP is already allocated"),
        ({"clusterIP": "10.97.0.1"}, "spec.clusterIPs", "The range of valid IPs is 10.96.0.0/16"),
        ({"clusterIP": "10.96.255.255"}, "spec.clusterIPs", "is not in the valid range"),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]},
            "spec.ports[0].nodePort",
            "provided port is not in the valid range. The range of valid ports is 30000-32767",
        ),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30100}]},
            "spec.ports[0].nodePort",
            "provided port is already allocated",
        ),
    ],
)
def test_what_cannot_be_had_is_refused(spec: JsonObject, field: str, message: str) -> None:
    async def body(world: World) -> None:
        await world.create("services", service("taken", type="NodePort", ports=[{"port": 1, "nodePort": 30100}]))
        await world.create("services", service(**spec))

    with pytest.raises(Invalid) as refused:
        in_world(body)
    [cause] = refused.value.causes
    assert cause.field == field
    assert message in cause.message


def test_becoming_an_external_name_gives_the_address_and_the_ports_back() -> None:
    async def body(world: World) -> tuple[JsonObject, JsonObject]:
        address, port = "10.96.0.50", 30200
        ports = [{"port": 80, "nodePort": port}]
        await world.create("services", service(type="NodePort", clusterIP=address, ports=ports))
        external = await world.patch("services", "web", {"spec": {"type": "ExternalName", "externalName": "a.example"}})
        other = service("other", type="NodePort", clusterIP=address, ports=ports)
        return external["spec"], await world.create("services", other)

    external, other = in_world(body)
    assert external == {
        "type": "ExternalName",
        "externalName": "a.example",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "sessionAffinity": "None",
    }
    assert other["spec"]["clusterIP"] == "10.96.0.50"


def test_a_load_balancer_that_steps_down_loses_its_status_and_node_ports() -> None:
    async def body(world: World) -> JsonObject:
        await world.create("services", service(type="LoadBalancer"))
        status = {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}
        await world.patch("services", "web", status, subresource="status")
        return await world.patch("services", "web", {"spec": {"type": "ClusterIP"}})

    after = in_world(body)
    assert after["status"] == {"loadBalancer": {}}
    assert "nodePort" not in after["spec"]["ports"][0]
    assert not {"allocateLoadBalancerNodePorts", "externalTrafficPolicy"} & set(after["spec"])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["ClusterIP", "NodePort", "gone"])), max_size=20))
def test_no_two_services_ever_share_an_address_or_a_node_port(steps: list[tuple[str, str]]) -> None:
    async def body(world: World) -> None:
        for name, kind in steps:
            known = name in world.names("services", namespace="default")
            if kind == "gone":
                if known:
                    await world.delete("services", name)
            elif known:
                await world.patch("services", name, {"spec": {"type": kind}})
            else:
                await world.create("services", service(name, type=kind))
            found = world.registry.objects("", "services")
            addresses = [obj["spec"]["clusterIP"] for obj in found]
            ports = [port["nodePort"] for obj in found for port in obj["spec"]["ports"] if "nodePort" in port]
            assert len(set(addresses)) == len(addresses)
            assert len(set(ports)) == len(ports)

    in_world(body)
