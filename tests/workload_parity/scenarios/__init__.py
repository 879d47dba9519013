"""All scenarios, by topic."""

from __future__ import annotations

from tests.workload_parity.scenario import Scenario, Topic
from tests.workload_parity.scenarios import (
    daemon_sets,
    deployments,
    housekeeping,
    jobs,
    replica_sets,
    services,
    stateful_sets,
)

TOPICS: tuple[Topic, ...] = (
    deployments.topic, replica_sets.topic, stateful_sets.topic, daemon_sets.topic, jobs.topic, services.topic,
    housekeeping.topic,
)  # fmt: skip


def all_scenarios() -> list[Scenario]:
    return [scenario for topic in TOPICS for scenario in topic.scenarios]
