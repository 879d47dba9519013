"""Which nodes have accelerators, by a label or by the known resources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.cluster_autoscaler.cloud.provider import GpuConfig
from holokube.kube.resources import parse_resources

NVIDIA = "nvidia.com/gpu"
GPU_RESOURCES = (NVIDIA, "habana.ai/gaudi", "gpu.intel.com/xe", "amd.com/gpu", "microsoft.com/directx")


def gpu_config(node: Mapping[str, Any], gpu_label: str) -> GpuConfig | None:
    """The accelerators of a node; None if it has none. A label without a resource means NVIDIA's, as upstream."""
    labels = node["metadata"].get("labels") or {}
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    known = parse_resources({name: allocatable[name] for name in GPU_RESOURCES if name in allocatable})
    resource = next((name for name in GPU_RESOURCES if known.get(name)), "")
    if not resource and gpu_label not in labels:
        return None
    return GpuConfig(gpu_label, labels.get(gpu_label, ""), resource or NVIDIA)
