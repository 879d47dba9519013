"""The view: sums that come out even, deltas that make up the snapshot, and bounds."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.dashboard import view as view_module
from holokube.dashboard.view import COLUMNS, SERIES, ClusterView
from holokube.runtime.journal import Journal
from tests.dashboard.made import CREATED_S, bound_pod, ready_node, unschedulable


def made_view() -> ClusterView:
    view = ClusterView(VirtualClock())
    view.begin()
    return view


def as_node(row: list[Any]) -> dict[str, Any]:
    return dict(zip(COLUMNS, row, strict=True))


class Copy:
    """What a page knows: the last snapshot, and all deltas since."""

    def __init__(self, snapshot: dict[str, Any]) -> None:
        self.rows = {row[0]: row for row in snapshot["rows"]}
        self.totals, self.pending = snapshot["totals"], snapshot["pending"]

    def take(self, delta: dict[str, Any]) -> None:
        for row in delta.get("rows", ()):
            self.rows[row[0]] = row
        for name in delta.get("gone", ()):
            self.rows.pop(name, None)
        self.totals, self.pending = delta["totals"], delta.get("pending", self.pending)


def test_a_row_tells_of_the_node_and_what_its_pods_ask_for() -> None:
    view = made_view()
    view.on_node("ADDED", None, ready_node("n1", labels={"eks-node-viewer/instance-price": "0.25"}))
    for name in ("a", "b", "c"):
        view.on_pod("ADDED", None, bound_pod(name, "n1", owner=("StatefulSet", "db")))
    view.on_pod("ADDED", None, bound_pod("d", "n1", ready="False", cpu="1"))
    node = as_node(view.snapshot()["rows"][0])
    assert (node["name"], node["state"], node["price"], node["pods"]) == ("n1", "ready", 0.25, 4)
    assert (node["cpu"], node["cpuUsed"], node["memory"], node["memoryUsed"]) == (4000, 2500, 8192, 4096)
    assert node["blocks"] == [("default/d", 1, 1, 1000, 1024), ("default/db", 0, 3, 500, 1024)]


def test_totals_count_nodes_pods_and_money() -> None:
    view = made_view()
    view.on_node("ADDED", None, ready_node("a", labels={"eks-node-viewer/instance-price": "0.1"}))
    view.on_node("ADDED", None, ready_node("b", labels={"eks-node-viewer/instance-price": "0.2"}))
    view.on_node("ADDED", None, ready_node("c", ready="False"))
    view.on_pod("ADDED", None, bound_pod("p", "a"))
    view.on_pod("ADDED", None, bound_pod("q", ""))
    totals = view.totals()
    assert totals["nodes"] == 3 and totals["states"]["ready"] == 2 and totals["states"]["booting"] == 1
    assert totals["pods"]["running"] == 1 and totals["pending"] == 1
    assert totals["cost"] == 0.3 and totals["unpriced"] == 1, "exactly, not 0.30000000000000004"
    assert (totals["cpu"], totals["cpuUsed"]) == (12_000, 500)


def test_without_any_price_there_is_no_cost() -> None:
    view = made_view()
    assert view.totals()["cost"] is None
    view.on_node("ADDED", None, ready_node("a"))
    assert view.totals()["cost"] is None and view.totals()["unpriced"] == 1


def test_a_delta_has_only_what_changed() -> None:
    view = made_view()
    for number in range(10):
        view.on_node("ADDED", None, ready_node(f"n{number}"))
    assert len(view.drain()["rows"]) == 10
    assert "rows" not in view.drain()
    view.on_pod("ADDED", None, bound_pod("p", "n3"))
    view.on_node("DELETED", ready_node("n4"), None)
    delta = view.drain()
    assert [row[0] for row in delta["rows"]] == ["n3"] and delta["gone"] == ["n4"]


def test_an_event_that_changes_nothing_to_be_seen_is_no_change() -> None:
    view = made_view()
    node, pod = ready_node("n"), bound_pod("p", "n")
    view.on_node("ADDED", None, node)
    view.on_pod("ADDED", None, pod)
    view.drain()
    beat = {**node, "metadata": {**node["metadata"], "resourceVersion": "2"}}
    view.on_node("MODIFIED", node, beat)
    view.on_pod("MODIFIED", pod, {**pod, "metadata": {**pod["metadata"], "resourceVersion": "2"}})
    assert "rows" not in view.drain()


def test_a_node_that_broke_is_told_from_one_that_boots() -> None:
    view = made_view()
    booting, ready = ready_node("n", ready="False"), ready_node("n")
    view.on_node("ADDED", None, booting)
    assert as_node(view.snapshot()["rows"][0])["state"] == "booting"
    view.on_node("MODIFIED", booting, ready)
    view.on_node("MODIFIED", ready, booting)
    assert as_node(view.snapshot()["rows"][0])["state"] == "not-ready"


def test_a_node_of_the_same_name_is_another_one() -> None:
    view = made_view()
    first, second = ready_node("n", uid="1"), ready_node("n", uid="2", ready="False")
    view.on_node("ADDED", None, first)
    view.on_pod("ADDED", None, bound_pod("p", "n"))
    view.on_node("MODIFIED", first, second)
    node = as_node(view.snapshot()["rows"][0])
    assert (node["state"], node["pods"]) == ("booting", 1)
    assert view.totals()["nodes"] == 1 and view.totals()["cpuUsed"] == 500


def test_pods_may_come_before_and_stay_after_their_node() -> None:
    view = made_view()
    pod = bound_pod("p", "n")
    view.on_pod("ADDED", None, pod)
    assert view.totals()["cpuUsed"] == 0, "it is on no node that is known"
    view.on_node("ADDED", None, ready_node("n"))
    assert view.totals()["cpuUsed"] == 500
    view.on_node("DELETED", ready_node("n"), None)
    assert view.totals()["cpuUsed"] == view.totals()["cpu"] == 0
    view.on_pod("DELETED", pod, None)
    assert view.totals()["pods"]["running"] == 0 and not view._loads


def test_pending_pods_stand_together_by_workload_the_oldest_first() -> None:
    view = made_view()
    young = "2026-01-01T00:10:00Z"
    for number in range(3):
        pod = bound_pod(f"web-{number}", "", owner=("StatefulSet", "web"), creationTimestamp=young)
        view.on_pod("ADDED", None, unschedulable(pod, "0/1 nodes are available: 1 Insufficient cpu."))
    view.on_pod("ADDED", None, bound_pod("alone", "", cpu="7"))
    alone, web = view.pending()
    assert alone == {"workload": "default/alone", "count": 1, "since": CREATED_S, "cpu": 7000, "memory": 1024,
                     "reason": "waiting for the scheduler"}
    assert (web["workload"], web["count"], web["since"]) == ("default/web", 3, CREATED_S + 600)
    assert web["reason"] == "0/1 nodes are available: 1 Insufficient cpu."


def test_what_is_sent_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(view_module, "ROWS_MAX", 10)
    view = made_view()
    for number in range(25):
        view.on_node("ADDED", None, ready_node(f"n{number}"))
    for number in range(300):
        view.on_pod("ADDED", None, bound_pod(f"p{number}", ""))
    for number in range(700):
        view.on_pod("ADDED", None, bound_pod(f"q{number}", "n1"))
    assert len(view.pending()) == view_module.PENDING_SHOWN
    pods = view.node_pods("n1")
    assert pods is not None and pods["count"] == 700 and len(pods["pods"]) == view_module.PODS_SHOWN
    copy = Copy({"rows": [], "totals": {}, "pending": []})
    sizes = []
    for _ in range(3):
        delta = view.drain()
        sizes.append(len(delta["rows"]))
        copy.take(delta)
    assert sizes == [10, 10, 5] and len(copy.rows) == 25, "the rest comes later, not never"


def test_nodes_that_come_and_go_and_decisions_of_a_journal_are_told_of() -> None:
    clock = VirtualClock()
    view = ClusterView(clock)
    view.on_node("ADDED", None, ready_node("there-already"))
    view.begin()
    journal = Journal()
    journal.subscribe(view.on_decision)
    view.on_node("ADDED", None, ready_node("new", labels={"karpenter.sh/nodepool": "p"}))
    journal.note(clock.time(), "scale-up", "p", "enlarged", ["by 1"], pods=3)
    view.on_node("DELETED", ready_node("new"), None)
    told = [(line["kind"], line["subjects"], line["decision"]) for line in view.drain()["decisions"]]
    assert told == [("node", ("new",), "joined"), ("scale-up", ("p",), "enlarged"), ("node", ("new",), "left")]


def test_nodes_that_went_while_nobody_looked_on_are_forgotten() -> None:
    made = made_view()
    for number in range(100):
        node = ready_node(f"n{number}")
        made.on_node("ADDED", None, node)
        made.on_node("DELETED", node, None)
    made.on_node("ADDED", None, ready_node("stays"))
    made.forget_changes()
    delta = made.drain()
    assert "gone" not in delta and "rows" not in delta
    assert [row[0] for row in made.snapshot()["rows"]] == ["stays"]


def test_the_history_is_sampled_and_told() -> None:
    clock = VirtualClock()
    view = ClusterView(clock, history_window_s=None)
    view.on_node("ADDED", None, ready_node("a"))
    view.sample()
    clock.advance(60)
    view.on_pod("ADDED", None, bound_pod("p", "a", cpu="1"))
    view.sample()
    first, second = view.snapshot()["history"]
    assert second[0] - first[0] == 60
    assert dict(zip(SERIES, second[1:], strict=True)) == {
        "nodes": 1, "pending": 0, "cost": 0.0, "cpuShare": 0.25, "memoryShare": 0.125, "running": 1,
    }  # fmt: skip
    assert view.drain()["point"] == second
    for _ in range(1000):
        clock.advance(5)
        view.sample()
    assert view.drain()["history"] == view.history.points(), "after points were taken away, all are sent"


def test_names_are_found_by_zone_and_group() -> None:
    view = made_view()
    for name, zone in (("a", "x"), ("b", "y"), ("c", "x")):
        view.on_node("ADDED", None, ready_node(name, labels={"topology.kubernetes.io/zone": zone, "pool": "p"}))
    assert view.names(zone="x") == ["a", "c"] and view.names(group="p") == ["a", "b", "c"]
    assert view.names(zone="z") == [] and view.has("a") and not view.has("z")
    assert view.node_pods("z") is None


STEPS = st.lists(
    st.tuples(st.sampled_from(["node", "break", "no-node", "bind", "pend", "grow", "no-pod", "drain"]),
              st.integers(0, 4), st.integers(0, 4)),
    max_size=60,
)


@settings(max_examples=150)
@given(steps=STEPS)
def test_deltas_make_up_the_snapshot_whatever_happens(steps: list[tuple[str, int, int]]) -> None:
    view = ClusterView(VirtualClock())
    copy = Copy(view.snapshot())
    nodes: dict[str, Any] = {}
    pods: dict[str, Any] = {}

    def change(known: dict[str, Any], name: str, new: Any, tell: Any) -> None:
        old = known.pop(name, None)
        if new is not None:
            known[name] = new
        if old is not None or new is not None:
            tell("MODIFIED" if old and new else "ADDED" if new else "DELETED", old, new)

    for step, number, other in steps:
        if step in ("node", "break", "no-node"):
            node = ready_node(f"n{number}", ready=str(step == "node"), uid=f"u{other}") if step != "no-node" else None
            change(nodes, f"n{number}", node, view.on_node)
        elif step == "drain":
            copy.take(view.drain())
        else:
            made = {
                "bind": bound_pod(f"p{number}", f"n{other}"), "grow": bound_pod(f"p{number}", f"n{other}", cpu="3"),
                "pend": bound_pod(f"p{number}", ""), "no-pod": None,
            }[step]  # fmt: skip
            change(pods, f"p{number}", made, view.on_pod)
    copy.take(view.drain())
    snapshot = view.snapshot()
    assert copy.rows == {row[0]: row for row in snapshot["rows"]}
    assert copy.totals == snapshot["totals"] and copy.pending == snapshot["pending"]
    # A view that is told only of the end says the same, but for how it came about that nodes are not ready.
    fresh = ClusterView(VirtualClock())
    for node in nodes.values():
        fresh.on_node("ADDED", None, node)
    for pod in pods.values():
        fresh.on_pod("ADDED", None, pod)
    for key in ("nodes", "pods", "pending", "cpu", "cpuUsed", "memory", "memoryUsed", "unpriced"):
        assert fresh.totals()[key] == view.totals()[key], key
    assert orjson.dumps(snapshot)
