from holokube.cluster_autoscaler.scale_down.drain_rules import Outcome, daemon_set
from tests.cluster_autoscaler.scale_down.world import make_context, make_pod


def test_pods_of_daemon_sets_never_hold_their_node() -> None:
    marked = make_pod("p", owner=None, annotations={"cluster-autoscaler.kubernetes.io/daemonset-pod": "true"})
    for pod in (make_pod("p", owner=("DaemonSet", "d")), marked):
        verdict = daemon_set.judge(pod, make_context())
        assert verdict is not None and verdict.outcome is Outcome.DRAIN
    assert daemon_set.judge(make_pod("p"), make_context()) is None
