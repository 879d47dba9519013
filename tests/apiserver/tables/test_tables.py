from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from holokube.apiserver import tables
from holokube.apiserver.conversions.horizontal_pod_autoscaler import v2_to_v1
from holokube.apiserver.resources import ResourceTable, Served
from holokube.apiserver.types import TypeCatalog

NOW = datetime(2026, 1, 2, tzinfo=UTC)
RESOURCES = ResourceTable(TypeCatalog())
EVERY = [Served(t, version) for t in RESOURCES for version in t.versions]


def served(plural: str, group: str = "") -> Served:
    found = RESOURCES.find(group, "v1", plural)
    assert found is not None
    return found


CONFIG_MAP: dict[str, Any] = {
    "kind": "ConfigMap",
    "apiVersion": "v1",
    "metadata": {"name": "a", "resourceVersion": "7", "creationTimestamp": "2026-01-01T23:59:00Z"},
    "data": {"x": "y"},
}


def test_a_row_carries_the_metadata_unless_told_otherwise() -> None:
    def row_object(include: str) -> Any:
        return tables.table(served("configmaps"), [CONFIG_MAP], NOW, include)["rows"][0]["object"]

    partial = {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": CONFIG_MAP["metadata"],
    }
    assert row_object("") == partial
    assert row_object("Metadata") == partial
    assert row_object("Object") == CONFIG_MAP
    assert row_object("None") is None


def test_the_table_of_one_object_has_its_revision() -> None:
    table = tables.table(served("configmaps"), [CONFIG_MAP], NOW, "", single=True)
    assert table["metadata"] == {"resourceVersion": "7"}
    assert table["rows"][0]["cells"] == ["a", 1, "60s"]


def test_an_empty_list_is_a_table_without_rows() -> None:
    table = tables.table(served("configmaps"), [], NOW, "")
    assert table["rows"] == []
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Data", "Age"]


def test_resources_without_a_layout_show_name_and_creation_time() -> None:
    table = tables.table(served("limitranges"), [CONFIG_MAP], NOW, "")
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Created At"]
    assert table["rows"][0]["cells"] == ["a", "2026-01-01T23:59:00Z"]


@pytest.mark.parametrize("one", EVERY, ids=lambda one: f"{one.api_version}/{one.plural}")
def test_objects_with_nothing_in_them_can_be_shown(one: Served) -> None:
    bare = [{}, {"metadata": {}}, {"metadata": {"name": "n"}, "spec": {}, "status": {}}]
    table = tables.table(one, bare, NOW, "")
    orjson.dumps(table)
    # The one resource of which upstream sends a cell more than it has columns.
    extra = 1 if one.plural == "ipaddresses" else 0
    assert {len(row["cells"]) for row in table["rows"]} == {len(table["columnDefinitions"]) + extra}


@pytest.mark.parametrize("one", EVERY, ids=lambda one: f"{one.api_version}/{one.plural}")
def test_every_column_is_described(one: Served) -> None:
    assert all(c["description"] for c in tables.layout_of(one).columns)


def test_a_scale_is_shown_as_such() -> None:
    scale = {"kind": "Scale", "metadata": {"name": "d"}, "spec": {"replicas": 3}, "status": {"replicas": 2}}
    table = tables.table(served("deployments", "apps"), [scale], NOW, "", single=True)
    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Desired", "Available", "Age"]
    assert table["rows"][0]["cells"] == ["d", 3, 2, "<unknown>"]


def test_flow_schemas_are_listed_by_precedence() -> None:
    schemas = [
        {"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}}
        for name, precedence in (("a", 9000), ("b", 1), ("c", 500))
    ]
    flows = served("flowschemas", "flowcontrol.apiserver.k8s.io")
    rows = tables.table(flows, schemas, NOW, "None")["rows"]
    assert [row["cells"][0] for row in rows] == ["b", "c", "a"]


def test_version_1_of_an_autoscaler_shows_the_metrics_of_version_2() -> None:
    def metric(name: str, percent: int) -> dict[str, Any]:
        target = {"type": "Utilization", "averageUtilization": percent}
        return {"type": "Resource", "resource": {"name": name, "target": target}}

    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "metrics": [metric("cpu", 80), metric("memory", 50)]},
    }
    one = served("horizontalpodautoscalers", "autoscaling")
    targets = tables.table(one, [v2_to_v1(autoscaler)], NOW, "None")["rows"][0]["cells"][2]
    assert targets == "cpu: <unknown>/80%, memory: <unknown>/50%"


def test_making_a_table_leaves_the_objects_alone() -> None:
    before = json.dumps(CONFIG_MAP)
    tables.table(served("configmaps"), [CONFIG_MAP], NOW, "Object")
    assert json.dumps(CONFIG_MAP) == before
