"""Labels that say how big an instance type is, read from its name and its capacity."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from holokube.kube.resources import CPU, MEMORY, to_quantity

INSTANCE_SIZE_LABEL: Final = "karpenter.kwok.sh/instance-size"
INSTANCE_FAMILY_LABEL: Final = "karpenter.kwok.sh/instance-family"
INSTANCE_CPU_LABEL: Final = "karpenter.kwok.sh/instance-cpu"
INSTANCE_MEMORY_LABEL: Final = "karpenter.kwok.sh/instance-memory"
SIZE_LABELS: Final = frozenset({
    INSTANCE_SIZE_LABEL, INSTANCE_FAMILY_LABEL, INSTANCE_CPU_LABEL, INSTANCE_MEMORY_LABEL,
})  # fmt: skip

_aws_name = re.compile(r"\w+\.(nano|micro|small|medium|large|\d*xlarge|metal)", re.ASCII).fullmatch


def size_labels(name: str, capacity: Mapping[str, int]) -> dict[str, str]:
    """The four labels of a type. A resource it does not mention gives an empty value."""
    cpu = str(to_quantity(CPU, capacity[CPU])) if CPU in capacity else ""
    return {
        INSTANCE_SIZE_LABEL: size_of(name, cpu),
        INSTANCE_FAMILY_LABEL: family_of(name),
        INSTANCE_CPU_LABEL: cpu,
        INSTANCE_MEMORY_LABEL: str(to_quantity(MEMORY, capacity[MEMORY])) if MEMORY in capacity else "",
    }


def size_of(name: str, cpu: str) -> str:
    """``2xlarge`` of ``m5.2xlarge``; for names of other clouds the number of cores."""
    match = _aws_name(name)
    return match[1] if match else cpu


def family_of(name: str) -> str:
    """``m5`` of ``m5.2xlarge``, ``n2`` of ``n2-standard-4``; where nothing parts the name, its first letter."""
    family, separator, _ = name.replace(".", "-").partition("-")
    return family if separator else name[:1]
