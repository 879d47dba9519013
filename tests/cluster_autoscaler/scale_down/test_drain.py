from holokube.cluster_autoscaler.scale_down.drain import emptiness_of, pods_to_move
from holokube.cluster_autoscaler.scale_down.drain_rules import rules_for
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from tests.cluster_autoscaler.scale_down.world import SAFE_TO_EVICT, make_context, make_pod

CONTEXT = make_context()
RULES = rules_for(CONTEXT.options)
MIRROR = make_pod("mirror", owner=None, annotations={"kubernetes.io/config.mirror": "x"})
DAEMON = make_pod("daemon", owner=("DaemonSet", "d"))
WAITS = make_pod("waits", annotations={SAFE_TO_EVICT: "on-completion"})
BARE = make_pod("bare", owner=None)


def test_pods_are_sorted_by_what_becomes_of_them() -> None:
    moves = pods_to_move([MIRROR, make_pod("a"), DAEMON, WAITS, make_pod("b")], RULES, CONTEXT)
    assert [pod["metadata"]["name"] for pod in moves.pods] == ["a", "b"]
    assert moves.daemon_set_pods == (DAEMON,)
    assert moves.on_completion_pods == (WAITS,)
    assert moves.blocking_pod is None


def test_the_first_pod_that_blocks_is_named() -> None:
    other = make_pod("other", owner=None)
    blocking = pods_to_move([make_pod("a"), BARE, other], RULES, CONTEXT).blocking_pod
    assert blocking is not None
    assert blocking.pod is BARE
    assert blocking.reason is BlockingReason.NOT_REPLICATED


def test_a_node_is_empty_if_nothing_moves_and_nothing_blocks() -> None:
    assert emptiness_of([], RULES, CONTEXT) == (True, False)
    assert emptiness_of([MIRROR, DAEMON], RULES, CONTEXT) == (True, False)
    assert emptiness_of([DAEMON, WAITS], RULES, CONTEXT) == (True, True)
    assert emptiness_of([DAEMON, make_pod("a")], RULES, CONTEXT) == (False, False)
    assert emptiness_of([BARE], RULES, CONTEXT) == (False, False)


def test_a_pod_that_is_safe_to_evict_still_has_to_be_moved() -> None:
    safe = make_pod("safe", owner=None, annotations={SAFE_TO_EVICT: "true"})
    assert not emptiness_of([safe], RULES, CONTEXT).is_empty
    assert pods_to_move([safe], RULES, CONTEXT).pods == (safe,)
