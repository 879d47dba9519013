from __future__ import annotations

from datetime import UTC, datetime

from holokube.scheduler import pod_facts as facts
from tests.scheduler.objects import started, waiting

NOW = datetime(2026, 5, 1, tzinfo=UTC)


def test_absent_fields_have_upstreams_defaults() -> None:
    bare = {"metadata": {"name": "p"}}
    assert (facts.key_of(bare), facts.uid_of(bare), facts.priority_of(bare)) == ("/p", "", 0)
    assert facts.scheduler_of(bare) == "default-scheduler"
    assert (facts.node_of(bare), facts.nominated_node_of(bare)) == ("", "")
    assert not facts.is_finished(bare) and not facts.is_gated(bare) and not facts.is_being_deleted(bare)
    assert facts.started_at(bare, NOW) == NOW


def test_only_pods_sent_away_by_the_scheduler_leave_by_preemption() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    leaving = {**waiting("p", deleted=True), "status": {"conditions": [condition]}}
    assert facts.is_leaving_by_preemption(leaving)
    assert not facts.is_leaving_by_preemption({**waiting("p"), "status": leaving["status"]})
    evicted = {**condition, "reason": "EvictionByEvictionAPI"}
    assert not facts.is_leaving_by_preemption({**leaving, "status": {"conditions": [evicted]}})


def test_a_started_pod_knows_since_when() -> None:
    assert facts.started_at(started(waiting(), "03:00:00"), NOW) == datetime(2026, 1, 1, 3, tzinfo=UTC)
