"""Seeded batches of pods and catalogues of types for measuring how near to the cheapest plans come.

``plain`` and ``big`` pods all differ, as in a cluster of many small workloads; ``mixed`` ones have few shapes that only
fit well together, on a catalogue like that of a large cloud.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from holokube.base.rng import Rng
from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.scheduling.problem import Problem
from holokube.kube.resources import ResourceVector
from holokube.pricing.instance_types import InstanceType, Offering, type_requirements

JsonObject = dict[str, Any]
ZONES: Final = ("zone-a", "zone-b", "zone-c")
_MIB: Final = 2**20 * 1000
_GIB: Final = 2**30 * 1000
_SIZES: Final = (("large", 2), ("xlarge", 4), ("2xlarge", 8), ("4xlarge", 16), ("8xlarge", 32), ("16xlarge", 64))


def pool(*requirements: JsonObject, **spec: Any) -> NodePool:
    template = {"spec": {"requirements": list(requirements), "nodeClassRef": {"group": "g", "kind": "K", "name": "c"}}}
    return NodePool.of({"metadata": {"name": "default"}, "spec": {"template": template, **spec}})


ON_DEMAND: Final = {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}
AMD64: Final = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}


def pod(name: str, cpu_milli: int, memory_mib: int, **spec: Any) -> JsonObject:
    requests = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}
    labels = spec.pop("labels", {})
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels},
        "spec": {"containers": [{"name": "app", "resources": {"requests": requests}}], **spec},
    }


def small_catalogue(seed: int = 0) -> list[InstanceType]:
    """Three shapes in six sizes for two architectures, with prices that are nearly, but not quite, by size."""
    rng = Rng(f"catalogue {seed}")
    overhead = {"cpu": 100, "memory": 10 * _MIB}
    types = []
    for arch, discount in (("amd64", 1.0), ("arm64", 0.8)):
        for family, gib_per_cpu, cpu_price in (("c", 2, 0.0425), ("m", 4, 0.048), ("r", 8, 0.063)):
            for size, cpu in _SIZES:
                price = cpu * cpu_price * discount * rng.uniform(0.99, 1.01)
                offerings = []
                for zone in ZONES:
                    offerings.append(Offering(zone, "on-demand", round(price, 6)))
                    offerings.append(Offering(zone, "spot", round(price * rng.uniform(0.28, 0.45), 6)))
                name = f"{family}{'g' if arch == 'arm64' else ''}.{size}"
                types.append(_type(name, arch, cpu, cpu * gib_per_cpu, 110, offerings, overhead))
    return types


def cloud_catalogue(seed: int = 0) -> list[InstanceType]:
    """About 660 types: shapes, generations and sizes up to giants, and what the system keeps grows with the size."""
    rng = Rng(f"cloud {seed}")
    shapes = (("c", 2, 0.0425), ("m", 4, 0.048), ("r", 8, 0.063), ("x", 16, 0.0835))
    generations = (
        ("5", 1.0), ("5a", 0.9), ("5n", 1.27), ("5d", 1.18), ("6i", 1.0), ("6a", 0.9), ("6g", 0.8), ("6gd", 0.94),
        ("6in", 1.3), ("7i", 1.05), ("7a", 1.2), ("7g", 0.85), ("7gd", 1.06), ("8g", 0.9), ("8i", 1.1),
    )  # fmt: skip
    sizes = (
        ("large", 2), ("xlarge", 4), ("2xlarge", 8), ("4xlarge", 16), ("8xlarge", 32), ("12xlarge", 48),
        ("16xlarge", 64), ("24xlarge", 96), ("32xlarge", 128), ("48xlarge", 192),
    )  # fmt: skip
    types = []
    for family, gib_per_cpu, cpu_price in shapes:
        for generation, factor in generations:
            for size, cpu in (("medium", 1), *sizes) if "g" in generation else sizes:
                gib = cpu * gib_per_cpu
                pods = {1: 8, 2: 29, 4: 58, 8: 58}.get(cpu, 110 if cpu < 16 else 234)
                overhead = {"cpu": 60 + 10 * min(cpu, 4) + cpu * 5 // 2, "memory": (355 + 11 * pods) * _MIB}
                price = round(cpu * cpu_price * factor * rng.uniform(0.995, 1.005), 6)
                offerings = [Offering(zone, "on-demand", price) for zone in ZONES]
                offerings += [Offering(zone, "spot", round(price * rng.uniform(0.3, 0.7), 6)) for zone in ZONES]
                arch = "arm64" if "g" in generation else "amd64"
                types.append(_type(f"{family}{generation}.{size}", arch, cpu, gib, pods, offerings, overhead))
    for tib in (3, 6, 9, 12, 18, 24):
        giant = [Offering(zone, "on-demand", round(10.01 * tib, 6)) for zone in ZONES[:2]]
        name = f"u-{tib}tb1.56xlarge"
        types.append(_type(name, "amd64", 224, tib * 1024, 737, giant, {"cpu": 700, "memory": 9000 * _MIB}))
    return types


def _type(
    name: str, arch: str, cpu: int, gib: int, pods: int, offerings: Sequence[Offering], overhead: ResourceVector
) -> InstanceType:
    capacity = {"cpu": cpu * 1000, "memory": gib * _GIB, "pods": pods * 1000}
    requirements = type_requirements(name, arch, ("linux",), offerings)
    return InstanceType(name, requirements, capacity, overhead, tuple(offerings))


def plain_pods(seed: int, count: int = 250) -> list[JsonObject]:
    rng = Rng(f"plain {seed}")
    return [
        pod(f"p{number:04}", 100 + rng.randrange(1400) + rng.randrange(1400), 100 + rng.randrange(8093))
        for number in range(count)
    ]


def big_pods(seed: int, count: int = 250) -> list[JsonObject]:
    rng = Rng(f"big {seed}")
    return [
        pod(f"p{number:04}", 1000 + rng.randrange(15_800), 400 + rng.randrange(65_100)) for number in range(count)
    ]


def shaped_pods(seed: int, shapes: Iterable[tuple[int, int]], count: int = 120) -> list[JsonObject]:
    """Pods of few shapes (milli-cpu, MiB), drawn at random."""
    rng = Rng(f"shaped {seed}")
    known = list(shapes)
    return [pod(f"p{number:04}", *known[rng.randrange(len(known))]) for number in range(count)]


LOPSIDED: Final = ((3500, 1024), (250, 14_029))
"""Hungry for cpu or for memory, never for both."""
NINE: Final = tuple((cpu, gib * 1024) for cpu in (500, 1000, 2000) for gib in (1, 4, 8))


def problem(pods: Sequence[JsonObject], types: Sequence[InstanceType], *requirements: JsonObject) -> Problem:
    given = pool(*requirements)
    return Problem([given], {given.name: list(types)}, pods=pods)
