"""What a node costs: by what it says of itself, else by the catalogue."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from holokube.cluster.cloud import capacity_type_of
from holokube.kube.requirements import INSTANCE_TYPE_LABEL, ZONE_LABEL
from holokube.pricing.instance_types import ON_DEMAND, Catalog

PRICE_LABEL: Final = "eks-node-viewer/instance-price"
PRICE_ANNOTATION: Final = "cluster-autoscaler.kwok.nodegroup/price-per-hour"


def price_usd_per_hour(node: Mapping[str, Any], catalog: Catalog | None) -> float:
    """The price; 0 for a node of which nobody knows it."""
    meta = node["metadata"]
    labels: Mapping[str, str] = meta.get("labels") or {}
    for text in (labels.get(PRICE_LABEL), (meta.get("annotations") or {}).get(PRICE_ANNOTATION)):
        told = _number(text)
        if told is not None:
            return told
    known = catalog.by_name.get(labels.get(INSTANCE_TYPE_LABEL, "")) if catalog is not None else None
    if known is None:
        return 0.0
    zone, wanted = labels.get(ZONE_LABEL, ""), capacity_type_of(labels) or ON_DEMAND
    for offering in known.offerings:
        if offering.capacity_type == wanted and (not zone or offering.zone == zone):
            return offering.price_usd_per_hour
    return 0.0


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else math.nan
    except ValueError:
        return None
    return value if 0 <= value < math.inf else None
