"""Where many pods would go."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.cluster_autoscaler.hinting import HintingSimulator, Status, by_priority
from holokube.cluster_autoscaler.objects import controller_of, is_daemon_set_pod, pod_identity
from holokube.cluster_autoscaler.pods.kinds import PodKinds
from holokube.cluster_autoscaler.snapshot import ClusterSnapshot
from tests.builders import JsonObject
from tests.cluster_autoscaler.pod_objects import owned_pod
from tests.packing.objects import affinity_term, make_node, make_pod, pod_anti_affinity


def snapshot_of(*nodes: JsonObject, pods: tuple[JsonObject, ...] = ()) -> ClusterSnapshot:
    snapshot = ClusterSnapshot()
    snapshot.set_cluster_state(nodes, pods)
    return snapshot


def places(statuses: list[Status]) -> list[tuple[str, str]]:
    return [(status.pod["metadata"]["name"], status.node_name) for status in statuses]


def test_pods_go_where_they_went_last_time() -> None:
    nodes = [make_node(f"n{i}") for i in range(3)]
    snapshot, simulator = snapshot_of(*nodes), HintingSimulator()
    pods = [owned_pod(f"p{i}", requests={"cpu": "1"}) for i in range(4)]
    first = places(simulator.schedule(snapshot, pods)[0])
    assert first == [("p0", "n1"), ("p1", "n2"), ("p2", "n0"), ("p3", "n1")]
    simulator.drop_old_hints()
    snapshot.set_cluster_state(nodes, ())
    assert places(simulator.schedule(snapshot, pods[::-1])[0]) == first[::-1]


def test_a_hint_is_forgotten_after_a_round_without_use() -> None:
    nodes = [make_node(f"n{i}") for i in range(3)]
    snapshot, simulator = snapshot_of(*nodes), HintingSimulator()
    pod = owned_pod("p")
    assert places(simulator.schedule(snapshot, [pod])[0]) == [("p", "n1")]
    simulator.drop_old_hints()
    simulator.drop_old_hints()
    snapshot.set_cluster_state(nodes, ())
    assert places(simulator.schedule(snapshot, [pod])[0]) == [("p", "n2")]


def test_a_hint_to_a_node_that_is_gone_full_or_not_allowed_is_no_help() -> None:
    nodes = [make_node(f"n{i}", cpu="1") for i in range(3)]
    snapshot, simulator = snapshot_of(*nodes), HintingSimulator()
    pods = [owned_pod(f"p{i}", requests={"cpu": "1"}) for i in range(3)]
    for pod, node_name in zip(pods, ("gone", "n0", "n1"), strict=True):
        simulator.hints.set(pod_identity(pod), node_name)
    snapshot.force_add_pod(make_pod("full", requests={"cpu": "1"}), "n0")
    statuses, _ = simulator.schedule(snapshot, pods, allowed=lambda name: name != "n1")
    assert places(statuses) == [("p0", "n2")]


def test_higher_priorities_go_first_and_hints_only_within_a_priority() -> None:
    snapshot, simulator = snapshot_of(make_node("n", cpu="1")), HintingSimulator()
    low, high = owned_pod("low", requests={"cpu": "1"}), owned_pod("high", requests={"cpu": "1"}, priority=10)
    simulator.hints.set(pod_identity(low), "n")
    assert places(simulator.schedule(snapshot, [low, high])[0]) == [("high", "n")]


def test_pods_without_a_priority_are_of_priority_zero() -> None:
    pods = [make_pod("a"), make_pod("b", priority=0), make_pod("c", priority=-1), make_pod("d", priority=1)]
    assert [[pod["metadata"]["name"] for pod in group] for group in by_priority(pods)] == [["d"], ["a", "b"], ["c"]]


def test_a_failure_ends_the_priority_if_asked_for() -> None:
    snapshot, simulator = snapshot_of(make_node("n", cpu="2")), HintingSimulator()
    pods = [owned_pod("big", "a", requests={"cpu": "3"}), owned_pod("small", "b", requests={"cpu": "1"})]
    assert places(simulator.schedule(snapshot, pods, break_on_failure=True)[0]) == []
    assert places(simulator.schedule(snapshot, pods)[0]) == [("small", "n")]


def test_a_pod_like_a_hopeless_one_is_hopeless_even_if_it_is_not_any_more() -> None:
    snapshot, simulator = snapshot_of(make_node("n", cpu="4")), HintingSimulator()
    term = affinity_term("b", "kubernetes.io/hostname")
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    wants_b = [owned_pod(f"a{i}", "a", affinity=near) for i in range(2)]
    pods = [wants_b[0], owned_pod("b", "b", labels={"app": "b"}), wants_b[1]]
    assert places(simulator.schedule(snapshot, pods)[0]) == [("b", "n")]
    alone = [{**pod, "metadata": {**pod["metadata"], "ownerReferences": []}} for pod in wants_b]
    snapshot.set_cluster_state([make_node("n")], ())
    assert places(HintingSimulator().schedule(snapshot, [alone[0], pods[1], alone[1]])[0]) == [("b", "n"), ("a1", "n")]


def test_controllers_with_too_many_kinds_of_hopeless_pods_are_counted() -> None:
    snapshot = snapshot_of(make_node("n", cpu="1"))
    pods = [owned_pod(f"p{i}", "many", requests={"cpu": f"{i + 2}"}) for i in range(11)]
    pods += [owned_pod(f"q{i}", "few", requests={"cpu": f"{i + 2}"}) for i in range(10)]
    assert HintingSimulator().schedule(snapshot, pods) == ([], 1)


def test_a_resource_that_is_asked_for_in_the_middle_is_offered_nowhere() -> None:
    snapshot = snapshot_of(make_node("n"))
    pods = [owned_pod("a", "a"), owned_pod("b", "b", requests={"example.com/new": "1"}), owned_pod("c", "a")]
    assert places(HintingSimulator().schedule(snapshot, pods)[0]) == [("a", "n"), ("c", "n")]


# The same by asking about every node for every pod, as upstream does.


def plainly(
    snapshot: ClusterSnapshot,
    hints: dict[str, str],
    pods: list[JsonObject],
    allowed: Callable[[str], bool],
    break_on_failure: bool,
) -> list[tuple[str, str]]:
    kinds, hopeless, found = PodKinds(), set(), []
    for group in by_priority(pods):
        left = []
        for pod in group:
            hint = hints.get(pod_identity(pod), "")
            if snapshot.has_node(hint) and allowed(hint) and not snapshot.try_pod(pod, hint):
                snapshot.force_add_pod(pod, hint)
                found.append((pod["metadata"]["name"], hint))
            else:
                left.append(pod)
        for pod in left:
            owner = controller_of(pod)
            similar = (owner["uid"], kinds.kind_of(pod)) if owner else None
            name = None if similar in hopeless else _search(snapshot, pod, allowed)
            if name is not None:
                hints[pod_identity(pod)] = name
                found.append((pod["metadata"]["name"], name))
                continue
            if similar and not is_daemon_set_pod(pod) and sum(uid == similar[0] for uid, _ in hopeless) < 10:
                hopeless.add(similar)
            if break_on_failure:
                break
    return found


def _search(snapshot: ClusterSnapshot, pod: JsonObject, allowed: Callable[[str], bool]) -> str | None:
    names = list(snapshot.node_names)
    for step in range(len(names)):
        index = (step + 1 + snapshot.last_index) % len(names)
        name = names[index]
        is_cordoned = snapshot.node(name)["spec"]["unschedulable"]
        if not is_cordoned and allowed(name) and not snapshot.try_pod(pod, name):
            snapshot.last_index = index
            snapshot.force_add_pod(pod, name)
            return name
    return None


def _pod(draw: st.DrawFn, name: str) -> JsonObject:
    shape = draw(st.integers(0, 5))
    spec: JsonObject = {}
    labels = {"app": draw(st.sampled_from("ab"))}
    requests = {"cpu": draw(st.sampled_from(["500m", "1", "2"]))}
    if shape == 0:
        spec["affinity"] = pod_anti_affinity(affinity_term("a", "kubernetes.io/hostname"))
    elif shape == 1:
        spec["ports"] = [{"containerPort": 80, "hostPort": 80}]
    elif shape == 2:
        spec["nodeSelector"] = {"zone": "z0"}
    elif shape == 3:
        requests["example.com/gpu"] = "1"
        spec["tolerations"] = [{"operator": "Exists"}]
    if draw(st.integers(0, 3)) == 0:
        spec["priority"] = draw(st.integers(-1, 1))
    owner = draw(st.sampled_from(["x", "y", ""]))
    fields = {"labels": labels, "requests": requests, **spec}
    return owned_pod(name, owner, **fields) if owner else make_pod(name, **fields)


@st.composite
def _problems(draw: st.DrawFn) -> tuple[list[JsonObject], list[JsonObject], list[JsonObject], dict[str, str], set[str]]:
    nodes = [
        make_node(
            f"n{i}", {"zone": f"z{draw(st.integers(0, 1))}"}, cpu=draw(st.sampled_from(["1", "2", "4"])), pods="4",
            unschedulable=draw(st.integers(0, 5)) == 0,
            **({"example.com/gpu": "1"} if draw(st.booleans()) else {}),
        )
        for i in range(draw(st.integers(0, 5)))
    ]  # fmt: skip
    kinds = [_pod(draw, "kind") for _ in range(draw(st.integers(1, 4)))]
    pods = []
    for i in range(draw(st.integers(0, 14))):
        pod = draw(st.sampled_from(kinds))
        going = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if draw(st.integers(0, 4)) == 0 else {}
        pods.append({**pod, "metadata": {**pod["metadata"], "name": f"p{i}", "uid": f"uid-{i}", **going}})
    bound = [
        {**_pod(draw, f"b{i}"), "status": {"nominatedNodeName": f"n{draw(st.integers(0, 4))}"}}
        for i in range(draw(st.integers(0, 3)))
    ]
    hints = {pod_identity(pod): f"n{draw(st.integers(0, 5))}" for pod in pods if draw(st.booleans())}
    return nodes, bound, pods, hints, {node["metadata"]["name"] for node in nodes if draw(st.integers(0, 4))}


def _left(snapshot: ClusterSnapshot, name: str) -> dict[str, int]:
    """What is left of each resource; one that nobody has is as good as one that nobody has asked for."""
    return {resource: milli for resource, milli in snapshot.state.free(snapshot.row(name)).items() if milli}


def _going(snapshot: ClusterSnapshot, name: str) -> list[bool]:
    """Which of the pods of a node the engine takes for pods on their way out."""
    return [placed.is_terminating for placed in snapshot.state.pods_on(snapshot.row(name))]


@settings(max_examples=200, deadline=None)
@given(_problems(), st.integers(0, 6), st.booleans(), st.booleans())
def test_counting_gives_the_same_as_trying_every_pod_on_every_node(
    problem: tuple[list[JsonObject], list[JsonObject], list[JsonObject], dict[str, str], set[str]],
    last_index: int,
    break_on_failure: bool,
    is_limited: bool,
) -> None:
    nodes, bound, pods, hints, allowed_names = problem
    allowed = allowed_names.__contains__ if is_limited else (lambda name: True)
    ours, theirs, simulator = snapshot_of(*nodes, pods=tuple(bound)), ClusterSnapshot(), HintingSimulator()
    theirs.set_cluster_state(nodes, bound)
    ours.last_index = theirs.last_index = last_index
    for identity, name in hints.items():
        simulator.hints.set(identity, name)
    ours.fork()
    statuses, _ = simulator.schedule(
        ours, pods, allowed=allowed if is_limited else None, break_on_failure=break_on_failure
    )
    assert places(statuses) == plainly(theirs, dict(hints), pods, allowed, break_on_failure)
    assert ours.last_index == theirs.last_index
    for name in ours.node_names:
        assert ours.pods_on(name) == theirs.pods_on(name)
        assert _left(ours, name) == _left(theirs, name)
        assert _going(ours, name) == _going(theirs, name)
    ours.rollback()
    again = snapshot_of(*nodes, pods=tuple(bound))
    for name in ours.node_names:
        assert ours.pods_on(name) == again.pods_on(name)
