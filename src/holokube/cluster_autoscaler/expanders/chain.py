"""Expanders one after the other, each keeping the best of what the one before kept; ties at the end are drawn."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from holokube.cluster_autoscaler.cloud.errors import AutoscalerError, ErrorKind
from holokube.cluster_autoscaler.expanders.context import Expander, ExpanderContext, Step
from holokube.cluster_autoscaler.expanders.least_nodes import LeastNodesExpander
from holokube.cluster_autoscaler.expanders.least_waste import LeastWasteExpander
from holokube.cluster_autoscaler.expanders.most_pods import MostPodsExpander
from holokube.cluster_autoscaler.expanders.price import PriceExpander
from holokube.cluster_autoscaler.expanders.priority import PriorityExpander
from holokube.cluster_autoscaler.expanders.random import RandomExpander
from holokube.cluster_autoscaler.scale_up.option import Option

BUILT_IN: Final[Mapping[str, type[Expander]]] = {
    "random": RandomExpander,
    "most-pods": MostPodsExpander,
    "least-waste": LeastWasteExpander,
    "least-nodes": LeastNodesExpander,
    "price": PriceExpander,
    "priority": PriorityExpander,
}
"""All but ``grpc``, which needs an address."""


@dataclass(frozen=True, slots=True)
class ExpanderChain:
    """See the module."""

    expanders: tuple[Expander, ...]

    async def choose(self, options: Sequence[Option], ctx: ExpanderContext) -> Option | None:
        """The one option to take; None if no expander would have any. ``ctx`` then knows the scores."""
        left = list(options)
        for expander in self.expanders:
            left = await _ask(expander, left, ctx)
            if len(left) == 1:
                return left[0]
        drawn = await _ask(RandomExpander(), left, ctx)
        return drawn[0] if drawn else None


async def _ask(expander: Expander, options: list[Option], ctx: ExpanderContext) -> list[Option]:
    step = Step(expander.name, tuple(option.group_id for option in options))
    ctx.steps.append(step)
    answer = expander.best_options(options, ctx)
    best = await answer if inspect.isawaitable(answer) else answer
    step.kept = tuple(option.group_id for option in best)
    return best


def build_chain(names: Sequence[str], others: Mapping[str, Expander] | None = None) -> ExpanderChain:
    """The chain of ``--expander``. ``others`` are expanders that cannot be made from their name alone."""
    known: dict[str, Expander] = {name: made() for name, made in BUILT_IN.items()}
    known.update(others or {})
    chain: list[Expander] = []
    for i, name in enumerate(names):
        if name in names[:i]:
            raise _misconfigured(
                f"expander {name} was specified multiple times", "Name each expander once in --expander."
            )
        if name not in known:
            raise _misconfigured(
                f"expander {name} is not supported", f"Use some of {', '.join(sorted(known))} in --expander."
            )
        if i and names[i - 1] == RandomExpander.name:
            raise _misconfigured(
                f"expander {name} came after {names[i - 1]}, which always leaves one option only",
                f"Put {names[i - 1]} last in --expander.",
            )
        chain.append(known[name])
    return ExpanderChain(tuple(chain))


def _misconfigured(message: str, hint: str) -> AutoscalerError:
    return AutoscalerError(message, kind=ErrorKind.INTERNAL, hint=hint)
