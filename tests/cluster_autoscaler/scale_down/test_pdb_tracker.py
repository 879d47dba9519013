from holokube.cluster_autoscaler.scale_down.pdb_tracker import PdbTracker
from tests.cluster_autoscaler.scale_down.world import make_pdb, make_pod


def test_pods_may_leave_as_long_as_every_budget_has_something_left() -> None:
    tracker = PdbTracker([make_pdb(allowed=2)])
    pods = [make_pod(f"p{number}") for number in range(3)]
    assert tracker.can_remove(pods[:2]) == (True, True, None)
    can_remove, in_parallel, blocking = tracker.can_remove(pods)
    assert (can_remove, in_parallel) == (True, False)
    assert blocking is pods[2]


def test_planned_removals_count_against_the_budget() -> None:
    tracker = PdbTracker([make_pdb(allowed=2)])
    tracker.remove([make_pod("p0"), make_pod("p1")])
    assert tracker.budgets[0].allowed == 0
    assert tracker.can_remove([make_pod("p2")]) == (False, False, make_pod("p2"))
    tracker.remove([make_pod("p2")])
    assert tracker.budgets[0].allowed == -1


def test_a_pod_counts_against_all_its_budgets_and_no_others() -> None:
    tracker = PdbTracker([
        make_pdb("one"), make_pdb("two"), make_pdb("other", app="b"), make_pdb("away", namespace="elsewhere"),
    ])  # fmt: skip
    assert [budget.name for budget in tracker.matching(make_pod("p"))] == ["one", "two"]
    assert tracker.matching(make_pod("p", namespace="nobody")) == ()


def test_a_budget_without_a_selector_is_for_nobody_and_an_empty_one_for_all() -> None:
    nobody, everybody = make_pdb("nobody"), make_pdb("everybody")
    del nobody["spec"]["selector"]
    everybody["spec"]["selector"] = {}
    tracker = PdbTracker([nobody, everybody])
    assert [budget.name for budget in tracker.matching(make_pod("p"))] == ["everybody"]


def test_a_budget_without_a_status_allows_nothing() -> None:
    pdb = make_pdb()
    del pdb["status"]
    assert not PdbTracker([pdb]).can_remove([make_pod("p")]).can_remove
