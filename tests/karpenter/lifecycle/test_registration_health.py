from __future__ import annotations

from holokube.karpenter.lifecycle.pool_health import after_launch
from holokube.karpenter.lifecycle.pool_registration_health import has_changed
from holokube.karpenter.lifecycle.registration_health import Health, RegistrationHealth
from holokube.kube.conditions import get_condition
from tests.karpenter.objects import NOW_S, claim, condition, pool


def test_two_failures_among_the_last_four_launches_are_too_many() -> None:
    health = RegistrationHealth()
    seen = []
    for success in (True, False, True, False, True, True, True):
        expected = health.after("p", success=success)
        health.add("p", success=success)
        assert health.of("p") is expected
        seen.append(expected)
    bad, good = Health.UNHEALTHY, Health.HEALTHY
    assert seen == [good, good, good, bad, bad, good, good]
    assert health.of("other") is Health.UNKNOWN


def test_what_is_known_from_the_condition_is_taken_over() -> None:
    health = RegistrationHealth()
    for state in Health:
        health.reset("p", state)
        assert health.of("p") is state


def test_a_pool_is_told_only_when_its_health_says_something_new() -> None:
    plain = pool()
    assert after_launch(plain, claim(), Health.UNHEALTHY, NOW_S, success=True) is plain
    well = after_launch(plain, claim(), Health.HEALTHY, NOW_S, success=True)
    assert get_condition(well, "NodeRegistrationHealthy") is not None
    assert after_launch(well, claim(), Health.HEALTHY, NOW_S + 9, success=True) is well
    assert after_launch(well, claim(), Health.HEALTHY, NOW_S, success=False) is well
    ill = after_launch(well, claim("c", condition("Launched")), Health.UNHEALTHY, NOW_S, success=False)
    found = get_condition(ill, "NodeRegistrationHealthy")
    assert found is not None
    assert (found["status"], found["reason"]) == ("False", "RegistrationFailed")
    never = claim("c", condition("Launched", "Unknown", reason="LaunchFailed", message="quota"))
    found = get_condition(after_launch(well, never, Health.UNHEALTHY, NOW_S, success=False), "NodeRegistrationHealthy")
    assert found is not None
    assert (found["reason"], found["message"]) == ("LaunchFailed", "quota")


def test_the_judgement_begins_anew_when_pool_or_class_have_changed() -> None:
    node_class = {"metadata": {"generation": 3}}
    known = pool(conditions=[condition("NodeRegistrationHealthy", observedGeneration=1)])
    known["status"]["nodeClassObservedGeneration"] = 3
    assert not has_changed(known, node_class)
    assert has_changed(known, {"metadata": {"generation": 4}})
    assert has_changed({**known, "metadata": {**known["metadata"], "generation": 2}}, node_class)
    assert has_changed(pool(), node_class)
