"""From the Service that a webhook names to an address that this process can reach."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from typing import Any

from holokube.apiserver.kinds.base import Lookup
from holokube.kube.types import JsonObject

Address = tuple[str, int]
ServiceResolver = Callable[[str, str, int], Address | None]
"""From namespace, name and port of a Service to host and port; None if it does not know."""


class ServiceError(Exception):
    """No way to a Service was found."""


def resolve(
    lookup: Lookup, resolver: ServiceResolver | None, namespace: str, name: str, port: int
) -> Address:
    """Where a Service can be reached from here.

    There is no cluster network, so cluster and pod addresses lead nowhere. What does lead somewhere:
    endpoints on this machine, an ExternalName, and whatever the resolver says.
    """
    service = lookup.find("", "services", namespace, name)
    if service is not None:
        found = _external(service, port) or next(_endpoints(lookup, namespace, name, service, port), None)
        if found is not None:
            return found
    answer = resolver(namespace, name, port) if resolver is not None else None
    if answer is not None:
        return answer
    if service is None:
        raise ServiceError(f'service "{name}" not found')
    if _service_port(service, port) is None:
        raise ServiceError(f'no service port {port} found for service "{name}"')
    raise ServiceError(f'no endpoints available for service "{name}"')


def _external(service: JsonObject, port: int) -> Address | None:
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName" and spec.get("externalName"):
        return spec["externalName"], port
    return None


def _service_port(service: JsonObject, port: int) -> JsonObject | None:
    ports = (service.get("spec") or {}).get("ports") or ()
    return next((one for one in ports if one.get("port") == port), None)


def _endpoints(
    lookup: Lookup, namespace: str, name: str, service: JsonObject, port: int
) -> Iterator[Address]:
    wanted = _service_port(service, port)
    if wanted is None:
        return
    port_name = wanted.get("name", "")
    for slice_ in lookup.objects("discovery.k8s.io", "endpointslices", namespace):
        if (slice_["metadata"].get("labels") or {}).get("kubernetes.io/service-name") != name:
            continue
        for endpoint in slice_.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready") is not False:
                yield from _local(endpoint.get("addresses"), slice_.get("ports"), port_name)
    endpoints = lookup.find("", "endpoints", namespace, name)
    for subset in (endpoints or {}).get("subsets") or ():
        addresses = [one.get("ip", "") for one in subset.get("addresses") or ()]
        yield from _local(addresses, subset.get("ports"), port_name)


def _local(addresses: Any, ports: Any, port_name: str) -> Iterator[Address]:
    for one in ports or ():
        if (one.get("name") or "") == port_name and one.get("port"):
            for address in addresses or ():
                if _is_loopback(address):
                    yield address, one["port"]


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
