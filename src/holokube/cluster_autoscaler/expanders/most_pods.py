"""most-pods: the option that helps the most pods."""

from __future__ import annotations

from collections.abc import Sequence

from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.scale_up.option import Option


class MostPodsExpander:
    """See the module."""

    name = "most-pods"

    def best_options(self, options: Sequence[Option], ctx: ExpanderContext) -> list[Option]:
        """Those with the largest number of pods."""
        for option in options:
            ctx.score(option, float(len(option.pods)), f"{len(option.pods)} pods")
        most = max((len(option.pods) for option in options), default=0)
        return [option for option in options if len(option.pods) == most]
