from __future__ import annotations

import pytest

from holokube.base.errors import UsageError
from holokube.karpenter.settings import FLAGS, FeatureGates, Settings, parse_flags, settings_from


def test_the_defaults_written_in_the_flags_are_those_of_the_settings() -> None:
    assert settings_from({flag.name: flag.default for flag in FLAGS}) == Settings()


def test_flags_win_over_the_environment_which_wins_over_defaults() -> None:
    environ = {"BATCH_MAX_DURATION": "20s", "PREFERENCE_POLICY": "Ignore"}
    found = parse_flags(["--batch-max-duration=30s", "--disable-leader-election"], environ)
    assert (found.batch_max_duration_s, found.preference_policy, found.disable_leader_election) == (30, "Ignore", True)
    assert found.batch_idle_duration_s == 1.0
    assert found.nomination_s == 60.0
    assert Settings(batch_max_duration_s=1.0).nomination_s == 10.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--batch-max-duration=soon"], "--batch-max-duration=soon"),
        (["--preference-policy=Maybe"], "must be one of Ignore, Respect"),
        (["--feature-gates=NodeRepair=true"], "NodeRepair, which is alpha upstream"),
        (["--feature-gates=Flying=true"], "no feature gate 'Flying'"),
        (["--scheduler-config={podTopologySpread: {defaultConstraints: [{maxSkew: 0}]}}"], "exactly"),
        (["--metrics-prot=1"], "no flag --metrics-prot"),
        (["batch"], "is no flag"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_flags(arguments)


def test_gates_and_default_spread_constraints_are_read() -> None:
    constraint = "{maxSkew: 1, topologyKey: z, whenUnsatisfiable: ScheduleAnyway}"
    config = f"podTopologySpread: {{defaultConstraints: [{constraint}]}}"
    found = parse_flags(["--feature-gates=SpotToSpotConsolidation=true,NodeRepair=false", "--scheduler-config", config])
    assert found.feature_gates == FeatureGates(spot_to_spot_consolidation=True)
    assert found.default_spread_constraints == (
        {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "ScheduleAnyway"},
    )


def test_impossible_cpu_requests_are_taken_for_none() -> None:
    assert settings_from({"cpu-requests": "-5"}).cpu_requests_milli == 1000
