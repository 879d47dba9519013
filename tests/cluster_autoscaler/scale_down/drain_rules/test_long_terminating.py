import pytest

from holokube.cluster_autoscaler.scale_down.drain_rules import Outcome, long_terminating
from holokube.kube.timeformat import format_time
from tests.cluster_autoscaler.scale_down.world import NOW_S, make_context, make_pod


@pytest.mark.parametrize(
    ("deleted_ago_s", "grace_s", "is_skipped"),
    [(61, None, True), (60, None, False), (41, 10, True), (40, 10, False), (31, 0, True)],
)
def test_a_pod_is_taken_for_gone_half_a_minute_after_its_grace_period(
    deleted_ago_s: int, grace_s: int | None, is_skipped: bool
) -> None:
    pod = make_pod("p", terminationGracePeriodSeconds=grace_s)
    pod["metadata"]["deletionTimestamp"] = format_time(NOW_S - deleted_ago_s)
    verdict = long_terminating.judge(pod, make_context())
    assert (verdict is not None and verdict.outcome is Outcome.SKIP) is is_skipped


def test_a_pod_that_lives_is_left_to_other_rules() -> None:
    assert long_terminating.judge(make_pod("p"), make_context()) is None
