"""Problems in one object."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.base.errors import UsageError
from holokube.karpenter.plan.case import is_case, read_case
from holokube.karpenter.plan.given import Given
from holokube.pricing.catalog_files import catalog_from_json
from tests.karpenter.plan.clusters import CATALOG, node, node_pool, pod


def _read(**fields: Any) -> Given:
    return read_case({"nodePools": [node_pool()], **fields}, "case.json", catalog_from_json(CATALOG))


def _existing() -> dict[str, Any]:
    made, claim = node("a")
    return {"node": made, "nodeClaim": claim, "pods": [pod("x", "a")]}


def test_a_problem_is_told_from_an_object() -> None:
    assert is_case({"nodePools": []})
    assert not is_case(node_pool()) and not is_case([]) and not is_case({"nodePools": [], "kind": "List"})


def test_everything_in_a_problem_is_read() -> None:
    given = _read(
        pods=[pod("z")], existingNodes=[_existing()], daemonSetPods=[pod("d")], pdbs=[pod("pdb")],
        options={"now": "2026-01-02T00:00:00Z", "listInstanceTypes": 5, "spotToSpotConsolidation": True},
    )  # fmt: skip
    assert [one.name for one in given.pools] == ["default"] and given.types_of_pool == {
        "default": given.catalog.types}
    assert len(given.pods) == len(given.daemon_pods) == len(given.pdbs) == 1
    assert [(one.name, len(one.pods)) for one in given.nodes] == [("a", 1)]
    assert given.now_s == 1767312000.0 and given.listed_types == 5 and given.spot_to_spot is True


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"pods": [pod("z")]}, False),
        ({"pods": [pod("z")], "existingNodes": [_existing()]}, False),
        ({"existingNodes": [_existing()]}, True),
        ({"pods": [pod("z")], "options": {"now": "2026-01-02T00:00:00Z"}}, True),
    ],
)  # fmt: skip
def test_disruption_is_asked_for_by_nodes_without_pending_pods_or_by_a_time(
    fields: dict[str, Any], wanted: bool
) -> None:
    assert _read(**fields).wants_disruption is wanted


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"nodes": []}, "case.json: a problem has no field 'nodes'"),
        ({"options": {"then": 1}}, "case.json: there is no option 'then'"),
        ({"pods": {}}, "case.json: pods must be a list of objects"),
        ({"pods": [{}]}, r"case.json: pods\[0\] has no metadata.name"),
        ({"existingNodes": [{}]}, r"case.json: existingNodes\[0\] has neither node nor nodeClaim"),
        ({"options": {"now": "yesterday"}}, "case.json: "),
        ({"nodePools": [node_pool(disruption={"consolidateAfter": "soon"})]}, "case.json: NodePool default: "),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _read(**fields)
