import pytest

from holokube.cluster_autoscaler.scale_down.drain_rules import replicated
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from tests.cluster_autoscaler.scale_down.world import make_context, make_pod


@pytest.mark.parametrize(
    ("owner", "is_custom_trusted", "blocks"),
    [
        (None, False, True), (None, True, True),
        (("ReplicaSet", "c"), False, False), (("Job", "c"), False, False),
        (("StatefulSet", "c"), False, False), (("ReplicationController", "c"), False, False),
        (("CloneSet", "c"), False, True), (("CloneSet", "c"), True, False),
    ],
)  # fmt: skip
def test_a_pod_that_nobody_would_create_again_blocks(
    owner: tuple[str, str] | None, is_custom_trusted: bool, blocks: bool
) -> None:
    context = make_context(skip_nodes_with_custom_controller_pods=not is_custom_trusted)
    verdict = replicated.judge(make_pod("p", owner=owner), context)
    assert (verdict is not None and verdict.reason is BlockingReason.NOT_REPLICATED) is blocks


def test_an_owner_that_is_no_controller_does_not_count() -> None:
    pod = make_pod("p")
    del pod["metadata"]["ownerReferences"][0]["controller"]
    verdict = replicated.judge(pod, make_context())
    assert verdict is not None and "default/p" in verdict.message
