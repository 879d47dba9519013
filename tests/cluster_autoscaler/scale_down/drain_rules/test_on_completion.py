from holokube.cluster_autoscaler.scale_down.drain_rules import Outcome, on_completion
from tests.cluster_autoscaler.scale_down.world import SAFE_TO_EVICT, make_context, make_pod


def test_the_node_waits_for_a_pod_that_asks_for_it() -> None:
    verdict = on_completion.judge(make_pod("p", annotations={SAFE_TO_EVICT: "on-completion"}), make_context())
    assert verdict is not None and verdict.outcome is Outcome.WAIT
    assert on_completion.judge(make_pod("p", annotations={SAFE_TO_EVICT: "true"}), make_context()) is None
