"""Seeded batches of pods that have no constraints but their size: how cheap can the nodes for them be?"""

from __future__ import annotations

import random
from typing import Any

JsonObject = dict[str, Any]

FAMILIES = ("plain", "big", "two-shapes", "nine-shapes")


def batch(family: str, seed: int) -> JsonObject:
    """A problem. plain: up to 3 cores and 8 GiB; big: up to 16 and 64, and a giant; shapes: few sizes, far apart."""
    rng = random.Random(f"{family}/{seed}")
    pods = [_pod(number, *_size(rng, family, number)) for number in range(250 if family in ("plain", "big") else 120)]
    requirements = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
    ]
    pool = {"metadata": {"name": "default"}, "spec": {"template": {"spec": {"requirements": requirements}}}}
    return {"nodePools": [pool], "pods": pods}


def _size(rng: random.Random, family: str, number: int) -> tuple[int, int]:
    """Millicores and MiB."""
    if family == "plain":
        return rng.randint(100, 2_800), rng.randint(128, 8_192)
    if family == "big":
        return (rng.randint(92_000, 94_500) if number == 0 else rng.randint(1_000, 16_500)), rng.randint(512, 65_536)
    if family == "two-shapes":
        return rng.choice(((3_500, 1_024), (250, 14_000)))
    return rng.choice((500, 1_000, 2_000)), rng.choice((1_024, 4_096, 8_192))


def _pod(number: int, cpu_milli: int, memory_mib: int) -> JsonObject:
    requests = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}
    return {
        "metadata": {"name": f"pod-{number:04}", "namespace": "default", "uid": f"uid-{number:04}"},
        "spec": {"containers": [{"name": "c", "image": "c", "resources": {"requests": requests}}]},
    }


def catalog() -> list[JsonObject]:
    """Three families, each machine of the larger ones twice the next smaller one and a little cheaper by the core."""
    types = []
    for family, gib_per_cpu, base in (("c", 2, 0.0425), ("m", 4, 0.048), ("r", 8, 0.063)):
        for cpu in (2, 4, 8, 16, 32, 48, 64, 96):
            # No two prices are the same, and large machines are a little more than the sum of small ones.
            price = round(base * cpu * (1 + cpu / 10_000), 6)
            offerings = [
                {"zone": zone, "capacityType": kind, "price": round(price * share, 6)}
                for zone in ("zone-a", "zone-b", "zone-c") for kind, share in (("on-demand", 1.0), ("spot", 0.35))
            ]
            types.append({
                "name": f"{family}.{cpu}", "architecture": "amd64", "operatingSystems": ["linux"],
                "resources": {"cpu": str(cpu), "memory": f"{cpu * gib_per_cpu}Gi", "pods": "110"},
                "offerings": offerings,
            })  # fmt: skip
    types.append({
        "name": "u.224", "architecture": "amd64", "operatingSystems": ["linux"],
        "resources": {"cpu": "224", "memory": "3072Gi", "pods": "737"},
        "offerings": [{"zone": "zone-a", "capacityType": "on-demand", "price": 30.03}],
    })  # fmt: skip
    return types
