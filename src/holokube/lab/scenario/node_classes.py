"""Whether NodePools name node classes that are there: without one no machine is bought, and pods wait in silence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from holokube.cluster.policies import Supply, supply_of
from holokube.karpenter.api.labels import KWOK_GROUP, KWOK_NODE_CLASS
from holokube.kube.types import JsonObject
from holokube.lab.scenario.errors import Wrong, choose_among

if TYPE_CHECKING:
    from holokube.lab.scenario.model import Scenario


def missing_classes(scenario: Scenario) -> Iterator[Wrong]:
    """NodePools written for this scenario whose class is missing, or of a cloud that is not here."""
    policies = [
        (number, one) for number, one in enumerate(scenario.policies) if supply_of(one.kind) is Supply.NODE_POOLS
    ]
    if not policies:
        return
    shared = scenario.cluster.objects
    everywhere = {name for _, policy in policies for name in _classes((*shared, *policy.manifests))}
    yield from _of_pools(scenario.cluster.manifests, everywhere, "cluster.manifests")
    for number, policy in policies:
        yield from _of_pools(
            policy.manifests, _classes((*shared, *policy.manifests)), f"policies[{number}].manifests"
        )


def _classes(objects: tuple[JsonObject, ...]) -> set[str]:
    return {obj["metadata"]["name"] for obj in objects if obj["kind"] == KWOK_NODE_CLASS}


def _of_pools(objects: tuple[JsonObject, ...], known: set[str], field: str) -> Iterator[Wrong]:
    for obj in objects:
        reference = _reference(obj) if obj["kind"] == "NodePool" else None
        if reference is None:
            continue
        pool, name = obj["metadata"]["name"], reference.get("name")
        wanted = f"nodeClassRef: {{group: {KWOK_GROUP}, kind: {KWOK_NODE_CLASS}, name: {name}}}"
        if (reference.get("group"), reference.get("kind")) != (KWOK_GROUP, KWOK_NODE_CLASS):
            named = f"{reference.get('kind')}.{reference.get('group')}"
            what = f"the NodePool {pool} names {named} {name!r}, but machines here are made from a {KWOK_NODE_CLASS}"
            yield Wrong(what, f"Write {wanted}, and a {KWOK_NODE_CLASS} of that name beside it.", field)
        elif name not in known:
            remedy = choose_among(str(name), known) if known else f"Write a {KWOK_NODE_CLASS} of that name beside it."
            yield Wrong(f"the NodePool {pool} names the {KWOK_NODE_CLASS} {name!r}, which is not there", remedy, field)


def _reference(pool: JsonObject) -> dict[str, Any] | None:
    """None where the server will say what is missing."""
    found: Any = pool
    for step in ("spec", "template", "spec", "nodeClassRef"):
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else None
