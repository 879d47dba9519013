from holokube.cluster_autoscaler.scale_down import (
    BlockingPod,
    BlockingReason,
    HomelessPod,
    Unremovable,
    UnremovableReason,
    Utilization,
)
from tests.cluster_autoscaler.scale_down.world import make_node, make_pod


def test_a_node_that_stays_says_everything_about_it() -> None:
    blocked = Unremovable(
        make_node("n"), UnremovableReason.BLOCKED_BY_POD,
        blocking_pod=BlockingPod(make_pod("p"), BlockingReason.NOT_REPLICATED, "why"), recheck_at_s=12.0,
    )  # fmt: skip
    assert blocked.as_json() == {
        "node": "n", "reason": "BlockedByPod", "blockingPod": "default/p", "blockingReason": "NotReplicated",
        "blockingMessage": "why", "recheckAtSeconds": 12.0,
    }  # fmt: skip
    assert blocked.blocking_reason == "NotReplicated"


def test_so_does_one_whose_pods_found_no_place() -> None:
    used = Utilization("cpu", 0.5, 0.5, 0.25)
    homeless = Unremovable(
        make_node("n"), UnremovableReason.NO_PLACE_TO_MOVE_PODS,
        homeless_pod=HomelessPod(make_pod("p"), {"Insufficient cpu": 2}), utilization=used, threshold=0.5,
    )  # fmt: skip
    again = Unremovable(make_node("n"), UnremovableReason.RECENTLY_UNREMOVABLE, earlier=homeless, detail="later")
    assert again.blocking_reason == ""
    assert again.as_json() == {
        "node": "n", "reason": "RecentlyUnremovable", "detail": "later",
        "earlier": {
            "node": "n", "reason": "NoPlaceToMovePods", "homelessPod": "default/p", "refusals": {"Insufficient cpu": 2},
            "utilization": {"resource": "cpu", "value": 0.5, "cpu": 0.5, "memory": 0.25, "gpu": 0.0}, "threshold": 0.5,
        },
    }  # fmt: skip
