from holokube.cluster_autoscaler.scale_down.drain_rules import not_safe_to_evict
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from tests.cluster_autoscaler.scale_down.world import SAFE_TO_EVICT, make_context, make_pod


def test_a_pod_that_asks_to_be_left_alone_blocks() -> None:
    verdict = not_safe_to_evict.judge(make_pod("p", annotations={SAFE_TO_EVICT: "false"}), make_context())
    assert verdict is not None and verdict.reason is BlockingReason.NOT_SAFE_TO_EVICT_ANNOTATION
    assert not_safe_to_evict.judge(make_pod("p", annotations={SAFE_TO_EVICT: "no"}), make_context()) is None
