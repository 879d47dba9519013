"""Scale-down: which nodes the cluster could do without, and which of them may go now.

``planner`` tells the story; ``candidates``, ``eligibility``, ``removal`` and ``unneeded`` are its chapters in order;
``drain_rules`` say which pods may be moved; ``budgets`` and ``cooldown`` hold back what the planner offers.
"""

from holokube.cluster_autoscaler.scale_down.input import Deletions, ScaleDownInput
from holokube.cluster_autoscaler.scale_down.planner import ScaleDownPlanner
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason, UnremovableReason
from holokube.cluster_autoscaler.scale_down.report import (
    BlockingPod,
    HomelessPod,
    NodeToRemove,
    PlannerReport,
    Removals,
    UnneededNode,
    Unremovable,
    Utilization,
)

__all__ = [
    "BlockingPod", "BlockingReason", "Deletions", "HomelessPod", "NodeToRemove", "PlannerReport", "Removals",
    "ScaleDownInput", "ScaleDownPlanner", "UnneededNode", "Unremovable", "UnremovableReason", "Utilization",
]  # fmt: skip
