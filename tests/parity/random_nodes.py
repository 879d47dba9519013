"""Random nodes: zones, racks, numeric labels, taints, cordons, extended resources, sizes."""

from __future__ import annotations

from tests.builders import JsonObject
from tests.parity.draws import HOSTNAME, RACK, REGION, ZONE, ZONES, Draws

OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
TAINT_KEYS = ("dedicated", "gpu-only", "node.kubernetes.io/unschedulable")
EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
IMAGES = {f"registry.example/{name}:1": mebibytes for name, mebibytes in
          (("small", 12), ("medium", 180), ("large", 700), ("huge", 2600))}  # fmt: skip


def random_node(draws: Draws, name: str, *, is_scored: bool = False, is_easy: bool = False) -> JsonObject:
    """A Node object.

    ``is_scored`` draws what scores look at: images, and taints that only discourage. An easy node is large and
    open, so that other filters have their say.
    """
    spec: JsonObject = {}
    taints = _taints(draws, is_scored, 0.08 if is_easy else 0.25)
    if taints:
        spec["taints"] = taints
    if draws.chance(0.04 if is_scored or is_easy else 0.12):
        spec["unschedulable"] = True
    allocatable = {"cpu": "64", "memory": "256Gi", "pods": "110"} if is_easy else _allocatable(draws)
    status: JsonObject = {"capacity": {}, "allocatable": allocatable}
    status["capacity"] = dict(status["allocatable"])
    if draws.chance(0.8 if is_scored else 0.2):
        status["images"] = [
            {"names": [image, image.replace(":1", "@sha256:" + "0" * 64)], "sizeBytes": IMAGES[image] * 2**20}
            for image in draws.some(tuple(IMAGES), 0, 3)
        ]
    return {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": _labels(draws, name)},
        "spec": spec, "status": status,
    }  # fmt: skip


def _labels(draws: Draws, name: str) -> dict[str, str]:
    labels: dict[str, str] = {}
    if draws.chance(0.95):
        labels[HOSTNAME] = name
    if draws.chance(0.9):
        labels[ZONE] = draws.one(ZONES)
    if draws.chance(0.5):
        labels[REGION] = draws.one(("r1", "r2"))
    if draws.chance(0.1):
        labels[OLD_ZONE] = draws.one(ZONES)
    if draws.chance(0.7):
        labels[RACK] = draws.one(("k1", "k2", "k3", "k4"))
    if draws.chance(0.6):
        labels["disk"] = draws.one(("ssd", "hdd"))
    if draws.chance(0.6):
        labels["cores"] = draws.one(("2", "8", "16", "007", "many", "0x10"))
    return labels


def _taints(draws: Draws, is_scored: bool, probability: float) -> list[JsonObject]:
    if not draws.chance(probability):
        return []
    taints: dict[tuple[str, str], JsonObject] = {}
    for _ in range(draws.between(1, 2)):
        effect = "PreferNoSchedule" if is_scored and draws.chance(0.8) else draws.one(EFFECTS)
        taint = {"key": draws.one(TAINT_KEYS), "effect": effect}
        if draws.chance(0.6):
            taint["value"] = draws.one(("a", "b"))
        taints[(taint["key"], effect)] = taint
    return list(taints.values())


def _allocatable(draws: Draws) -> JsonObject:
    allocatable = {
        "cpu": draws.one(("1", "2", "3500m", "8", "8")),
        "memory": draws.one(("1Gi", "3Gi", "4000000Ki", "16Gi", "16Gi")),
        "pods": draws.one(("2", "4", "8", "110", "110")),
    }
    if draws.chance(0.7):
        allocatable["ephemeral-storage"] = draws.one(("5Gi", "20Gi"))
    if draws.chance(0.35):
        allocatable["example.com/gpu"] = draws.one(("1", "2", "4"))
    if draws.chance(0.15):
        allocatable["example.com/fpga"] = "1"
    if draws.chance(0.25):
        allocatable["hugepages-2Mi"] = draws.one(("0", "16Mi", "64Mi"))
    return allocatable
