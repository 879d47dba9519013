"""random: any option, each equally likely."""

from __future__ import annotations

from collections.abc import Sequence

from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.scale_up.option import Option


class RandomExpander:
    """See the module. Leaves one option, so nothing can come after it."""

    name = "random"

    def best_options(self, options: Sequence[Option], ctx: ExpanderContext) -> list[Option]:
        """One of them."""
        if not options:
            return []
        chosen = options[ctx.rng.randrange(len(options))]
        ctx.score(chosen, 1.0, f"drawn from {len(options)}")
        return [chosen]
