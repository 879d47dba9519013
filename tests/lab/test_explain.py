"""Stories of pods, nodes and groups."""

from __future__ import annotations

import pytest

from holokube.base.errors import UsageError
from holokube.lab.explain import Kind, Story, explain, parse_subject, span
from holokube.lab.result_files import Evidence, evidence_of
from holokube.lab.results import Decision
from tests.lab.results import node_span, pod_span, run_result, story_result


def story(kind: Kind, name: str, at_s: float | None = None) -> Story:
    (found,) = explain([evidence_of(story_result())], kind, name, at_s)
    return found


def told(found: Story) -> list[tuple[float, str]]:
    return [(moment.at_s, moment.what) for moment in found.moments]


def test_a_pod_that_waited_for_a_node_is_told_from_the_wish_to_readiness() -> None:
    found = story("pod", "shop/web-2")
    assert told(found) == [
        (60, "was created by shop/Deployment/web and requested 0.5 CPU and 1,024 MiB"),
        (60, "pending"),
        (70, "scale-up cluster: chose a"),
        (70, "scale-up a: enlarged"),
        (121, "was bound to node a-2, after 1m01s"),
        (125, "became ready"),
    ]
    assert found.moments[1].why == ("0/2 nodes are available",)
    assert found.moments[1].who == "scheduler"
    assert found.moments[4].why == ("the node came at 00:01:30: a 1->2, for 1 pods",)
    assert found.summary == ("It was pending for 1m01s, then on node a-2 from 00:02:01.",)


def test_a_pod_that_never_got_a_node_is_told_why_not() -> None:
    found = story("pod", "shop/big-1")
    assert found.summary == ("It was pending for 1h56m and never got a node.",)
    assert (210, "not helped (NoOptions)") in told(found)
    assert (210, "group b: skipped") in told(found)
    reasons = [why for moment in found.moments for why in moment.why]
    assert reasons == ["a: Insufficient cpu", "alike: 1", "max size reached"]


def test_an_evicted_pod_is_told_what_was_decided_about_its_node() -> None:
    found = story("pod", "shop/old-1")
    assert told(found)[-2:] == [(3500, "its node b-1: removed"), (3590, "was evicted")]
    assert "unneeded" not in str(told(found)), "only the last decision about the node made it go"


def test_a_node_that_is_on_its_way_out_did_not_stay_for_the_pod() -> None:
    decisions = (
        Decision(10.0, "karpenter", "node", "a-1", "removed", ("Underutilized",)),
        Decision(12.0, "karpenter", "node", "a-1", "stays: DisruptionBlocked", ("Node is deleting",)),
    )
    gone = pod_span("shop/web-1", ended_s=20.0, end="evicted")
    run = run_result(nodes=(node_span(),), pods=(gone,), decisions=decisions)
    (found,) = explain([evidence_of(run)], "pod", "web-1")
    assert told(found)[-2:] == [(10, "its node a-1: removed"), (20, "was evicted")]


def test_a_pod_is_told_that_claims_for_it_came_to_nothing() -> None:
    decisions = (
        Decision(1.0, "karpenter", "claim", "default-a", "made", (), {"group": "default", "pods": ["shop/web-1"]}),
        Decision(1.0, "karpenter", "claim", "default-a", "failed", ("instance types were unavailable",)),
        Decision(2.0, "karpenter", "claim", "default-x", "made", (), {"group": "other", "pods": ["shop/web-9"]}),
        Decision(2.0, "karpenter", "claim", "default-x", "failed", ("no business of this pod",)),
        Decision(11.0, "karpenter", "claim", "default-b", "made", (), {"group": "default", "pods": ["shop/web-1"]}),
    )
    waited = pod_span("shop/web-1", bound_s=60.0, ready_s=61.0)
    run = run_result(nodes=(node_span("n", "default", created_s=60.0),), pods=(waited,), decisions=decisions)
    (found,) = explain([evidence_of(run)], "pod", "web-1")
    tried = [(1, "claim default-a: made"), (1, "claim default-a: failed"), (11, "claim default-b: made")]
    assert told(found)[1:4] == tried
    assert found.moments[2].why == ("instance types were unavailable",)


def test_of_many_decisions_the_last_ones_are_told_and_how_many_are_not() -> None:
    decisions = tuple(
        Decision(float(number), "cluster-autoscaler", "scale-up", "a", "enlarged", (f"a {number}->{number + 1}",))
        for number in range(1, 31)
    )
    waited = pod_span("shop/web-1", bound_s=60.0, ready_s=61.0)
    run = run_result(nodes=(node_span("n", "a", created_s=60.0),), pods=(waited,), decisions=decisions)
    (found,) = explain([evidence_of(run)], "pod", "web-1")
    tried = [moment.why for moment in found.moments if moment.what == "scale-up a: enlarged"]
    assert tried[-1] == ("a 30->31",), "the one that brought its node"
    assert len(tried) == 12
    assert (18, "18 earlier decisions about pending pods, not told here") in told(found)
    (then,) = explain([evidence_of(run)], "pod", "web-1", 5.0)
    assert [moment.why for moment in then.moments[1:]] == [(f"a {number}->{number + 1}",) for number in range(1, 6)]


def silent_run() -> list[Evidence]:
    decisions = (
        Decision(100.0, "scenario", "node", "a-1", "silenced", ("a fault",)),
        Decision(160.0, "taint-eviction", "pod", "shop/web-1", "evicted", ("NoExecute taint",)),
        Decision(200.0, "cluster-autoscaler", "node", "a-1", "unneeded"),
        Decision(300.0, "scenario", "node", "a-1", "heard again", ("the fault is over",)),
        Decision(400.0, "cluster-autoscaler", "node", "a-1", "removed", ("empty",), {"group": "a", "evicted": []}),
    )
    gone = pod_span("shop/web-1", ended_s=450.0, end="evicted")
    return [evidence_of(run_result(nodes=(node_span(),), pods=(gone,), decisions=decisions))]


def test_a_pod_of_a_silent_node_went_for_its_silence_and_not_when_the_node_was_removed_empty() -> None:
    (found,) = explain(silent_run(), "pod", "web-1")
    assert told(found)[-3:] == [(100, "its node a-1: silenced"), (160, "evicted"), (450, "was evicted")]


def test_a_silent_node_is_not_called_ready() -> None:
    at_s = {50.0: "ready", 150.0: "silent", 350.0: "ready"}
    for moment_s, word in at_s.items():
        (found,) = explain(silent_run(), "node", "a-1", moment_s)
        assert f"it was {word} with 1 pod" in found.summary[0]
    (found,) = explain(silent_run(), "pod", "web-1", 150.0)
    assert found.summary == ("At 00:02:30 it was on node a-1, whose kubelet was silent.",)


def test_a_machine_that_never_became_a_node_is_known_to_its_group_and_by_its_name() -> None:
    failed = Decision(70.0, "cluster-autoscaler", "machine", "kwok:a-x7k2p", "removed", ("it could not be made",))
    runs = [evidence_of(run_result(nodes=(node_span(),), decisions=(failed,)))]
    (found,) = explain(runs, "group", "a")
    assert (70, "machine kwok:a-x7k2p: removed") in told(found)
    (found,) = explain(runs, "node", "a-x7k2p")
    assert found.summary == ("It never became a node.",)
    assert found.moments[0].why == ("it could not be made",)


def test_a_node_of_karpenters_is_told_of_its_own_claim() -> None:
    made = [
        Decision(5.0, "karpenter", "claim", f"default-{name}", "made", ("provisioned",), {"group": "default"})
        for name in ("abc", "xyz")
    ]
    nodes = tuple(node_span(name, "default", created_s=60.0) for name in ("kwok-default-abc-1", "other-9"))
    runs = [evidence_of(run_result(nodes=nodes, decisions=tuple(made)))]
    (found,) = explain(runs, "node", "kwok-default-abc-1")
    assert told(found)[0] == (5, "claim default-abc: made")
    (found,) = explain(runs, "node", "other-9")
    assert told(found) == [(60, "was added to group default (m5.large, on-demand, z1)")]


def test_a_node_is_told_why_it_came_and_went() -> None:
    came = story("node", "a-2")
    assert told(came) == [
        (70, "scale-up a: enlarged"), (90, "was added to group a (m5.large, on-demand, z1)"),
        (120, "became ready, after 30s"),
    ]  # fmt: skip
    assert came.moments[0].why == ("a 1->2 (max: 9)", "pods: 1", "least-waste chose a", "  a: 5 %", "  b: 9 %")
    assert came.summary == ("It was there for 1h58m, which cost $0.20, had 1 pod, and was still there at the end.",)
    went = story("node", "b-1")
    assert told(went) == [
        (0, "was there from the start (m5.large, on-demand, z1)"), (900, "unneeded"), (3500, "removed"),
        (3600, "was removed"),
    ]  # fmt: skip
    fits = "its pods would fit elsewhere; it goes if that stays so for long enough"
    assert went.moments[1].why == (fits, "since 00:15:00")
    assert went.moments[2].why == ("drained", "evicted: shop/old-1")
    assert story("node", "a-1").moments[1].why == ("cpu 0.9",), "why it was kept"


def test_a_group_is_told_with_its_nodes() -> None:
    found = story("group", "a")
    assert told(found) == [(70, "scale-up cluster: chose a"), (70, "enlarged"), (90, "node a-2 was added")]
    assert found.summary == ("It had 2 nodes in all; none of them went.",)
    assert story("group", "b").summary == ("It had 1 node in all; 1 of them went.",)
    assert (3600, "node b-1 was removed") in told(story("group", "b"))


@pytest.mark.parametrize(
    ("kind", "name", "at_s", "sentence", "last"),
    [
        ("pod", "shop/web-2", 30, "At 00:00:30 it was not there.", None),
        ("pod", "shop/web-2", 100, "At 00:01:40 it was pending, for 40s so far.", 70),
        ("pod", "shop/web-2", 122, "At 00:02:02 it was not ready yet on node a-2.", 121),
        ("pod", "shop/web-2", 500, "At 00:08:20 it was ready on node a-2.", 125),
        ("pod", "shop/old-1", 3600, "At 01:00:00 it was not there.", 3590),
        ("node", "a-2", 60, "At 00:01:00 it was not there.", None),
        ("node", "a-2", 100, "At 00:01:40 it was not ready yet with 0 pods, 0% of its CPU requested.", 90),
        ("node", "a-2", 300, "At 00:05:00 it was ready with 1 pod, 25% of its CPU requested: shop/web-2.", 120),
        ("node", "b-1", 3600, "At 01:00:00 it was not there.", 3600),
        ("group", "a", 80, "At 00:01:20 it had 1 node.", 70),
        ("group", "b", 7200, "At 02:00:00 it had 0 nodes.", 3600),
    ],
)
def test_a_time_shows_how_it_was_and_what_led_there(
    kind: Kind, name: str, at_s: float, sentence: str, last: float | None
) -> None:
    found = story(kind, name, at_s)
    assert found.summary == (sentence,)
    assert (found.moments[-1].at_s if found.moments else None) == last


def test_pods_of_one_name_are_told_one_after_the_other() -> None:
    twice = run_result(
        nodes=(node_span(),),
        pods=(
            pod_span("a/db-0", ended_s=100.0, end="deleted"),
            pod_span("a/db-0", created_s=105.0, bound_s=110.0, ready_s=111.0),
        ),
    )
    (found,) = explain([evidence_of(twice)], "pod", "a/db-0")
    assert len(found.summary) == 2
    assert [what for _, what in told(found)].count("became ready") == 2
    (then,) = explain([evidence_of(twice)], "pod", "a/db-0", 102)
    assert then.summary == ("At 00:01:42 it was not there.",)


def test_the_namespace_may_be_left_out_where_it_is_clear() -> None:
    assert story("pod", "web-2").name == "shop/web-2"
    both = run_result(pods=(pod_span("a/p", None), pod_span("b/p", None)))
    with pytest.raises(UsageError, match="2 namespaces have a pod 'p'") as caught:
        explain([evidence_of(both)], "pod", "p")
    assert caught.value.hint == "Name one: pod/a/p or pod/b/p."


@pytest.mark.parametrize(
    ("kind", "name", "hint"),
    [
        ("node", "a-l", "Did you mean node/a-2 or node/a-1?"),
        ("pod", "shop/wbe-2", "Did you mean pod/shop/web-2 or pod/shop/web-1?"),
        ("node", "zzzzzzzzz", "There are 3, such as node/a-1."),
        ("group", "a-", "Did you mean group/a?"),
    ],
)
def test_an_unknown_name_gets_suggestions(kind: Kind, name: str, hint: str) -> None:
    with pytest.raises(UsageError, match=f"knows no {kind}") as caught:
        story(kind, name)
    assert caught.value.hint == hint
    with pytest.raises(UsageError) as caught:
        explain([evidence_of(run_result())], kind, name)
    assert caught.value.hint == f"There was no {kind} at all."


def test_several_runs_each_tell_their_own_story() -> None:
    runs = [evidence_of(story_result("one")), evidence_of(run_result("empty")), evidence_of(story_result("two"))]
    assert [found.run for found in explain(runs, "node", "a-2")] == ["one", "two"]


def test_a_time_after_the_end_is_refused() -> None:
    with pytest.raises(UsageError, match="3h00m is after the end") as caught:
        story("node", "a-1", 10_800)
    assert caught.value.hint == "It ended after 2h00m."


@pytest.mark.parametrize(
    ("text", "expected"),
    [("node/n", ("node", "n")), ("pod/a/b", ("pod", "a/b")), ("po/b", ("pod", "b")), ("nodepool/x", ("group", "x"))],
)
def test_subjects_are_written_as_for_kubectl(text: str, expected: tuple[str, str]) -> None:
    assert parse_subject(text) == expected


@pytest.mark.parametrize("text", ["", "n", "node/", "node", "deploy/web", "pod/a/b/c", "/x"])
def test_other_subjects_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="does not say what is to be explained"):
        parse_subject(text)


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (1.25, "1.25s"), (59, "59s"), (61, "1m01s"), (7260, "2h01m")])
def test_spans_of_time_are_short(seconds: float, text: str) -> None:
    assert span(seconds) == text
