from __future__ import annotations

from dataclasses import replace

from holokube.lab.results import RunResult
from holokube.report.figures import NO_BREAK
from holokube.report.headline import headline
from tests.report.samples import run_result

EMPTY = run_result("none", nodes=2, hours=0.25)


def run(policy: str, **summary: float | None) -> RunResult:
    return replace(EMPTY, policy=policy, summary=summary, duration_s=86400.0)


def said(*results: RunResult) -> str:
    return headline(results, [result.policy for result in results]).replace(NO_BREAK, " ")


def test_the_cheapest_is_named_with_what_it_costs_the_pods() -> None:
    assert said(
        run("ca", cost_usd=200, pending_p99_s=40, evictions=10, node_launches=50),
        run("karpenter", cost_usd=150, pending_p99_s=60, evictions=40, node_launches=30),
    ) == (
        "karpenter is cheapest: $150.00, 25.0 % less than ca ($200.00). The price: longer waits for a place (p99 1 min "
        "against 40 s) and more evictions (40 against 10); in return there are fewer node launches (30 against 50)."
    )


def test_the_first_is_compared_with_the_next_cheapest() -> None:
    sentence = said(run("a", cost_usd=100), run("b", cost_usd=400), run("c", cost_usd=200))
    assert sentence == "a is cheapest: $100.00, 50.0 % less than c ($200.00), with the same waiting and churn."


def test_another_is_compared_with_the_first_even_if_a_third_is_nearer() -> None:
    assert "50.0 % less than a ($200.00)" in said(
        run("a", cost_usd=200), run("b", cost_usd=110), run("c", cost_usd=100))


def test_gains_in_everything_are_said_as_such() -> None:
    sentence = said(run("a", cost_usd=200, evictions=9), run("b", cost_usd=100, evictions=3))
    assert sentence.endswith(", and that with fewer evictions (3 against 9).")


def test_cheap_because_pods_have_no_place_is_not_called_cheapest() -> None:
    sentence = said(
        run("ca", cost_usd=200, pods_pending_end=0, pods_created=1000),
        run("none", cost_usd=50, pods_pending_end=300, pods_created=1000),
        run("karpenter", cost_usd=150, pods_pending_end=1, pods_created=1000),
    )
    assert sentence.startswith("none costs least ($50.00), but only because it leaves 300 pods without a place. "
                               "Of the others, karpenter is cheapest: $150.00, 25.0 % less than ca ($200.00)")


def test_equal_costs_are_called_equal() -> None:
    assert said(run("a", cost_usd=100), run("b", cost_usd=100)) == (
        "a and b cost the same ($100.00), with the same waiting and churn.")


def test_the_distance_to_the_lower_bound_is_said_where_it_is_known() -> None:
    assert said(run("a", cost_usd=100, above_bound_share=0.081)).endswith("It is 8.1 % above the lower bound of cost.")
    assert said(run("a", cost_usd=100, above_bound_share=0.0)).endswith(
        "Nothing could be cheaper: it meets the lower bound.")


def test_a_single_run_is_told_without_comparing() -> None:
    assert said(run("a", cost_usd=100, pending_p99_s=30, evictions=1)) == (
        "a costs $100.00 over 24 h, 99 % of pods have a place within 30 s and 1 pod is evicted.")


def test_without_prices_and_without_runs_there_is_still_a_sentence() -> None:
    assert said(run("a"), run("b")).startswith("No prices are known")
    assert said() == "There are no runs to report on."
    assert said(run("a", cost_usd=5), run("b")) == "a is the only one with a price: $5.00."


def test_a_run_in_which_nothing_happens_is_no_bargain() -> None:
    assert said(run("none", cost_usd=0, pods_created=0, nodes_max=0, evictions=0)) == (
        "Nothing happened: no pod was made, and there was no node.")
    assert "costs $0" in said(run("none", cost_usd=0, pods_created=3, nodes_max=0))
