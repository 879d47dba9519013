"""Small problems with a bit of everything, drawn from a random source."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from holokube.karpenter.api.labels import ALL_WELL_KNOWN_LABELS
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.scheduling.problem import Problem, SolveOptions, Storage
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.resources import parse_resources
from holokube.pricing.instance_types import InstanceType, Offering, type_requirements

ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
ARCH = "kubernetes.io/arch"
CAPACITY = "karpenter.sh/capacity-type"
TYPE = "node.kubernetes.io/instance-type"
FAMILY = "example.com/family"
SIZE = "example.com/size"
TEAM = "example.com/team"
ZONES = ("a", "b", "c")
APPS = ("web", "db", "job")
WELL_KNOWN = ALL_WELL_KNOWN_LABELS | {FAMILY, SIZE}


def _some(rng: Random, items: Any, least: int = 1) -> list[Any]:
    return rng.sample(list(items), rng.randint(least, len(items)))


def _often(rng: Random, share: float) -> bool:
    return rng.random() < share


def catalogue(rng: Random) -> list[InstanceType]:
    found = []
    with_reserved = _often(rng, 0.3)
    for number in range(rng.randint(2, 6)):
        cpu = rng.choice((1, 2, 4, 8))
        arch = rng.choice(("amd64", "amd64", "arm64"))
        places = [
            Offering(zone, kind, round(cpu * (1 if kind == "on-demand" else 0.4) + rng.random(), 4), _often(rng, 0.9))
            for zone in _some(rng, ZONES)
            for kind in _some(rng, ("on-demand", "spot"))
        ]
        if with_reserved and _often(rng, 0.6):
            for reservation in _some(rng, ("r-1", "r-2")):
                slots = rng.randint(0, 2)
                places.append(Offering(rng.choice(ZONES), "reserved", 0.001 * number, True, reservation, slots))
        if _often(rng, 0.1):
            places.append(Offering("a", "spot", 0.2, capacity_override=parse_resources({"cpu": str(cpu + 2)})))
        labels = {FAMILY: rng.choice(("x", "y", "z")), SIZE: str(cpu)}
        resources = {"cpu": str(cpu), "memory": f"{cpu * rng.choice((2, 4))}Gi", "pods": str(rng.choice((4, 110)))}
        if _often(rng, 0.2):
            resources["example.com/gpu"] = "2"
        name = f"t{number}"
        requirements = type_requirements(name, arch, ("linux",), places, labels)
        overhead = parse_resources({"cpu": "100m", "memory": "10Mi"})
        found.append(InstanceType(name, requirements, parse_resources(resources), overhead, tuple(places)))
    return found


def pool(rng: Random, number: int) -> NodePool:
    requirements: list[dict[str, Any]] = []
    if _often(rng, 0.4):
        requirements.append({"key": ZONE, "operator": rng.choice(("In", "NotIn")), "values": _some(rng, ZONES[:2])})
    if _often(rng, 0.4):
        values = _some(rng, ("on-demand", "spot", "reserved"))
        requirements.append({"key": CAPACITY, "operator": "In", "values": values})
    if _often(rng, 0.2):
        requirements.append({"key": SIZE, "operator": rng.choice(("Gt", "Lt", "Gte", "Lte")), "values": ["2"]})
    if _often(rng, 0.25):
        few = rng.randint(1, 2)
        requirements.append({"key": rng.choice((TYPE, FAMILY)), "operator": "Exists", "minValues": few})
    if _often(rng, 0.3):
        team: dict[str, Any] = rng.choice((
            {"operator": "In", "values": ["red", "blue"]}, {"operator": "Exists"},
            {"operator": "NotIn", "values": ["red"]},
        ))  # fmt: skip
        requirements.append({"key": TEAM, **team})
    taints = [
        {"key": "dedicated", "value": rng.choice(("x", "y")), "effect": effect}
        for effect in ("NoSchedule", "PreferNoSchedule")
        if _often(rng, 0.15)
    ]
    spec: dict[str, Any] = {
        "template": {
            "metadata": {"labels": {"example.com/pool": f"label-{number % 2}"}},
            "spec": {
                "requirements": requirements, "taints": taints,
                "startupTaints": [{"key": "starting", "effect": "NoSchedule"}] if _often(rng, 0.2) else [],
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            },
        },
        "weight": rng.choice((1, 1, 10)),
    }  # fmt: skip
    if _often(rng, 0.3):
        spec["limits"] = rng.choice(({"cpu": "9"}, {"cpu": "5", "memory": "20Gi"}, {"nodes": "1"}, {"nodes": "0"}))
    return NodePool.of({"metadata": {"name": f"pool-{number}", "uid": f"u{number}"}, "spec": spec})


def _selector(rng: Random) -> dict[str, Any] | None:
    if _often(rng, 0.05):
        return None
    if _often(rng, 0.2):
        return {"matchExpressions": [{"key": "app", "operator": "In", "values": _some(rng, APPS)}]}
    return {"matchLabels": {"app": rng.choice(APPS)}}


def _term(rng: Random) -> dict[str, Any]:
    key = rng.choice((HOST, ZONE, ZONE, CAPACITY, TEAM))
    term: dict[str, Any] = {"topologyKey": key, "labelSelector": _selector(rng)}
    if _often(rng, 0.1):
        term["namespaceSelector"] = {"matchLabels": {"kind": "test"}}
    elif _often(rng, 0.1):
        term["namespaces"] = ["other"]
    return term


def _expression(rng: Random) -> dict[str, Any]:
    return rng.choice((
        {"key": ZONE, "operator": "In", "values": _some(rng, ZONES)},
        {"key": ZONE, "operator": "NotIn", "values": [rng.choice(ZONES)]},
        {"key": CAPACITY, "operator": "In", "values": [rng.choice(("spot", "on-demand"))]},
        {"key": TEAM, "operator": rng.choice(("In", "NotIn")), "values": ["red"]},
        {"key": TEAM, "operator": rng.choice(("Exists", "DoesNotExist"))},
        {"key": SIZE, "operator": rng.choice(("Gt", "Lt")), "values": [rng.choice(("1", "4"))]},
        {"key": HOST, "operator": rng.choice(("In", "NotIn")), "values": ["node-0"]},
        {"key": ARCH, "operator": "In", "values": ["amd64"]},
    ))  # fmt: skip


def _affinity(rng: Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if _often(rng, 0.25):
        terms = [
            {"matchExpressions": [_expression(rng) for _ in range(rng.randint(1, 2))]} for _ in range(rng.randint(1, 2))
        ]
        found["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    if _often(rng, 0.25):
        wishes = [
            {"weight": rng.randint(1, 9), "preference": {"matchExpressions": [_expression(rng)]}}
            for _ in range(rng.randint(1, 2))
        ]
        found.setdefault("nodeAffinity", {})["preferredDuringSchedulingIgnoredDuringExecution"] = wishes
    for kind in ("podAffinity", "podAntiAffinity"):
        if _often(rng, 0.2):
            found.setdefault(kind, {})["requiredDuringSchedulingIgnoredDuringExecution"] = [_term(rng)]
        if _often(rng, 0.15):
            wishes = [{"weight": rng.randint(1, 9), "podAffinityTerm": _term(rng)} for _ in range(rng.randint(1, 2))]
            found.setdefault(kind, {})["preferredDuringSchedulingIgnoredDuringExecution"] = wishes
    return found


def _constraint(rng: Random) -> dict[str, Any]:
    found: dict[str, Any] = {
        "topologyKey": rng.choice((ZONE, ZONE, HOST, CAPACITY, TEAM)), "maxSkew": rng.randint(1, 2),
        "whenUnsatisfiable": rng.choice(("DoNotSchedule", "ScheduleAnyway")), "labelSelector": _selector(rng),
    }  # fmt: skip
    if _often(rng, 0.15):
        found["minDomains"] = rng.randint(1, 4)
    if _often(rng, 0.2):
        found["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
    if _often(rng, 0.2):
        found["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
    if _often(rng, 0.15):
        found["matchLabelKeys"] = ["version"]
    return found


def pod_template(rng: Random) -> dict[str, Any]:
    requests = {"cpu": f"{rng.choice((100, 300, 900, 1500, 3000))}m", "memory": f"{rng.choice((100, 700, 3000))}Mi"}
    if _often(rng, 0.1):
        requests["example.com/gpu"] = "1"
    container: dict[str, Any] = {"name": "c", "resources": {"requests": requests}}
    if _often(rng, 0.15):
        container["ports"] = [{"hostPort": rng.choice((80, 81)), "protocol": "TCP"}]
        if _often(rng, 0.3):
            container["ports"][0]["hostIP"] = rng.choice(("10.0.0.1", "10.0.0.2"))
    spec: dict[str, Any] = {"containers": [container]}
    affinity = _affinity(rng)
    if affinity:
        spec["affinity"] = affinity
    if _often(rng, 0.15):
        selectors = ({ZONE: "a"}, {ARCH: "arm64"}, {TEAM: "red"}, {FAMILY: "x"}, {CAPACITY: "spot"})
        spec["nodeSelector"] = rng.choice(selectors)
    if _often(rng, 0.3):
        spec["topologySpreadConstraints"] = [_constraint(rng) for _ in range(rng.randint(1, 2))]
    if _often(rng, 0.3):
        spec["tolerations"] = [rng.choice((
            {"key": "dedicated", "operator": "Exists"}, {"key": "dedicated", "value": "x"}, {"operator": "Exists"},
        ))]  # fmt: skip
    if _often(rng, 0.12):
        claims = _some(rng, ("zonal", "either", "fresh"))
        spec["volumes"] = [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in claims]
    labels = {"app": rng.choice(APPS), "version": rng.choice(("1", "2")), "unwatched": str(rng.randint(0, 1))}
    return {"metadata": {"namespace": "default" if _often(rng, 0.9) else "other", "labels": labels}, "spec": spec}


def pods(rng: Random, prefix: str, most: int) -> list[dict[str, Any]]:
    templates = [pod_template(rng) for _ in range(rng.randint(1, 4))]
    found = []
    for number in range(rng.randint(1, most)):
        template = rng.choice(templates)
        name = f"{prefix}{number}"
        metadata = {**template["metadata"], "name": name, "uid": f"{rng.randint(0, 999):03d}-{name}"}
        found.append({"metadata": metadata, "spec": dict(template["spec"])})
    return found


def daemon(rng: Random, number: int) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "d", "resources": {"requests": {"cpu": f"{rng.choice((50, 200))}m"}}}
    if _often(rng, 0.3):
        container["ports"] = [{"hostPort": 80, "protocol": "TCP"}]
    spec: dict[str, Any] = {"containers": [container]}
    if _often(rng, 0.5):
        terms = [{"matchExpressions": [_expression(rng)]} for _ in range(rng.randint(1, 2))]
        required = {"nodeSelectorTerms": terms}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    if _often(rng, 0.5):
        spec["tolerations"] = [{"operator": "Exists"}]
    return {"metadata": {"name": f"daemon-{number}", "namespace": "kube-system", "uid": f"d{number}"}, "spec": spec}


def node(rng: Random, number: int, types: list[InstanceType], pools: list[NodePool]) -> StateNode:
    one = rng.choice(types)
    place = rng.choice(one.offerings)
    owner = rng.choice(pools)
    name = f"node-{number}"
    labels = {
        ZONE: place.zone, CAPACITY: place.capacity_type, TYPE: one.name, ARCH: min(one.requirements[ARCH].values),
        "karpenter.sh/nodepool": owner.name, HOST: name, FAMILY: min(one.requirements[FAMILY].values),
        "karpenter.sh/registered": "true", "karpenter.sh/initialized": rng.choice(("true", "true", "false")),
    }  # fmt: skip
    if _often(rng, 0.3):
        labels[TEAM] = rng.choice(("red", "blue"))
    if _often(rng, 0.1):
        del labels[ZONE]
    amounts = {"cpu": str(rng.choice((2, 4))), "memory": "8Gi", "pods": "10"}
    obj = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"providerID": f"kwok://{name}", "taints": [
            {"key": key, "effect": effect} for key, effect in
            (("dedicated", "NoSchedule"), ("starting", "NoSchedule"), ("node.kubernetes.io/not-ready", "NoSchedule"))
            if _often(rng, 0.12)
        ]},
        "status": {"allocatable": amounts, "capacity": amounts},
    }  # fmt: skip
    claim = {
        "metadata": {"name": f"claim-{number}", "labels": labels},
        "spec": {"startupTaints": [{"key": "starting", "effect": "NoSchedule"}]},
        "status": {"providerID": f"kwok://{name}", "allocatable": amounts, "capacity": amounts},
    }
    bound = []
    for pod in pods(rng, f"bound-{number}-", 3) if _often(rng, 0.7) else ():
        status = {"phase": rng.choice(("Running", "Running", "Running", "Succeeded"))}
        placed = {**pod, "spec": {**pod["spec"], "nodeName": name}, "status": status}
        if _often(rng, 0.1):
            placed["metadata"] = {**pod["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        bound.append(placed)
    is_managed = _often(rng, 0.8)
    return StateNode(obj, claim if is_managed else None, tuple(bound), _often(rng, 0.1))


def _storage() -> Storage:
    zone_a = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]
    either = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]} for zone in ("b", "c")]
    fresh = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "c"]}]}]
    objects: list[dict[str, Any]] = [
        {"kind": "StorageClass", "metadata": {"name": "disk"}, "provisioner": "disk.csi", "allowedTopologies": fresh}
    ]
    for name, terms in (("zonal", zone_a), ("either", either)):
        affinity = {"required": {"nodeSelectorTerms": terms}}
        spec = {"csi": {"driver": "disk.csi"}, "nodeAffinity": affinity}
        objects.append({"kind": "PersistentVolume", "metadata": {"name": f"pv-{name}"}, "spec": spec})
    for namespace in ("default", "other"):
        for name in ("zonal", "either", "fresh"):
            spec = {"storageClassName": "disk"} if name == "fresh" else {"volumeName": f"pv-{name}"}
            metadata = {"name": name, "namespace": namespace}
            objects.append({"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    return Storage.of(objects)


def problem(rng: Random, most_pods: int = 10) -> Problem:
    """A problem with up to so many pods."""
    types = catalogue(rng)
    pools = [pool(rng, number) for number in range(rng.randint(1, 3))]
    nodes = [node(rng, number, types, pools) for number in range(rng.randint(0, 4))]
    options = SolveOptions(
        preference_policy=rng.choice(("Respect", "Respect", "Ignore")),
        min_values_policy=rng.choice(("Strict", "BestEffort")),
        reserved_mode=rng.choice(("strict", "fallback")),
    )
    limits = {one.name: {"disk.csi": rng.randint(0, 2)} for one in types if _often(rng, 0.3)}
    return Problem(
        pools, {one.name: types for one in pools}, pods(rng, "pod-", most_pods),
        [daemon(rng, number) for number in range(rng.randint(0, 2))], nodes, storage=_storage(),
        namespaces={"default": {"kind": "test"}, "other": {}}, volume_limits=limits, options=options,
        well_known=WELL_KNOWN,
    )  # fmt: skip


def tamed(given: Problem) -> Problem:
    """A problem without what upstream gets wrong, and the solver with it, so that a good plan keeps every rule.

    A label that a node does not have counts as known once a pod must not find it, or when a pod, two topology groups
    or two volumes contradict each other about it. A spread constraint forgets its counts when a pod gives up a required
    alternative or its aversion to PreferNoSchedule. Reserved capacity is pinned for types that have none. Nodes that
    are going do not count against limits, and ports of daemons that are still to come are not kept free.
    """
    types = [one.with_offerings(o for o in one.offerings if not o.is_reserved) for one in given.types_of_pool["pool-0"]]
    return replace(
        given,
        pools=[_without_preference(one) for one in given.pools],
        types_of_pool=dict.fromkeys(given.types_of_pool, types),
        pods=[_tamed_pod(pod) for pod in given.pods],
        daemon_pods=[_tamed_pod(pod) for pod in given.daemon_pods if "ports" not in pod["spec"]["containers"][0]],
        state_nodes=[replace(node, is_marked=False, pods=()) for node in given.state_nodes if ZONE in node.labels],
    )


def _without_preference(given: NodePool) -> NodePool:
    spec = given.object["spec"]
    node = spec["template"]["spec"]
    taints = [taint for taint in node["taints"] if taint["effect"] != "PreferNoSchedule"]
    template = {**spec["template"], "spec": {**node, "taints": taints}}
    return NodePool.of({**given.object, "spec": {**spec, "template": template}})


def _tamed_pod(pod: dict[str, Any]) -> dict[str, Any]:
    spec = dict(pod["spec"])
    affinity = {kind: dict(part) for kind, part in (spec.get("affinity") or {}).items()}
    for kind, part in affinity.items():
        for name, terms in part.items():
            if kind == "nodeAffinity" and name.startswith("required"):
                first = [e for e in terms["nodeSelectorTerms"][0]["matchExpressions"] if e["key"] != TEAM]
                part[name] = {"nodeSelectorTerms": [{"matchExpressions": first or [_ANYWHERE]}]}
            else:
                part[name] = [term for term in terms if TEAM not in repr(term)]
    spec["affinity"] = affinity
    constraints = spec.get("topologySpreadConstraints") or []
    spec["topologySpreadConstraints"] = [one for one in constraints if one["topologyKey"] != TEAM]
    if TEAM in (spec.get("nodeSelector") or {}):
        del spec["nodeSelector"]
    return {**pod, "spec": spec}


_ANYWHERE: dict[str, Any] = {"key": ZONE, "operator": "Exists"}


def with_options(given: Problem, **options: Any) -> Problem:
    """The same problem, to be solved otherwise."""
    return replace(given, options=replace(given.options, **options))
