"""Daemon pods that are sized by their node: counted per node, exactly, and only when asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.sizing import sized_pod, sized_requests
from holokube.packing import ClusterState, PodClass
from tests.kube.sizing.pods import container, daemon
from tests.packing.objects import make_node, make_pod

JsonObject = dict[str, Any]


def template(**annotations: str) -> JsonObject:
    """A pod as an autoscaler makes it of a DaemonSet's template: with an owner, for no node yet."""
    pod = daemon(
        container("a", {"cpu": "1", "memory": "1Gi"}), container("b", {"cpu": "1"}),
        **(annotations or {"request_cpu_fraction": "0.5"}),
    )  # fmt: skip
    del pod["spec"]["affinity"]
    return pod


def state_of(*nodes: JsonObject, size_daemons: bool = True) -> ClusterState:
    state = ClusterState(size_daemons=size_daemons)
    for node in nodes:
        state.add_node(node)
    return state


def used(state: ClusterState, row: int) -> dict[str, int]:
    columns = state.nodes.resource_columns
    return {name: int(state.nodes.used[row, columns[name]]) for name in ("cpu", "memory", "pods")}


def test_each_node_gives_what_the_pod_will_ask_for_there() -> None:
    state = state_of(make_node("small", cpu="2"), make_node("large", cpu="64"))
    cls = state.class_of(template(), from_template=True)
    for name, node in (("small", state.node(0)), ("large", state.node(1))):
        row = state.node_names[name]
        state.place(cls, row)
        assert used(state, row)["cpu"] == sized_requests(template(), node)["cpu"] == state.requests_on(cls, row)["cpu"]
    assert used(state, 0) == {"cpu": 1000, "memory": 2**30 * 1000, "pods": 1000}
    assert used(state, 1)["cpu"] == 32_000


def test_a_daemon_fits_where_its_size_does_although_its_template_would_not() -> None:
    """The template asks for two cores, which neither the small node has nor what is left of the large one."""
    state = state_of(make_node("small", cpu="1"), make_node("large", cpu="8"))
    state.add_pod(make_pod("other", requests={"cpu": "5"}, node="large"))
    cls = state.class_of(template(), from_template=True)
    assert state.feasible(cls)[:2].tolist() == [True, False]
    plain = state.class_of(template())
    assert state.feasible(plain)[:2].tolist() == [False, True]


def test_it_is_off_unless_asked_for() -> None:
    state = state_of(make_node("large", cpu="64"), size_daemons=False)
    cls = state.class_of(template(), from_template=True)
    assert cls.sizes is None and state.requests_on(cls, 0)["cpu"] == 2000


def test_pods_that_an_api_server_has_seen_count_as_they_are_written() -> None:
    """They were sized when they were admitted, or will never be."""
    state = state_of(make_node("large", cpu="64"))
    bound = template()
    bound["metadata"]["name"] = "agent-x"
    bound["spec"]["nodeName"] = "large"
    state.add_pod(bound)
    assert used(state, 0)["cpu"] == 2000
    pending = {**template(), "metadata": {**template()["metadata"], "name": "agent-y"}}
    state.assume_pod(pending, 0)
    assert used(state, 0)["cpu"] == 4000


def test_only_daemons_are_sized() -> None:
    state = state_of(make_node("large", cpu="64"))
    web = template()
    web["metadata"]["ownerReferences"] = [{"kind": "ReplicaSet", "name": "web", "controller": True}]
    assert state.class_of(web, from_template=True).sizes is None


def test_templates_with_other_fractions_are_other_classes() -> None:
    state = state_of(make_node("n"))
    pods = [template(request_cpu_fraction=fraction) for fraction in ("0.5", "0.25", "0.5")]
    half, quarter, again = state.classify(pods, from_template=True)
    assert half is again and half is not quarter


def test_sizes_are_worked_out_once_for_all_nodes_of_a_size() -> None:
    state = state_of(*(make_node(f"n{number}", cpu="4" if number % 2 else "8") for number in range(40)))
    cls = state.class_of(template(), from_template=True)
    assert state.feasible(cls)[:40].all()
    # The third is that of rows without a node.
    assert cls.sizes is not None and len(cls.sizes._by_node_size) == 3


def test_a_node_that_grows_is_judged_anew_and_what_is_placed_stays() -> None:
    state = state_of(make_node("n", cpu="2"))
    cls = state.class_of(template(request_cpu_fraction="0.6"), from_template=True)
    state.place(cls, 0)
    assert not state.feasible(cls)[0]
    state.update_node(make_node("n", cpu="20"))
    assert used(state, 0)["cpu"] == 1200
    assert state.feasible(cls)[0]
    state.place(cls, 0)
    assert used(state, 0)["cpu"] == 13_200


def test_shortages_are_named_by_size() -> None:
    state = state_of(make_node("small", cpu="2", memory="512Mi"), make_node("large", cpu="8"))
    state.add_pod(make_pod("other", requests={"cpu": "5"}, node="large"))
    cls = state.class_of(template(), from_template=True)
    assert state.why(cls, 0) == ("Insufficient memory",)
    assert state.why(cls, 1) == ("Insufficient cpu",)
    diagnosis = state.diagnose(cls)
    assert diagnosis.reasons == {"Insufficient memory": 1, "Insufficient cpu": 1}
    assert diagnosis.resolvable[:2].tolist() == [False, True]


def test_a_diagnosis_needs_no_node_that_gets_as_far_as_resources() -> None:
    state = state_of(make_node("n", cpu="64", unschedulable=True))
    cls = state.class_of(template(), from_template=True)
    assert state.diagnose(cls).reasons == {"node(s) were unschedulable": 1}
    assert not state_of().diagnose(state_of().class_of(template(), from_template=True)).reasons


def test_room_counts_in_sizes() -> None:
    state = state_of(make_node("n", cpu="10", memory="64Gi", pods="100"), make_node("m", cpu="10", pods="3"))
    cls = state.class_of(template(request_cpu_fraction="0.1"), from_template=True)
    assert state.room(cls)[:2].tolist() == [10, 3]


def test_a_template_that_cannot_be_sized_counts_as_written() -> None:
    state = state_of(make_node("n", cpu="10"))
    cls = state.class_of(template(request_cpu_fraction="half"), from_template=True)
    assert state.requests_on(cls, 0)["cpu"] == 2000


# Against the plain function, through random histories

cores = st.integers(1, 64).map(str)
fractions = st.sampled_from(["0.1", "0.25", "0.333", "0.9", "nonsense"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("place"), st.integers(0, 3), st.integers(0, 2)),
        st.tuples(st.just("resize"), st.integers(0, 3), cores),
        st.tuples(st.just("remove"), st.integers(0, 20)),
        st.tuples(st.just("node away"), st.integers(0, 3)),
        st.tuples(st.just("node back"), st.integers(0, 3), cores),
        st.just(("fork",)), st.just(("rollback",)), st.just(("commit",)),
    ),
    max_size=25,
)  # fmt: skip


class Naive:
    """What is on each node, kept as plain dicts and copied at every fork."""

    def __init__(self) -> None:
        self.nodes: dict[str, JsonObject] = {}
        self.placed: dict[str, tuple[str, int]] = {}

    def copy(self) -> Naive:
        other = Naive()
        other.nodes, other.placed = dict(self.nodes), dict(self.placed)
        return other


def apply(state: ClusterState, naive: Naive, forks: list[Naive], step: Any, pods: list[JsonObject]) -> Naive:
    match step:
        case ("place", number, which) if f"n{number}" in naive.nodes:
            cls = state.class_of(pods[which], from_template=True)
            name = f"n{number}"
            key = state.place(cls, state.node_names[name])
            naive.placed[key] = name, sized_requests(pods[which], naive.nodes[name])["cpu"]
        case ("resize", number, cpu) if f"n{number}" in naive.nodes:
            naive.nodes[f"n{number}"] = make_node(f"n{number}", cpu=cpu, pods="100")
            state.update_node(naive.nodes[f"n{number}"])
        case ("remove", number) if naive.placed:
            key = sorted(naive.placed)[number % len(naive.placed)]
            state.remove_pod(key)
            del naive.placed[key]
        case ("node away", number) if f"n{number}" in naive.nodes:
            state.remove_node(f"n{number}")
            del naive.nodes[f"n{number}"]
        case ("node back", number, cpu) if f"n{number}" not in naive.nodes:
            naive.nodes[f"n{number}"] = make_node(f"n{number}", cpu=cpu, pods="100")
            state.add_node(naive.nodes[f"n{number}"])
        case ("fork",):
            state.fork()
            forks.append(naive.copy())
        case ("commit",) if forks:
            state.commit()
            forks.pop()
        case ("rollback",) if forks:
            state.rollback()
            naive = forks.pop()
    return naive


def check(state: ClusterState, naive: Naive, pods: list[JsonObject]) -> None:
    column = state.nodes.resource_columns["cpu"]
    for name, node in naive.nodes.items():
        row = state.node_names[name]
        taken = sum(cpu for on, cpu in naive.placed.values() if on == name)
        assert state.nodes.used[row, column] == taken
        for pod in pods:
            cls: PodClass = state.class_of(pod, from_template=True)
            left = state.nodes.allocatable[row, column] - taken
            memory = 2**30 * 1000 * (1 + sum(on == name for on, _ in naive.placed.values()))
            fits = sized_requests(pod, node)["cpu"] <= left and memory <= 8 * 2**30 * 1000
            assert bool(state.feasible(cls)[row]) == fits
            assert np.array_equal(state.feasible(cls), state._feasibility.recompute(cls))


@settings(max_examples=80, deadline=None)
@given(steps, st.lists(fractions, min_size=3, max_size=3))
def test_random_histories_agree_with_the_plain_function(history: list[Any], chosen: list[str]) -> None:
    pods = [template(request_cpu_fraction=fraction) for fraction in chosen]
    naive = Naive()
    state = ClusterState(size_daemons=True)
    for number in range(4):
        naive.nodes[f"n{number}"] = make_node(f"n{number}", cpu=str(2 + number), pods="100")
        state.add_node(naive.nodes[f"n{number}"])
    forks: list[Naive] = []
    for step in history:
        naive = apply(state, naive, forks, step, pods)
        check(state, naive, pods)


def test_a_placed_daemon_is_what_admission_will_make_of_it() -> None:
    node = make_node("n", cpu="13", memory="29Gi")
    state = state_of(node)
    pod = template(request_cpu_fraction="0.07", request_memory_fraction="0.03", exclude_containers="b")
    cls = state.class_of(pod, from_template=True)
    key = state.place(cls, 0)
    placed = state.pod(key)
    admitted = state.class_of(sized_pod(pod, node))
    assert placed is not None and placed.requests == admitted.requests
    assert placed.requests_nonzero == admitted.requests_nonzero
