"""What expanders look at besides the options, and what they leave behind for those who ask why."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from holokube.base.rng import Rng
from holokube.cluster_autoscaler.cloud.provider import PricingModel
from holokube.cluster_autoscaler.scale_up.option import Option
from holokube.kube.types import JsonObject


class Score(NamedTuple):
    """What an expander thought of an option."""

    group_id: str
    value: float
    text: str


@dataclass(slots=True)
class Step:
    """One expander's turn."""

    expander: str
    offered: tuple[str, ...]
    """The groups of the options it was given."""
    kept: tuple[str, ...] = ()
    scores: list[Score] = field(default_factory=list)


class Notice(NamedTuple):
    """Something that users are told by an event on the expander's ConfigMap."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ExpanderContext:
    """The state of the world for one choice."""

    now_s: float
    rng: Rng
    cluster_size: int = 0
    """How many nodes there are, ready or not."""
    gpu_label: str = ""
    pricing: PricingModel | None = None
    config_maps: Mapping[str, JsonObject] = field(default_factory=dict)
    """Those of the autoscaler's namespace, by name."""
    steps: list[Step] = field(default_factory=list)
    warnings: list[Notice] = field(default_factory=list)

    def score(self, option: Option, value: float, text: str) -> None:
        """Note what the expander whose turn it is thinks of an option."""
        if self.steps:
            self.steps[-1].scores.append(Score(option.group_id, value, text))

    def warn(self, reason: str, message: str) -> None:
        """Tell users that the configuration is not what they may think."""
        self.warnings.append(Notice(reason, message))


class Expander(Protocol):
    """A strategy: keeps the best of the options, all of them if they are equally good."""

    @property
    def name(self) -> str:
        """The name in ``--expander``."""

    def best_options(
        self, options: Sequence[Option], ctx: ExpanderContext
    ) -> list[Option] | Awaitable[list[Option]]:
        """The best ones. Those who must ask somebody answer with an awaitable."""
