"""least-nodes: the option that needs the fewest nodes."""

from __future__ import annotations

from collections.abc import Sequence

from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.scale_up.option import Option


class LeastNodesExpander:
    """See the module."""

    name = "least-nodes"

    def best_options(self, options: Sequence[Option], ctx: ExpanderContext) -> list[Option]:
        """Those with the smallest number of nodes; an option of no nodes is none."""
        real = [option for option in options if option.node_count > 0]
        for option in real:
            ctx.score(option, float(option.node_count), f"{option.node_count} nodes")
        least = min((option.node_count for option in real), default=0)
        return [option for option in real if option.node_count == least]
