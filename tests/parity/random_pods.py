"""Random pods that use every field a filter looks at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tests.builders import JsonObject
from tests.parity.draws import (
    NAMESPACES,
    RACK,
    REGION,
    TOPOLOGIES,
    ZONE,
    ZONES,
    Draws,
    label_selector,
    namespace_selector,
    pod_labels,
    set_expression,
)
from tests.parity.random_nodes import EFFECTS, IMAGES, TAINT_KEYS

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
RUNTIME_CLASS = {
    "apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "parity-sandbox"},
    "handler": "sandbox", "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
}  # fmt: skip


class Focus(NamedTuple):
    """How likely each kind of demand is, so that some clusters are about one filter above all."""

    node_selector: float = 0.15
    node_affinity: float = 0.3
    pod_affinity: float = 0.25
    anti_affinity: float = 0.25
    existing_affinity: float = 0.1
    existing_anti_affinity: float = 0.25
    tolerations: float = 0.55
    spread: float = 0.3
    ports: float = 0.2
    volumes: float = 0.5
    is_easy: bool = False
    """Whether resources, taints and cordons are no great hindrance."""


FOCUSES = {
    "mixed": Focus(),
    "topology": Focus(0.05, 0.1, 0.4, 0.3, 0.1, 0.35, 0.4, 0.6, 0.0, 0.0, True),
    "storage": Focus(0.05, 0.05, 0.0, 0.0, 0.0, 0.0, 0.4, 0.0, 0.0, 1.0, True),
    "node": Focus(0.2, 0.6, 0.0, 0.0, 0.0, 0.0, 0.7, 0.0, 0.4, 0.0),
}


def random_pod(
    draws: Draws, name: str, node_names: Sequence[str], focus: Focus, *, node: str = ""
) -> JsonObject:
    """A pod for the filters: on ``node``, or pending."""
    spec = _resources(draws, is_small=bool(node) or focus.is_easy)
    if node:
        spec["nodeName"] = node
    elif draws.chance(focus.node_selector):
        spec["nodeSelector"] = draws.one(({"disk": "ssd"}, {ZONE: draws.one(ZONES)}, {"disk": "hdd", RACK: "k1"}))
    affinity: JsonObject = {}
    if not node and draws.chance(focus.node_affinity):
        affinity["nodeAffinity"] = {REQUIRED: {"nodeSelectorTerms": draws.many(
            1, 3, lambda: node_term(draws, node_names)
        )}}  # fmt: skip
    if draws.chance(focus.existing_affinity if node else focus.pod_affinity):
        affinity["podAffinity"] = {REQUIRED: draws.many(1, 2, lambda: pod_term(draws))}
    if draws.chance(focus.existing_anti_affinity if node else focus.anti_affinity):
        affinity["podAntiAffinity"] = {REQUIRED: draws.many(1, 2, lambda: pod_term(draws))}
    if affinity:
        spec["affinity"] = affinity
    if draws.chance(focus.tolerations):
        spec["tolerations"] = draws.many(1, 3, lambda: toleration(draws))
    if not node and draws.chance(focus.spread):
        spec["topologySpreadConstraints"] = spread_constraints(draws)
    _add_ports(draws, spec, focus.ports)
    return _pod(name, draws.one(NAMESPACES), pod_labels(draws), spec)


def scored_pod(draws: Draws, name: str, node_names: Sequence[str], *, node: str = "") -> JsonObject:
    """A pod for the scores: few hard demands, many preferences, images that some nodes have."""
    spec = _resources(draws, is_small=True)
    for container in spec["containers"]:
        container["image"] = draws.one((*IMAGES, "registry.example/none:1", "registry.example/small"))
    if node:
        spec["nodeName"] = node
    affinity: JsonObject = {}
    if draws.chance(0.45):
        affinity["nodeAffinity"] = {PREFERRED: draws.many(1, 3, lambda: {
            "weight": draws.between(1, 100), "preference": node_term(draws, node_names),
        })}  # fmt: skip
    if draws.chance(0.4):
        affinity["podAffinity"] = _preferences(draws)
    if draws.chance(0.35):
        affinity["podAntiAffinity"] = _preferences(draws)
    if node and draws.chance(0.3):
        affinity.setdefault("podAffinity", {})[REQUIRED] = [pod_term(draws)]
    if affinity:
        spec["affinity"] = affinity
    if draws.chance(0.4):
        spec["tolerations"] = draws.many(1, 2, lambda: toleration(draws))
    if draws.chance(0.45):
        spec["topologySpreadConstraints"] = spread_constraints(draws, anyway=0.9)
    return _pod(name, draws.one(NAMESPACES), pod_labels(draws), spec)


def _pod(name: str, namespace: str, labels: dict[str, str], spec: JsonObject) -> JsonObject:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _preferences(draws: Draws) -> JsonObject:
    return {PREFERRED: draws.many(1, 2, lambda: {
        "weight": draws.between(1, 100), "podAffinityTerm": pod_term(draws),
    })}  # fmt: skip


def _resources(draws: Draws, *, is_small: bool) -> JsonObject:
    """Containers, init containers, sidecars, overhead and pod-level resources."""
    spec: JsonObject = {"containers": [
        _container(draws, f"c{i}", is_small) for i in range(draws.between(1, 2))
    ]}  # fmt: skip
    if draws.chance(0.2):
        spec["initContainers"] = [_init_container(draws, f"i{i}", is_small) for i in range(draws.between(1, 3))]
    if draws.chance(0.08):
        spec["runtimeClassName"] = RUNTIME_CLASS["metadata"]["name"]
        spec["overhead"] = RUNTIME_CLASS["overhead"]["podFixed"]
    if draws.chance(0.1):
        # At least as much as all containers together may ask for.
        spec["resources"] = {"requests": {"cpu": draws.one(("5", "6"))}}
        if draws.chance(0.5):
            spec["resources"]["requests"]["memory"] = draws.one(("9Gi", "12Gi"))
    return spec


def _container(draws: Draws, name: str, is_small: bool) -> JsonObject:
    requests: JsonObject = {}
    limits: JsonObject = {}
    if draws.chance(0.7):
        requests["cpu"] = draws.one(("50m", "100m", "0.3") if is_small else ("100m", "500m", "0.7", "1500m", "2"))
    if draws.chance(0.6):
        requests["memory"] = draws.one(("64Mi", "100M") if is_small else ("64Mi", "500M", "1Gi", "2500Mi"))
    if not is_small and draws.chance(0.1):
        requests["ephemeral-storage"] = draws.one(("1Gi", "6Gi"))
    if not is_small and draws.chance(0.1):
        requests["example.com/gpu"] = limits["example.com/gpu"] = draws.one(("1", "2"))
    if not is_small and draws.chance(0.03):
        requests["example.com/fpga"] = limits["example.com/fpga"] = "1"
    if not is_small and requests.get("memory") and draws.chance(0.1):
        requests["hugepages-2Mi"] = limits["hugepages-2Mi"] = draws.one(("4Mi", "32Mi"))
    resources: JsonObject = {"requests": requests}
    if limits:
        resources["limits"] = limits
    return {"name": name, "image": "registry.example/small:1", "resources": resources}


def _init_container(draws: Draws, name: str, is_small: bool) -> JsonObject:
    container = _container(draws, name, is_small or draws.chance(0.5))
    if draws.chance(0.5):
        container["restartPolicy"] = "Always"
    return container


def _add_ports(draws: Draws, spec: JsonObject, probability: float) -> None:
    taken = set()
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        if not draws.chance(probability):
            continue
        ports = []
        for _ in range(draws.between(1, 2)):
            port: JsonObject = {"containerPort": 80, "hostPort": draws.one((8080, 9090))}
            port["protocol"] = draws.one(("TCP", "TCP", "UDP", "SCTP"))
            if draws.chance(0.4):
                port["hostIP"] = draws.one(("127.0.0.1", "10.0.0.1", "0.0.0.0"))
            key = (port["hostPort"], port["protocol"])
            if key not in taken:
                taken.add(key)
                ports.append(port)
        if ports:
            container["ports"] = ports


def node_term(draws: Draws, node_names: Sequence[str]) -> JsonObject:
    term: JsonObject = {}
    if draws.chance(0.85):
        term["matchExpressions"] = draws.many(1, 2, lambda: node_expression(draws))
    if draws.chance(0.2):
        term["matchFields"] = [{
            "key": "metadata.name", "operator": draws.one(("In", "In", "NotIn")), "values": [draws.one(node_names)],
        }]  # fmt: skip
    return term


def node_expression(draws: Draws) -> JsonObject:
    if draws.chance(0.3):
        value = draws.one(("1", "4", "8", "15", "0"))
        return {"key": "cores", "operator": draws.one(("Gt", "Lt")), "values": [value]}
    key, values = draws.one((
        (ZONE, ZONES), ("disk", ("ssd", "hdd", "nvme")), (RACK, ("k1", "k2", "k3")), (REGION, ("r1", "r2")),
        ("cores", ("2", "8", "many")), ("absent", ("x",)),
    ))  # fmt: skip
    return set_expression(draws, key, values)


def pod_term(draws: Draws) -> JsonObject:
    term: JsonObject = {"topologyKey": draws.one(TOPOLOGIES)}
    form = draws.rng.random()
    if form < 0.08:
        pass
    elif form < 0.14:
        term["labelSelector"] = {}
    elif form < 0.3:
        kind = draws.one(("matchLabelKeys", "mismatchLabelKeys"))
        term[kind] = [draws.one(("version", "tier"))]
        term["labelSelector"] = label_selector(draws, avoid=term[kind])
    else:
        term["labelSelector"] = label_selector(draws)
    if draws.chance(0.25):
        term["namespaces"] = draws.some((*NAMESPACES, "parity-none"), 1, 2)
    if draws.chance(0.25):
        term["namespaceSelector"] = namespace_selector(draws)
    return term


def toleration(draws: Draws) -> JsonObject:
    if draws.chance(0.1):
        entry: JsonObject = {"operator": "Exists"}
    else:
        entry = {"key": draws.one(TAINT_KEYS)}
        operator = draws.one(("Exists", "Equal", ""))
        if operator:
            entry["operator"] = operator
        if operator != "Exists" and draws.chance(0.7):
            entry["value"] = draws.one(("a", "b"))
    if draws.chance(0.6):
        entry["effect"] = draws.one(EFFECTS)
        if entry["effect"] == "NoExecute" and draws.chance(0.3):
            entry["tolerationSeconds"] = 300
    return entry


def spread_constraints(draws: Draws, *, anyway: float = 0.2) -> list[JsonObject]:
    found: dict[tuple[str, str], JsonObject] = {}
    for _ in range(draws.between(1, 3)):
        when = "ScheduleAnyway" if draws.chance(anyway) else "DoNotSchedule"
        constraint: JsonObject = {
            "topologyKey": draws.one(TOPOLOGIES), "maxSkew": draws.between(1, 3), "whenUnsatisfiable": when,
        }  # fmt: skip
        if draws.chance(0.2):
            constraint["matchLabelKeys"] = [draws.one(("version", "tier"))]
        if draws.chance(0.05):
            constraint["labelSelector"] = {}
        elif "matchLabelKeys" in constraint or draws.chance(0.95):
            constraint["labelSelector"] = label_selector(draws, avoid=constraint.get("matchLabelKeys", ()))
        if when == "DoNotSchedule" and draws.chance(0.3):
            constraint["minDomains"] = draws.between(1, 4)
        if draws.chance(0.3):
            constraint["nodeAffinityPolicy"] = draws.one(("Honor", "Ignore"))
        if draws.chance(0.3):
            constraint["nodeTaintsPolicy"] = draws.one(("Honor", "Ignore"))
        found[(constraint["topologyKey"], when)] = constraint
    return list(found.values())

