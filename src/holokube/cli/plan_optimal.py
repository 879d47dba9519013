"""``holokube plan --policy optimal``: the cheapest plan found, and the price that no plan can be below."""

from __future__ import annotations

from holokube.base.clock import WallClock
from holokube.cli.plan import Answer, Request
from holokube.cli.plan_karpenter import read_given
from holokube.cli.plan_karpenter_tables import show_plan
from holokube.karpenter.plan.optimal_planner import plan_optimal
from holokube.karpenter.settings import parse_flags


def plan(request: Request) -> Answer:
    """The plan for what the files hold."""
    settings = parse_flags(request.flags)
    values = plan_optimal(read_given(request), settings, WallClock(), limit_s=request.time_limit_s)
    return Answer(values, lambda console: show_plan(console, values))
