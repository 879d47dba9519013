import pytest

from holokube.cluster_autoscaler.scale_down.drain_rules import Outcome, terminal
from tests.cluster_autoscaler.scale_down.world import make_context, make_pod


@pytest.mark.parametrize(
    ("phase", "restart_policy", "drains"),
    [
        ("Failed", "Always", True), ("Failed", "Never", True),
        ("Succeeded", "Never", True), ("Succeeded", "OnFailure", True), ("Succeeded", "Always", False),
        ("Running", "Never", False),
    ],
)  # fmt: skip
def test_a_pod_that_will_not_run_again_drains(phase: str, restart_policy: str, drains: bool) -> None:
    verdict = terminal.judge(make_pod("p", phase=phase, restartPolicy=restart_policy), make_context())
    assert (verdict is not None and verdict.outcome is Outcome.DRAIN) is drains
