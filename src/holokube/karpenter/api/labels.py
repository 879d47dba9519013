"""Names that Karpenter gives to labels, annotations, taints, conditions and finalizers."""

from __future__ import annotations

from typing import Final

from holokube.kube.requirements import (
    CAPACITY_TYPE_LABEL,
    HOSTNAME_LABEL,
    NODEPOOL_LABEL,
    RESTRICTED_LABELS,
    WELL_KNOWN_LABELS,
)
from holokube.kube.taints import NO_EXECUTE, NO_SCHEDULE, Taint
from holokube.pricing.instance_types import ON_DEMAND, RESERVATION_ID_LABEL, RESERVED, SPOT
from holokube.pricing.size_labels import (
    INSTANCE_CPU_LABEL,
    INSTANCE_FAMILY_LABEL,
    INSTANCE_MEMORY_LABEL,
    INSTANCE_SIZE_LABEL,
    SIZE_LABELS,
)

__all__ = [
    "CAPACITY_TYPE_LABEL", "HOSTNAME_LABEL", "INSTANCE_CPU_LABEL", "INSTANCE_FAMILY_LABEL", "INSTANCE_MEMORY_LABEL",
    "INSTANCE_SIZE_LABEL", "NODEPOOL_LABEL", "ON_DEMAND", "RESERVATION_ID_LABEL", "RESERVED", "SIZE_LABELS", "SPOT",
    "WELL_KNOWN_LABELS",
]  # fmt: skip

GROUP: Final = "karpenter.sh"
API_VERSION: Final = "karpenter.sh/v1"
KWOK_GROUP: Final = "karpenter.kwok.sh"
KWOK_API_VERSION: Final = "karpenter.kwok.sh/v1alpha1"
KWOK_NODE_CLASS: Final = "KWOKNodeClass"

# Labels
REGISTERED_LABEL: Final = "karpenter.sh/registered"
INITIALIZED_LABEL: Final = "karpenter.sh/initialized"
DO_NOT_SYNC_TAINTS_LABEL: Final = "karpenter.sh/do-not-sync-taints"
KWOK_NODE_LABEL: Final = "kwok.x-k8s.io/node"
"""On a hollow node, as a label and as an annotation, with the value ``fake``."""
INSTANCE_PRICE_LABEL: Final = "eks-node-viewer/instance-price"
KWOK_PARTITION_LABEL: Final = "kwok-partition"
EXCLUDE_BALANCERS_LABEL: Final = "node.kubernetes.io/exclude-from-external-load-balancers"

PROVIDER_LABELS: Final = SIZE_LABELS | {RESERVATION_ID_LABEL}
"""Keys that the hollow provider makes well known."""
ALL_WELL_KNOWN_LABELS: Final = WELL_KNOWN_LABELS | PROVIDER_LABELS
RESTRICTED_DOMAINS: Final = frozenset({GROUP, KWOK_GROUP})
"""Nobody else may invent labels here, or in subdomains."""
KNOWN_VALUES: Final[dict[str, frozenset[str]]] = {CAPACITY_TYPE_LABEL: frozenset({SPOT, ON_DEMAND, RESERVED})}
"""Keys whose values are a closed list."""

# Annotations
DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"
DO_NOT_REPAIR: Final = "karpenter.sh/do-not-repair"
NODEPOOL_HASH: Final = "karpenter.sh/nodepool-hash"
NODEPOOL_HASH_VERSION: Final = "karpenter.sh/nodepool-hash-version"
TERMINATION_TIMESTAMP: Final = "karpenter.sh/nodeclaim-termination-timestamp"
MIN_VALUES_RELAXED: Final = "karpenter.sh/nodeclaim-min-values-relaxed"
REQUESTED_DRA_DRIVERS: Final = "karpenter.sh/requested-dra-drivers"
REBOOT_PRE_BOOT_ID: Final = "karpenter.sh/reboot-pre-boot-id"
REBOOT_GRACE_PERIOD: Final = "karpenter.sh/reboot-termination-grace-period"
DISRUPTION_COST: Final = "karpenter.sh/disruption-cost"
PRICE_OVERLAY_APPLIED: Final = "karpenter.sh/price-overlay-applied"
CAPACITY_OVERLAY_APPLIED: Final = "karpenter.sh/capacity-overlay-applied"
POD_DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"

# Taints
DISRUPTED_TAINT: Final = Taint("karpenter.sh/disrupted", "", NO_SCHEDULE)
UNREGISTERED_TAINT: Final = Taint("karpenter.sh/unregistered", "", NO_EXECUTE)
REBOOTING_TAINT: Final = Taint("karpenter.sh/rebooting", "", NO_SCHEDULE)

TERMINATION_FINALIZER: Final = "karpenter.sh/termination"
"""On NodeClaims and on their Nodes."""

# Conditions of a NodePool
READY: Final = "Ready"
VALIDATION_SUCCEEDED: Final = "ValidationSucceeded"
NODE_CLASS_READY: Final = "NodeClassReady"
NODE_REGISTRATION_HEALTHY: Final = "NodeRegistrationHealthy"
NODEPOOL_READY_NEEDS: Final = (VALIDATION_SUCCEEDED, NODE_CLASS_READY)

# Conditions of a NodeClaim
LAUNCHED: Final = "Launched"
REGISTERED: Final = "Registered"
INITIALIZED: Final = "Initialized"
NODECLAIM_READY_NEEDS: Final = (LAUNCHED, REGISTERED, INITIALIZED)
CONSOLIDATABLE: Final = "Consolidatable"
DRIFTED: Final = "Drifted"
DISRUPTION_REASON: Final = "DisruptionReason"
DRAINED: Final = "Drained"
VOLUMES_DETACHED: Final = "VolumesDetached"
INSTANCE_TERMINATING: Final = "InstanceTerminating"
CONSISTENT_STATE_FOUND: Final = "ConsistentStateFound"
REBOOTING: Final = "Rebooting"


def node_class_label(group: str, kind: str) -> str:
    """The label key that names the node class of a node."""
    return f"{group}/{kind.lower()}"


def label_domain(key: str) -> str:
    """What stands before the slash; empty if there is none."""
    return key.partition("/")[0] if "/" in key else ""


def why_restricted(key: str, well_known: frozenset[str] = ALL_WELL_KNOWN_LABELS) -> str:
    """Why a user may not set this label; empty if it is fine."""
    if key in well_known:
        return ""
    domain = label_domain(key)
    in_domain = any(domain == one or domain.endswith(f".{one}") for one in RESTRICTED_DOMAINS)
    if not in_domain and key not in RESTRICTED_LABELS:
        return ""
    return (
        f"label {key} is not allowed, as Karpenter itself uses it; use a well known label"
        f" ({', '.join(sorted(well_known))}) or one outside of {', '.join(sorted(RESTRICTED_DOMAINS))}"
    )
