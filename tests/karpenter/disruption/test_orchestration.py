from __future__ import annotations

from typing import Any

import pytest

from holokube.karpenter.disruption.emptiness import Emptiness
from holokube.karpenter.disruption.memory import Memory
from holokube.karpenter.disruption.orchestration import (
    CannotStart,
    GiveUp,
    QueuedCommand,
    Terminate,
    Wait,
    after_marking,
    is_out_of_time,
    next_step,
    nominated_nodes,
    stale_marks,
    time_limit_s,
    why_busy,
)
from holokube.karpenter.disruption.single_node import SingleNodeConsolidation
from holokube.karpenter.disruption.types import Command
from holokube.karpenter.scheduling.state_node import StateNode
from tests.karpenter.disruption.objects import (
    SMALL,
    ToldSimulator,
    everything_fits,
    fits_with,
    node,
    planned,
    pod,
    pool,
    view,
)

TAINT = {"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}


def removal(*names: str) -> Command:
    command = Emptiness().compute(view([node(name) for name in names]), Memory()).command
    assert command is not None
    return command


def replacement() -> Command:
    simulator = ToldSimulator(fits_with(planned(pool(), (SMALL,))))
    cluster = view([node("n", pods=(pod("a"),))], simulator=simulator)
    command = SingleNodeConsolidation().compute(cluster, Memory()).command
    assert command is not None
    return command


def claim(name: str, *, initialized: bool) -> dict[str, Any]:
    status = "True" if initialized else "Unknown"
    return {"metadata": {"name": name}, "status": {"conditions": [{"type": "Initialized", "status": status}]}}


def test_a_node_is_in_one_command_at_a_time() -> None:
    assert why_busy(removal("a", "b"), {"kwok://b"}) is CannotStart.BUSY
    assert why_busy(removal("a", "b"), {"kwok://c"}) is None


def test_a_removal_goes_on_with_the_nodes_that_could_be_marked() -> None:
    command = removal("a", "b", "c")
    assert after_marking(command, {"a", "b", "c"}) is command
    left = after_marking(command, {"a", "c"})
    assert isinstance(left, Command)
    assert left.names == ("a", "c")
    assert after_marking(command, set()) is CannotStart.NOT_MARKED


def test_a_replacement_needs_all_its_nodes_marked() -> None:
    assert after_marking(replacement(), set()) is CannotStart.NOT_MARKED


def test_nodes_that_take_pods_are_nominated() -> None:
    simulator = ToldSimulator(everything_fits({"other": [pod("a")]}))
    cluster = view([node("n", pods=(pod("a"),))], simulator=simulator)
    command = SingleNodeConsolidation().compute(cluster, Memory()).command
    assert command is not None
    assert nominated_nodes(command) == ("other",)
    assert nominated_nodes(removal("a")) == ()


@pytest.mark.parametrize(("nodes", "limit_s"), [(1, 600.0), (7500, 600.0), (10_000, 800.0), (100_000, 3600.0)])
def test_the_time_limit_grows_with_the_queue(nodes: int, limit_s: float) -> None:
    assert time_limit_s(nodes) == pytest.approx(limit_s)


def test_without_replacements_the_nodes_end_at_once() -> None:
    assert isinstance(next_step(QueuedCommand(removal("a"), 0.0, ()), {}, (), 1.0, 600.0), Terminate)


def test_nodes_end_when_every_replacement_is_initialized() -> None:
    queued = QueuedCommand(replacement(), 0.0, ("x", "y"))
    claims = {"x": claim("x", initialized=True), "y": claim("y", initialized=False)}
    step = next_step(queued, claims, ("x", "y"), 1.0, 600.0)
    assert isinstance(step, Wait)
    assert step.queued.waiting_for == ("y",)
    assert [one["metadata"]["name"] for one in step.not_ready] == ["y"]
    # One that was initialized once is not asked for again, even if it is gone.
    assert isinstance(next_step(step.queued, {"y": claim("y", initialized=True)}, (), 2.0, 600.0), Terminate)


def test_a_replacement_that_is_gone_ends_the_command() -> None:
    step = next_step(QueuedCommand(replacement(), 0.0, ("x",)), {}, (), 1.0, 600.0)
    assert isinstance(step, GiveUp)
    assert step.failed_launches == 1
    assert "x was deleted" in step.why


def test_a_replacement_that_the_api_does_not_show_yet_is_waited_for() -> None:
    step = next_step(QueuedCommand(replacement(), 0.0, ("x",)), {}, ("x",), 1.0, 600.0)
    assert isinstance(step, Wait)
    assert step.not_ready == ()


def test_a_command_that_takes_too_long_is_given_up() -> None:
    queued = QueuedCommand(replacement(), 100.0, ("x",))
    claims = {"x": claim("x", initialized=False)}
    assert isinstance(next_step(queued, claims, (), 700.0, 600.0), Wait)
    assert isinstance(next_step(queued, claims, (), 700.1, 600.0), GiveUp)
    assert not is_out_of_time(queued, 700.0, 600.0)
    assert is_out_of_time(queued, 700.1, 600.0)


def test_marks_that_nobody_stands_for_are_stale() -> None:
    nodes = [
        node("tainted", taints=(TAINT,)),
        node("condition", conditions=("DisruptionReason",)),
        node("queued", taints=(TAINT,)),
        node("marked", taints=(TAINT,), marked=True),
        node("deleting", taints=(TAINT,), claim_deleted=True),
        node("rebooting", taints=(TAINT,), conditions=("Rebooting",)),
        StateNode(node("foreign", taints=(TAINT,)).node),
        node("fine"),
    ]
    assert [one.name for one in stale_marks(nodes, {"kwok://queued"})] == ["tainted", "condition"]
