"""What is remembered of nodes from turn to turn gives the answers of a first look."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down import Unremovable, UnremovableReason
from holokube.cluster_autoscaler.scale_down.candidates import CandidateFinder, find_candidates
from holokube.cluster_autoscaler.scale_down.cooldown import LocalDelays
from holokube.cluster_autoscaler.scale_down.drain_rules import rules_for
from holokube.cluster_autoscaler.scale_down.eligibility import EligibilityFilter, filter_out_unremovable
from holokube.cluster_autoscaler.scale_down.unremovable import UnremovableNodes
from holokube.cluster_autoscaler.taints import to_be_deleted
from holokube.kube.timeformat import format_time
from tests.cluster_autoscaler.scale_down.world import NOW_S, SAFE_TO_EVICT, World, make_group, make_node, make_pod

OPTIONS = AutoscalerOptions()
RULES = rules_for(OPTIONS)
NODES = [f"n{i}" for i in range(16)]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["pod", "pod", "no pod", "node", "remove", "add", "group", "recent", "tried", *["turn"] * 4]),
        st.integers(0, 15), st.integers(0, 5),
    ),
    min_size=10, max_size=60,
)  # fmt: skip


def some_pod(name: str, node: str, kind: int) -> Any:
    if kind == 0:
        return make_pod(name, node, owner=("DaemonSet", "d"), cpu="1")
    if kind == 1:
        return make_pod(name, node, annotations={SAFE_TO_EVICT: "on-completion"})
    pod = make_pod(name, node, cpu=f"{kind}", namespace="kube-system" if kind == 3 else "default")
    if kind == 4:
        # It is taken for gone in a while.
        pod["metadata"]["deletionTimestamp"] = format_time(NOW_S)
        pod["spec"]["terminationGracePeriodSeconds"] = 0
    return pod


def some_node(name: str, kind: int) -> Any:
    taints = [to_be_deleted(NOW_S - 250)] if kind == 1 else []
    annotations = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"} if kind == 2 else {}
    return make_node(name, taints=taints, annotations=annotations, ready=kind != 3, cpu="4" if kind else "8")


@settings(max_examples=150, deadline=None)
@given(STEPS)
def test_candidates_and_verdicts_are_those_of_a_first_look(steps: list[tuple[str, int, int]]) -> None:
    world = World([make_node(name) for name in NODES], groups=[make_group(size=16), make_group("small", size=1)])
    finder, eligibility = CandidateFinder(OPTIONS, RULES, LocalDelays()), EligibilityFilter(OPTIONS)
    # Each node has a pod, so that most of what happens leaves their order as it is.
    pods: dict[str, Any] = {name: make_pod(name, name, cpu="1500m") for name in NODES[:10]}
    recent: dict[str, float] = {}
    tried: list[tuple[str, int]] = []
    previous: frozenset[str] = frozenset()
    for what, i, kind in [*steps, ("turn", 1, 0)]:
        name = NODES[i]
        if what == "pod":
            pods[f"p{i}"] = some_pod(f"p{i}", NODES[(i * 3 + kind) % 16], kind)
        elif what == "no pod":
            pods.pop(f"p{i}", None)
        elif what in ("node", "add"):
            world.nodes[name] = some_node(name, kind)
            world.group_of_node = {**world.group_of_node, name: "ng"}
        elif what == "remove" and len(world.nodes) > 1:
            world.nodes.pop(name, None)
        elif what == "group":
            world.group_of_node = {**world.group_of_node, name: "small" if kind else "ng"}
            world.groups["small"] = make_group("small", size=kind, scale_down_utilization_threshold=0.1 * kind)
        elif what == "recent":
            recent[name] = world.now_s + 20.0 * kind
        elif what == "tried":
            tried.append((name, kind))
        elif what == "turn":
            world.pods = list(pods.values())
            given = world.look(after_s=25.0)
            for place, (node, of_kind) in enumerate(tried):
                if given.snapshot.has_node(node):
                    given.snapshot.force_add_pod(some_pod(f"tried{place}", "", of_kind), node)
            tried.clear()
            found = finder.find(given, previous)
            assert found == find_candidates(given, OPTIONS, RULES, previous, LocalDelays())
            known = UnremovableNodes()
            for node, until_s in recent.items():
                if until_s > world.now_s:
                    stays = Unremovable({"metadata": {"name": node}}, UnremovableReason.BLOCKED_BY_POD)
                    known.add_until(stays, until_s)
            ours = eligibility.split(found.nodes, found.names, given, known)
            theirs = filter_out_unremovable(found.nodes, given, OPTIONS, known)
            assert (ours.eligible, ours.ineligible) == (theirs.eligible, theirs.ineligible)
            assert list(ours.reasons) == list(theirs.reasons)
            assert ours.utilization == theirs.utilization
            if i == 0:
                previous = frozenset(ours.eligible[:kind])
