import pytest

from holokube.cluster_autoscaler.scale_down.drain_rules import Outcome, safe_to_evict
from tests.cluster_autoscaler.scale_down.world import SAFE_TO_EVICT, make_context, make_pod


@pytest.mark.parametrize(
    ("value", "drains"), [("true", True), ("false", False), ("on-completion", False), ("True", False)]
)
def test_only_the_word_true_drains(value: str, drains: bool) -> None:
    verdict = safe_to_evict.judge(make_pod("p", annotations={SAFE_TO_EVICT: value}), make_context())
    assert (verdict is not None and verdict.outcome is Outcome.DRAIN) is drains


def test_a_pod_that_says_nothing_is_left_to_other_rules() -> None:
    assert safe_to_evict.judge(make_pod("p"), make_context()) is None
