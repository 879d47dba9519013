"""Which pods may be taken from a node that is to go: one rule per module, their order in ``table``."""

from holokube.cluster_autoscaler.scale_down.drain_rules.table import ALL_RULES, Judge, depends_on_time, judge, rules_for
from holokube.cluster_autoscaler.scale_down.drain_rules.verdict import DrainContext, DrainRule, Outcome, Verdict

__all__ = [
    "ALL_RULES", "DrainContext", "DrainRule", "Judge", "Outcome", "Verdict", "depends_on_time", "judge", "rules_for",
]  # fmt: skip
