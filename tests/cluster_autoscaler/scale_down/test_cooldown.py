import pytest

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.cooldown import LastActivity, LocalDelays, cooldown_reason

NOW_S = 10_000.0
OPTIONS = AutoscalerOptions(
    scale_down_delay_after_add_s=600, scale_down_delay_after_delete_s=60, scale_down_delay_after_failure_s=180
)


@pytest.mark.parametrize(
    ("last", "waits_for"),
    [
        (LastActivity(), ""),
        (LastActivity(scale_up_s=NOW_S - 599), "a scale-up"),
        (LastActivity(scale_up_s=NOW_S - 600), ""),
        (LastActivity(failure_s=NOW_S - 179), "a failed scale-down"),
        (LastActivity(failure_s=NOW_S - 180), ""),
        (LastActivity(deletion_s=NOW_S - 59), "a scale-down"),
        (LastActivity(deletion_s=NOW_S - 60), ""),
    ],
)
def test_scale_down_waits_until_a_delay_is_over(last: LastActivity, waits_for: str) -> None:
    reason = cooldown_reason(OPTIONS, NOW_S, last)
    assert (reason or "").startswith(waits_for)
    assert (reason is None) is (not waits_for)


def test_it_waits_while_pods_are_too_new() -> None:
    assert "too new" in (cooldown_reason(OPTIONS, NOW_S, LastActivity(), is_forbidden=True) or "")


def test_delays_of_single_groups_do_not_hold_the_cluster() -> None:
    options = AutoscalerOptions(scale_down_delay_type_local=True)
    assert cooldown_reason(options, NOW_S, LastActivity(scale_up_s=NOW_S)) is None
    assert cooldown_reason(options, NOW_S, LastActivity(), is_forbidden=True) is not None


def test_a_new_process_pretends_that_everything_was_an_hour_ago() -> None:
    assert cooldown_reason(OPTIONS, NOW_S, LastActivity.at_start(NOW_S)) is None
    patient = AutoscalerOptions(scale_down_delay_after_add_s=7200)
    assert cooldown_reason(patient, NOW_S, LastActivity.at_start(NOW_S)) is not None


def test_each_group_waits_for_its_own_activity() -> None:
    delays = LocalDelays()
    delays.scaled_up("up", NOW_S - 599)
    delays.scaled_down("down", NOW_S - 59)
    delays.failed("failed", NOW_S - 180)
    assert "scaled up" in (delays.reason("up", OPTIONS, NOW_S) or "")
    assert "scaled down" in (delays.reason("down", OPTIONS, NOW_S) or "")
    assert delays.reason("failed", OPTIONS, NOW_S) is None
    assert delays.reason("up", OPTIONS, NOW_S + 1) is None
    assert delays.reason("other", OPTIONS, NOW_S) is None
