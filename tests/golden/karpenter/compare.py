"""Where an answer departs from what the real Karpenter answered. The README says what is compared when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from holokube.kube.resources import parse_resources

Answer = Mapping[str, Any]

SORTED_CLAIMS_MAX = 12
"""With more open claims than this, upstream's order comes from an unstable sort."""
PRICE_ABOVE_MAX = 0.005
_SMALL = 1e-9
_NODE_CLASS_KEYS = ("karpenter.test.sh/testnodeclass",)


def differences(recorded: Answer, answer: Answer) -> list[str]:
    """What must be the same and is not; empty for a good answer."""
    if "candidates" in recorded:
        return _disruption(recorded, answer)
    if len(_claims(recorded)) > SORTED_CLAIMS_MAX:
        return _large(recorded, answer)
    return exact_differences(recorded, answer) if recorded["exact"] else _tied(recorded, answer)


def exact_differences(recorded: Answer, answer: Answer) -> list[str]:
    """Everything in which a plan is not the recorded one, important or not."""
    found = _compare("claims", _all_claims(recorded), _all_claims(answer))
    found += _compare("pods on nodes", _on_nodes(recorded), _on_nodes(answer))
    found += _compare("pending", _pending(recorded), _pending(answer))
    found += _compare("summary", recorded["summary"], answer["summary"])
    return found + _price("total price", recorded["totalPrice"], answer["totalPrice"])


def _tied(recorded: Answer, answer: Answer) -> list[str]:
    """Upstream's own answers differ: the size of the plan and what it costs count."""
    found = _compare("summary", recorded["summary"], answer["summary"])
    found += _compare("instance types", _types(recorded), _types(answer))
    seen, price = recorded["totalPriceSeen"], answer["totalPrice"]
    if not any(_close(price, one) for one in seen) and price > min(seen):
        found.append(f"total price: {price} instead of one of {seen}")
    return found


def _large(recorded: Answer, answer: Answer) -> list[str]:
    found = _compare("pending", _pending(recorded), _pending(answer))
    ours, theirs = len(_claims(answer)), len(_claims(recorded))
    if ours > theirs:
        found.append(f"new nodes: {ours} instead of at most {theirs}")
    limit = max([recorded["totalPrice"], *recorded["totalPriceSeen"]]) * (1 + PRICE_ABOVE_MAX)
    if answer["totalPrice"] > limit + _SMALL:
        found.append(f"total price: {answer['totalPrice']} instead of at most {limit}")
    for key in ("pods", "unschedulable"):
        found += _compare(f"summary {key}", recorded["summary"][key], answer["summary"][key])
    return found


def _disruption(recorded: Answer, answer: Answer) -> list[str]:
    found = _compare("budgets", recorded["budgets"], answer["budgets"])
    found += _compare("candidates", set(recorded["candidates"]), set(answer["candidates"]))
    for name, costs in recorded["candidates"].items():
        for key, value in costs.items():
            found += _price(f"{name}: {key}", value, answer["candidates"].get(name, {}).get(key))
    theirs, ours = recorded["commands"] or [], answer["commands"] or []
    found += _compare("methods", [one["method"] for one in theirs], [one["method"] for one in ours])
    if len(theirs) != len(ours):
        return found
    for expected, command in zip(theirs, ours, strict=True):
        read = _exact_command if recorded["exact"] else _tied_command
        found += _compare(expected["method"], read(expected), read(command))
        found += _price(f"{expected['method']}: savings", expected["estimatedSavings"], command["estimatedSavings"])
    return found


def _exact_command(command: Answer) -> Any:
    replacements = sorted(map(_claim, command["replacements"] or ()), key=repr)
    return command["reason"], command["decision"], list(command["candidates"]), replacements


def _tied_command(command: Answer) -> Any:
    return command["decision"], len(command["candidates"])


def _claims(answer: Answer) -> list[Answer]:
    return answer["newNodeClaims"] or []


def _all_claims(answer: Answer) -> list[Any]:
    return sorted(map(_claim, _claims(answer)), key=repr)


def _claim(claim: Answer) -> Any:
    """All of a claim, in a form that can be compared and sorted. Its pods have no order."""
    fields: dict[str, Callable[[Any], Any]] = {
        "nodePool": str, "instanceType": str, "zone": str, "capacityType": str, "price": lambda price: round(price, 9),
        "numInstanceTypeOptions": int, "instanceTypeOptions": list, "pods": sorted,
        "requests": lambda amounts: sorted(parse_resources(amounts).items()),
        "requirements": lambda texts: sorted(text for text in texts if not text.startswith(_NODE_CLASS_KEYS)),
    }  # fmt: skip
    return [(name, read(claim[name])) for name, read in fields.items()]


def _on_nodes(answer: Answer) -> Any:
    return sorted((name, sorted(pods)) for name, pods in (answer["existingNodes"] or {}).items() if pods)


def _pending(answer: Answer) -> list[str]:
    return sorted(answer["podErrors"] or ())


def _types(answer: Answer) -> Any:
    return sorted(Counter(claim["instanceType"] for claim in _claims(answer)).items())


def _compare(what: str, expected: Any, found: Any) -> list[str]:
    return [] if expected == found else [f"{what}: {found} instead of {expected}"]


def _price(what: str, expected: float, found: float | None) -> list[str]:
    return [] if found is not None and _close(found, expected) else [f"{what}: {found} instead of {expected}"]


def _close(one: float, another: float) -> bool:
    return abs(one - another) <= _SMALL * max(1.0, abs(another))
