"""The answer in a sentence or three: who is cheapest, by how much, and at what price for the pods."""

from __future__ import annotations

from collections.abc import Sequence

from holokube.lab.results import RunResult
from holokube.report.figures import count, seconds, share, usd

# So many more pods without a place than with the best policy are chance; more are a price paid.
_LEFT_SHARE = 0.005


def headline(results: Sequence[RunResult], labels: Sequence[str]) -> str:
    """What a reader should know who reads nothing else; plain text."""
    if not results:
        return "There are no runs to report on."
    if all(result.summary.get("pods_created") == 0 and result.summary.get("nodes_max") == 0 for result in results):
        return "Nothing happened: no pod was made, and there was no node."
    priced = [index for index, result in enumerate(results) if result.summary.get("cost_usd") is not None]
    if not priced:
        return "No prices are known for these nodes, so the runs are compared by waiting time and churn only."
    if len(results) == 1:
        return _alone(results[0], labels[0])
    by_cost = sorted(priced, key=lambda index: (_cost(results[index]), index))
    serving = _serving(results)
    sentences = []
    cheapest = by_cost[0]
    if cheapest not in serving:
        left = results[cheapest].summary.get("pods_pending_end") or 0
        sentences.append(
            f"{labels[cheapest]} costs least ({usd(_cost(results[cheapest]))}), but only because it leaves "
            f"{_pods(left)} without a place."
        )
        by_cost = [index for index in by_cost if index in serving] or by_cost
        cheapest = by_cost[0]
    sentences.append(_compared(results, labels, by_cost, alone=bool(sentences)))
    bound = _above_bound(results[cheapest])
    if bound:
        sentences.append(bound)
    return " ".join(sentences)


def _cost(result: RunResult) -> float:
    return result.summary.get("cost_usd") or 0.0


def _pods(number: float) -> str:
    return f"{count(number)} pod{'' if number == 1 else 's'}"


def _serving(results: Sequence[RunResult]) -> set[int]:
    """Those that leave about as few pods waiting as the best."""
    left = [result.summary.get("pods_pending_end") or 0 for result in results]
    made = max((result.summary.get("pods_created") or 0 for result in results), default=0)
    limit = min(left) + max(1, _LEFT_SHARE * made)
    return {index for index, waiting in enumerate(left) if waiting <= limit}


def _alone(result: RunResult, label: str) -> str:
    parts = [f"{label} costs {usd(_cost(result))} over {seconds(result.duration_s)}"]
    pending = result.summary.get("pending_p99_s")
    if pending is not None:
        parts.append(f"99 % of pods have a place within {seconds(pending)}")
    evictions = result.summary.get("evictions")
    if evictions is not None:
        parts.append(f"{count(evictions)} pod{'s are' if evictions != 1 else ' is'} evicted")
    sentence = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1] + "."
    bound = _above_bound(result)
    return f"{sentence} {bound}" if bound else sentence


def _compared(results: Sequence[RunResult], labels: Sequence[str], by_cost: Sequence[int], *, alone: bool) -> str:
    cheapest = by_cost[0]
    cost = _cost(results[cheapest])
    who = "Of the others, " if alone else ""
    if len(by_cost) == 1:
        return f"{who}{labels[cheapest]} is the only one with a price: {usd(cost)}."
    # Against the first, which is what the table compares with; the first itself against the next cheapest.
    other = 0 if cheapest != 0 and 0 in by_cost else by_cost[1]
    other_cost = _cost(results[other])
    if other_cost - cost <= 0.0005 * other_cost:
        start = f"{who}{labels[cheapest]} and {labels[other]} cost the same ({usd(cost)})"
    else:
        less = (other_cost - cost) / other_cost
        start = (f"{who}{labels[cheapest]} is cheapest: {usd(cost)}, {share(less)} less than "
                 f"{labels[other]} ({usd(other_cost)})")
    prices, gains = _trade(results[cheapest], results[other])
    if prices and gains:
        return f"{start}. The price: {_listed(prices)}; in return there are {_listed(gains)}."
    if prices:
        return f"{start}. The price: {_listed(prices)}."
    if gains:
        return f"{start}, and that with {_listed(gains)}."
    return f"{start}, with the same waiting and churn."


def _trade(one: RunResult, other: RunResult) -> tuple[list[str], list[str]]:
    """What the one does worse, and what better, than the other."""
    prices: list[str] = []
    gains: list[str] = []
    for name, what, worse, better in (
        ("pending_p99_s", "waits for a place", "longer", "shorter"),
        ("evictions", "evictions", "more", "fewer"),
        ("node_launches", "node launches", "more", "fewer"),
    ):
        mine, theirs = one.summary.get(name), other.summary.get(name)
        if mine is None or theirs is None or abs(mine - theirs) <= 0.02 * max(mine, theirs):
            continue
        figure = seconds if name.endswith("_s") else count
        word = worse if mine > theirs else better
        rank = "p99 " if name.endswith("_s") else ""
        (prices if mine > theirs else gains).append(f"{word} {what} ({rank}{figure(mine)} against {figure(theirs)})")
    return prices, gains


def _listed(parts: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


def _above_bound(result: RunResult) -> str:
    above = result.summary.get("above_bound_share")
    if above is None:
        return ""
    if above < 0.0005:
        return "Nothing could be cheaper: it meets the lower bound."
    return f"It is {share(above)} above the lower bound of cost."
