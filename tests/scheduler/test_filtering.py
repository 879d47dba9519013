from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.packing import ClusterState
from holokube.scheduler.filtering import Filtering
from holokube.scheduler.nominations import Nominations
from tests.builders import JsonObject
from tests.packing.objects import affinity_term, pod_anti_affinity, spread
from tests.scheduler.objects import make_node, waiting


def world(*promised: tuple[JsonObject, str]) -> Filtering:
    state, nominations = ClusterState(), Nominations()
    for name in "ab":
        state.add_node(make_node(name, {"zone": "z"}))
    for pod, node in promised:
        nominations.put(pod, node)
    return Filtering(state, nominations)


def feasible(filtering: Filtering, pod: JsonObject) -> str:
    rivals = filtering.rivals(pod)
    mask = filtering.feasible(filtering.class_of(pod, rivals), rivals)
    return "".join(filtering.state.name_of(row) for row in filtering.state.rows if mask[row])


def test_a_promised_node_counts_as_taken_for_equals_and_only_there() -> None:
    filtering = world((waiting("vip", priority=5, cpu="3"), "a"))
    assert feasible(filtering, waiting("p", priority=5, cpu="2")) == "b"
    assert feasible(filtering, waiting("p", priority=6, cpu="2")) == "ab"
    assert not filtering.state.pods, "nothing is left of the trials"


def test_promises_to_nodes_that_are_gone_mean_nothing() -> None:
    filtering = world((waiting("vip", priority=5, cpu="3"), "gone"))
    assert filtering.rivals(waiting("p")) == {}


def test_a_rival_with_anti_affinity_keeps_its_whole_zone_free_only_seen_from_its_node() -> None:
    # Upstream counts a promised pod while it looks at the promised node, and not while it looks at others.
    hostile = waiting("vip", priority=5, affinity=pod_anti_affinity(affinity_term("x", "zone")))
    assert feasible(world((hostile, "a")), waiting("p", labels={"app": "x"})) == "b"


def test_reasons_and_diagnosis_see_the_rivals() -> None:
    filtering = world((waiting("vip", priority=5, cpu="3"), "a"))
    pod = waiting("p", cpu="2")
    filtering.state.add_pod(waiting("there", node="b", cpu="4", priority=9))
    rivals = filtering.rivals(pod)
    cls = filtering.class_of(pod, rivals)
    assert filtering.reasons(cls, 0, rivals[0]) == ("Insufficient cpu",)
    assert filtering.reasons(cls, 0, ()) == ()
    found = filtering.diagnose(cls, rivals)
    assert (found.reasons, found.plugins) == ({"Insufficient cpu": 2}, {"NodeResourcesFit"})
    assert found.resolvable[:2].tolist() == [True, True]


def test_disabled_filters_refuse_nobody() -> None:
    state = ClusterState()
    state.add_node(make_node("a", unschedulable=True))
    cls = state.class_of(waiting())
    assert not Filtering(state, Nominations()).mask(cls)[0]
    assert Filtering(state, Nominations(), frozenset({"NodeUnschedulable"})).mask(cls)[0]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_all_rows_at_once_are_what_each_row_says(data: st.DataObject) -> None:
    kinds: list[JsonObject] = [
        {}, {"affinity": pod_anti_affinity(affinity_term("x", "zone"))},
        {"topologySpreadConstraints": [spread("kubernetes.io/hostname", "x")]},
    ]  # fmt: skip

    def drawn(name: str) -> JsonObject:
        cpu, app = data.draw(st.sampled_from("123")), data.draw(st.sampled_from("xy"))
        return waiting(name, cpu=cpu, labels={"app": app}, **data.draw(st.sampled_from(kinds)))

    promised = [(drawn(f"r{n}"), data.draw(st.sampled_from("ab"))) for n in range(data.draw(st.integers(0, 3)))]
    filtering = world(*promised)
    for number in range(data.draw(st.integers(0, 2))):
        there = drawn(f"t{number}")
        filtering.state.assume_pod(there, data.draw(st.integers(0, 1)))
    pod = drawn("p")
    rivals = filtering.rivals(pod)
    cls = filtering.class_of(pod, rivals)
    each = [filtering.fits(cls, row, rivals.get(row, ())) for row in (0, 1)]
    assert filtering.feasible(cls, rivals)[:2].tolist() == each
    if not any(each):
        found = filtering.diagnose(cls, rivals)
        whys = [reason for row in (0, 1) for reason in filtering.reasons(cls, row, rivals.get(row, ()))]
        assert found.reasons == {reason: whys.count(reason) for reason in whys}
