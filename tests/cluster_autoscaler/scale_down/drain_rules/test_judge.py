"""Who remembers which pods are ordinary judges as who does not."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.drain_rules import Judge, judge, rules_for
from holokube.kube.timeformat import format_time
from tests.cluster_autoscaler.scale_down.world import NOW_S, SAFE_TO_EVICT, make_context, make_pdb, make_pod

RULES = rules_for(AutoscalerOptions())
OWNERS = [None, ("ReplicaSet", "rs"), ("DaemonSet", "d"), ("Job", "j"), ("Custom", "c")]
ANNOTATIONS = [None, {SAFE_TO_EVICT: "true"}, {SAFE_TO_EVICT: "false"}, {SAFE_TO_EVICT: "on-completion"},
               {"kubernetes.io/config.mirror": "x"}]  # fmt: skip


@st.composite
def pods(draw: st.DrawFn) -> Any:
    pod = make_pod(
        "p", "n", owner=draw(st.sampled_from(OWNERS)), annotations=draw(st.sampled_from(ANNOTATIONS)),
        namespace=draw(st.sampled_from(["default", "kube-system"])), phase=draw(st.sampled_from(["Running", "Failed"])),
        volumes=draw(st.sampled_from([[], [{"name": "v", "emptyDir": {}}]])))
    if draw(st.booleans()):
        pod["metadata"]["deletionTimestamp"] = format_time(NOW_S)
    return pod


@settings(max_examples=200, deadline=None)
@given(pods(), st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 4000)), min_size=1, max_size=4))
def test_a_pod_is_judged_alike_however_often(pod: Any, looks: list[tuple[int, bool, int]]) -> None:
    remembering = Judge(RULES)
    for allowed, has_controllers, later_s in looks:
        owner = (pod["metadata"].get("ownerReferences") or [{}])[0]
        key = owner.get("kind", ""), pod["metadata"]["namespace"], owner.get("name", "")
        controllers = {key: {"spec": {"replicas": allowed}}} if has_controllers else {}
        context = make_context(
            make_pdb(allowed=allowed), now_s=NOW_S + later_s, controllers=controllers, min_replica_count=2)
        assert remembering(pod, context) == judge(pod, RULES, context)
