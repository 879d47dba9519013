"""Everything that one turn saw, decided and did, with all reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holokube.cluster_autoscaler.actuation.results import NodeDeleteResult, ScaledDownNode, ScaleDownResult
from holokube.cluster_autoscaler.cloud.errors import AutoscalerError
from holokube.cluster_autoscaler.hinting import Status
from holokube.cluster_autoscaler.scale_down.report import PlannerReport, UnneededNode, Unremovable, Utilization
from holokube.cluster_autoscaler.scale_up.balancing import Increase
from holokube.cluster_autoscaler.scale_up.minimum import MinimumPlan
from holokube.cluster_autoscaler.scale_up.option import Option
from holokube.cluster_autoscaler.scale_up.planning import ScaleUpPlan
from holokube.cluster_autoscaler.scale_up.result import ScaleUpResult
from holokube.cluster_autoscaler.scale_up.verdicts import Verdicts
from holokube.kube.types import JsonObject


class TurnEvent(NamedTuple):
    """Something that users were told."""

    about: Mapping[str, Any]
    """The object it was told on, or a reference to it."""
    type: str
    reason: str
    message: str

    @property
    def kind(self) -> str:
        """Of the object it was told on."""
        return str(self.about.get("kind") or "")

    @property
    def name(self) -> str:
        """``namespace/name``, or the name alone of what belongs to the whole cluster."""
        metadata = self.about.get("metadata") or self.about
        space, name = metadata.get("namespace") or "", metadata.get("name") or ""
        return f"{space}/{name}" if space else name


@dataclass(slots=True)
class ScaleUpReport:
    """What became of the pods that wait."""

    result: ScaleUpResult = ScaleUpResult.NOT_TRIED
    plans: list[ScaleUpPlan] = field(default_factory=list)
    """What was planned; more than one in a salvo."""
    increases: list[Increase] = field(default_factory=list)
    """What was asked for, with success."""
    verdicts: Verdicts = field(default_factory=Verdicts)
    failed_groups: tuple[str, ...] = ()
    """The groups that refused."""
    considered: tuple[str, ...] = ()
    """The groups that users are told about."""
    error: AutoscalerError | None = None
    minimum: MinimumPlan | None = None
    """Which groups were raised to their minimum, if that is asked for."""

    @property
    def options(self) -> list[Option]:
        """What could have been done."""
        return [option for plan in self.plans for option in plan.report.options]

    @property
    def best(self) -> Option | None:
        """What was chosen; the last one in a salvo."""
        return self.plans[-1].best if self.plans else None

    @property
    def skipped(self) -> Mapping[str, str]:
        """Why groups were not looked at."""
        return self.plans[-1].report.skipped if self.plans else {}


@dataclass(slots=True)
class ScaleDownReport:
    """What became of the nodes."""

    result: ScaleDownResult = ScaleDownResult.NOT_TRIED
    planner: PlannerReport | None = None
    unneeded: list[UnneededNode] = field(default_factory=list)
    unremovable: list[Unremovable] = field(default_factory=list)
    """The nodes that stay, with what was found out when it came to deleting."""
    deleting: Sequence[ScaledDownNode] = ()
    """The nodes whose removal was started in this turn."""
    cooldown: str = ""
    """Why nothing may be removed."""
    results: Mapping[str, NodeDeleteResult] = field(default_factory=dict)
    """How removals ended that were started in earlier turns."""
    error: AutoscalerError | None = None

    @property
    def utilization(self) -> Mapping[str, Utilization]:
        """How much of each node is used, as far as it was looked at."""
        return self.planner.utilization if self.planner is not None else {}


@dataclass(slots=True)
class TurnReport:
    """One turn."""

    now_s: float
    took_s: float = 0.0
    """By the clock, so nothing at all on virtual time."""
    scale_up: ScaleUpReport = field(default_factory=ScaleUpReport)
    scale_down: ScaleDownReport = field(default_factory=ScaleDownReport)
    events: list[TurnEvent] = field(default_factory=list)
    targets: dict[str, int] = field(default_factory=dict)
    """What each group is asked for at the end."""
    upcoming: dict[str, int] = field(default_factory=dict)
    """Nodes on their way, by group."""
    pending: int = 0
    """Pods for which a scheduler has found no place."""
    schedulable: list[Status] = field(default_factory=list)
    """Those of them that have a place after all, on nodes there are or on nodes on their way."""
    young: list[JsonObject] = field(default_factory=list)
    """Those that are too young to be looked at."""
    removed_unregistered: list[str] = field(default_factory=list)
    deleted_failed: list[str] = field(default_factory=list)
    fixed_sizes: dict[str, int] = field(default_factory=dict)
    stopped: str = ""
    """Why the turn ended before anything was decided; empty if it did not."""
    error: AutoscalerError | None = None

    @property
    def is_successful(self) -> bool:
        """Whether nothing went wrong that counts against the autoscaler."""
        return self.error is None
