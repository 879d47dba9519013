"""What disruption would do to a cluster now, and why every other node stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holokube.karpenter.disruption.candidates import obstructions
from holokube.karpenter.disruption.explain import explain
from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.methods import METHODS
from holokube.karpenter.disruption.types import Command, Decision, DisruptionClass, Obstruction
from holokube.karpenter.disruption.view import DisruptionOptions, DisruptionView
from holokube.karpenter.plan.answer import candidate_values, command_values
from holokube.karpenter.plan.given import Given
from holokube.karpenter.scheduling.problem import SolveOptions
from holokube.karpenter.scheduling.simulation import Simulation
from holokube.karpenter.scheduling.state_node import StateNode
from holokube.kube.requirements import CAPACITY_TYPE_LABEL, INSTANCE_TYPE_LABEL, ZONE_LABEL


@dataclass(frozen=True, eq=False)
class Disruption:
    """Commands, each worked out on the untouched cluster, and the view they come from."""

    view: DisruptionView
    commands: tuple[Command, ...]

    def values(self, listed: int | None = None) -> dict[str, Any]:
        """The commands with the costs and budgets behind them."""
        candidates = {one.name: one for method in METHODS for one in self.view.candidates(method)}
        return {
            "candidates": {name: candidate_values(one) for name, one in candidates.items()},
            "budgets": {method.name: self.view.budget_left(method.reason) for method in METHODS},
            "commands": [command_values(command, listed) for command in self.commands],
        }

    def nodes(self) -> list[dict[str, Any]]:
        """Every node with what would become of it, and why."""
        prices = {one.name: one.price for one in self.view.scan(DisruptionClass.GRACEFUL).candidates}
        # The first method that acts ends a pass, so an earlier command has the last word about a node.
        going = {name: command for command in reversed(self.commands) for name in command.names}
        explained = explain(self.view)
        rows = []
        for node in self.view.nodes:
            command = going.get(node.name)
            found = explained.get(node.name)
            why = found.obstructions if found is not None else tuple(
                obstructions(node, self.view.rules, DisruptionClass.GRACEFUL))
            could = found.command if found is not None else None
            rows.append({
                **_row(node, prices.get(node.name), command or could, () if command is not None else why),
                "verdict": _verdict(command, could, why),
            })
        return rows


def _verdict(command: Command | None, could: Command | None, why: Sequence[Obstruction]) -> str:
    if command is not None:
        return "is replaced" if command.decision is Decision.REPLACE else "goes"
    return "could go" if could is not None and not why else "stays"


def view_of(given: Given, options: SolveOptions, *, spot_to_spot: bool) -> DisruptionView:
    """The cluster as the disruption methods see it."""
    return DisruptionView(
        now_s=given.now_s,
        nodes=given.nodes,
        pools={pool.name: pool for pool in given.pools},
        types_of_pool=given.types_of_pool,
        simulator=Simulation(given.disruption_problem(options)),
        pdbs=given.pdbs,
        options=DisruptionOptions(spot_to_spot=spot_to_spot),
        well_known=given.catalog.well_known,
    )


def disrupt(given: Given, options: SolveOptions, *, spot_to_spot: bool) -> Disruption:
    """What each method would command."""
    view = view_of(given, options, spot_to_spot=spot_to_spot)
    found = (method.compute(view, Memory()).command for method in METHODS)
    return Disruption(view, tuple(command for command in found if command is not None))


def _row(
    node: StateNode, price: float | None, command: Command | None, why: Sequence[Obstruction]
) -> dict[str, Any]:
    labels: Mapping[str, str] = node.labels
    return {
        "node": node.name,
        "nodePool": node.pool_name,
        "instanceType": labels.get(INSTANCE_TYPE_LABEL, ""),
        "zone": labels.get(ZONE_LABEL, ""),
        "capacityType": labels.get(CAPACITY_TYPE_LABEL, ""),
        "price": price,
        "pods": len(node.running_pods),
        "by": command.method if command is not None else None,
        "reason": str(command.reason) if command is not None else None,
        "why": [_why(one) for one in why],
    }


def _why(obstruction: Obstruction) -> dict[str, Any]:
    return {
        "blocker": str(obstruction.blocker),
        "message": obstruction.message,
        "pods": list(obstruction.pods),
        "pdbs": list(obstruction.pdbs),
    }
