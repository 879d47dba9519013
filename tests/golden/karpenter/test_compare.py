"""The comparison with recorded answers can fail, and the records keep the checker's rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.golden.karpenter.compare import SORTED_CLAIMS_MAX, differences, exact_differences
from tests.golden.karpenter.records import catalog_entries, names, problem, recorded
from tests.karpenter.checker_inputs import check_answer

Json = dict[str, Any]


def test_there_are_as_many_records_as_the_readme_says() -> None:
    assert (len(names("solve")), len(names("disrupt")), len(catalog_entries())) == (60, 36, 38)


@pytest.mark.parametrize("name", names("solve") + names("disrupt"))
def test_every_record_agrees_with_itself(name: str) -> None:
    assert differences(recorded(name), recorded(name)) == []


@pytest.mark.parametrize("name", names("solve"))
def test_every_recorded_plan_keeps_the_rules(name: str) -> None:
    assert check_answer(problem(name), recorded(name), catalog_entries()) == []


def _first_claim(change: Callable[[Json], None]) -> Callable[[Json], None]:
    return lambda answer: change(answer["newNodeClaims"][0])


def _rename(key: str, value: Any) -> Callable[[Json], None]:
    return _first_claim(lambda claim: claim.update({key: value}))


EXACT_CHANGES: dict[str, Callable[[Json], None]] = {
    "pool": _rename("nodePool", "other"),
    "type": _rename("instanceType", "x.large"),
    "zone": _rename("zone", "zone-x"),
    "capacity type": _rename("capacityType", "spot"),
    "price": _first_claim(lambda claim: claim.update(price=claim["price"] + 1e-6)),
    "option count": _first_claim(lambda claim: claim.update(numInstanceTypeOptions=1)),
    "options": _first_claim(lambda claim: claim["instanceTypeOptions"].reverse()),
    "pod lost": _first_claim(lambda claim: claim["pods"].pop()),
    "requests": _first_claim(lambda claim: claim["requests"].update(cpu="1m")),
    "requirement lost": _first_claim(lambda claim: claim["requirements"].pop(0)),
    "claim lost": lambda answer: answer["newNodeClaims"].pop(),
    "pod on node": lambda answer: answer["existingNodes"].update(node=["default/p0001"]),
    "pending": lambda answer: answer["podErrors"].update({"default/p0001": "no"}),
    "summary": lambda answer: answer["summary"].update(podsOnNew=0),
    "total price": lambda answer: answer.update(totalPrice=answer["totalPrice"] - 1e-6),
}


@pytest.mark.parametrize("change", EXACT_CHANGES.values(), ids=EXACT_CHANGES)
def test_any_change_of_an_exact_plan_is_a_difference(change: Callable[[Json], None]) -> None:
    record = recorded("solve-016-affinity")
    assert record["exact"] and len(record["newNodeClaims"]) <= SORTED_CLAIMS_MAX
    answer = recorded("solve-016-affinity")
    change(answer)
    assert len(differences(record, answer)) == 1
    assert differences(record, answer) == exact_differences(record, answer)


def test_order_of_claims_pods_and_the_node_class_do_not_matter() -> None:
    name = next(name for name in names("solve") if 1 < len(recorded(name)["newNodeClaims"]) <= SORTED_CLAIMS_MAX)
    answer = recorded(name)
    answer["newNodeClaims"].reverse()
    for claim in answer["newNodeClaims"]:
        claim["pods"].reverse()
        claim["requirements"] = [text for text in claim["requirements"] if "testnodeclass" not in text]
    answer["podErrors"] = dict.fromkeys(answer["podErrors"], "for another reason")
    assert differences(recorded(name), answer) == []


def _tied_name() -> str:
    return next(
        name for name in names("solve")
        if not recorded(name)["exact"] and 0 < len(recorded(name)["newNodeClaims"]) <= SORTED_CLAIMS_MAX
    )  # fmt: skip


def test_a_plan_that_chance_decided_may_have_other_zones_and_a_lower_price() -> None:
    answer = recorded(_tied_name())
    for claim in answer["newNodeClaims"]:
        claim["zone"] = "zone-x"
    answer["totalPrice"] = min(answer["totalPriceSeen"]) - 0.1
    assert differences(recorded(_tied_name()), answer) == []


@pytest.mark.parametrize(
    "change",
    [
        _rename("instanceType", "x.large"),
        lambda answer: answer.update(totalPrice=max(answer["totalPriceSeen"]) + 0.001),
        lambda answer: answer["summary"].update(newNodes=0),
    ],
    ids=["types", "price", "summary"],
)
def test_a_plan_that_chance_decided_still_has_its_size(change: Callable[[Json], None]) -> None:
    answer = recorded(_tied_name())
    change(answer)
    assert len(differences(recorded(_tied_name()), answer)) == 1


def _large_name() -> str:
    return next(name for name in names("solve") if len(recorded(name)["newNodeClaims"]) > SORTED_CLAIMS_MAX)


def test_a_large_plan_may_cost_half_a_percent_more() -> None:
    answer = recorded(_large_name())
    answer["totalPrice"] = max(answer["totalPriceSeen"]) * 1.004
    answer["newNodeClaims"].pop()
    assert differences(recorded(_large_name()), answer) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: answer.update(totalPrice=max(answer["totalPriceSeen"]) * 1.006),
        lambda answer: answer["newNodeClaims"].append(answer["newNodeClaims"][0]),
        lambda answer: answer["podErrors"].update({"default/p0001": "no"}),
        lambda answer: answer["summary"].update(unschedulable=7),
    ],
    ids=["price", "nodes", "pending", "summary"],
)
def test_a_large_plan_may_not_be_larger(change: Callable[[Json], None]) -> None:
    answer = recorded(_large_name())
    change(answer)
    assert len(differences(recorded(_large_name()), answer)) == 1


def _replacement(change: Callable[[Json], None]) -> Callable[[Json], None]:
    return lambda answer: change(answer["commands"][0]["replacements"][0])


DISRUPTION_CHANGES: dict[str, Callable[[Json], None]] = {
    "budget": lambda answer: answer["budgets"]["multi"].update(default=1),
    "candidate more": lambda answer: answer["candidates"].update(other=answer["candidates"]["node-000"]),
    "cost": lambda answer: answer["candidates"]["node-000"].update(rescheduleCost=7),
    "ratio": lambda answer: answer["candidates"]["node-000"].update(ratio=0.5),
    "method": lambda answer: answer["commands"][0].update(method="drift"),
    "command lost": lambda answer: answer["commands"].pop(),
    "reason": lambda answer: answer["commands"][0].update(reason="Empty"),
    "decision": lambda answer: answer["commands"][0].update(decision="delete"),
    "candidates": lambda answer: answer["commands"][0]["candidates"].reverse(),
    "savings": lambda answer: answer["commands"][0].update(estimatedSavings=0.3),
    "replacement type": _replacement(lambda claim: claim.update(instanceType="x.large")),
    "replacement pods": _replacement(lambda claim: claim["pods"].pop()),
}


@pytest.mark.parametrize("change", DISRUPTION_CHANGES.values(), ids=DISRUPTION_CHANGES)
def test_any_change_of_exact_commands_is_a_difference(change: Callable[[Json], None]) -> None:
    record, answer = recorded("disrupt-003-spot"), recorded("disrupt-003-spot")
    assert record["exact"]
    change(answer)
    assert len(differences(record, answer)) == 1


def test_commands_that_chance_decided_may_name_other_nodes() -> None:
    record, answer = recorded("disrupt-000-under"), recorded("disrupt-000-under")
    assert not record["exact"]
    answer["commands"][0]["candidates"].reverse()
    answer["commands"][1]["candidates"] = ["another"]
    assert differences(record, answer) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda answer: answer["commands"][0]["candidates"].pop(),
        lambda answer: answer["commands"][0].update(decision="delete"),
        lambda answer: answer["commands"][0].update(estimatedSavings=0.0),
        lambda answer: answer["commands"].reverse(),
    ],
    ids=["candidates", "decision", "savings", "order"],
)
def test_commands_that_chance_decided_still_have_their_size(change: Callable[[Json], None]) -> None:
    answer = recorded("disrupt-000-under")
    change(answer)
    assert differences(recorded("disrupt-000-under"), answer)
