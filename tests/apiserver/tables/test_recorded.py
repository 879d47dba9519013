"""Tables against those that a real kube-apiserver 1.36 made of the same objects."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holokube.apiserver import tables
from holokube.apiserver.resources import ResourceTable, Served
from holokube.apiserver.types import TypeCatalog

HERE = Path(__file__).parent
ROWS: dict[str, Any] = json.loads((HERE / "recorded.json").read_text())
COLUMNS: dict[str, Any] = json.loads((HERE / "recorded_columns.json").read_text())
RESOURCES = ResourceTable(TypeCatalog())


def served(api_version: str, plural: str) -> Served:
    group, _, version = api_version.rpartition("/")
    found = RESOURCES.find(group, version, plural)
    assert found is not None
    return found


@pytest.mark.parametrize("name", ROWS)
def test_cells_are_those_of_the_real_server(name: str) -> None:
    recorded = ROWS[name]
    now = datetime.fromisoformat(recorded["now"])
    # The real server made the table milliseconds after the objects were read, perhaps in the next second.
    attempts = [
        tables.table(served(*name.split()), recorded["items"], now + timedelta(seconds=late), "None")["rows"]
        for late in (0, 1)
    ]
    for index, row in enumerate(recorded["rows"]):
        ours = [attempt[index] for attempt in attempts]
        assert len(ours[0]["cells"]) == len(row["cells"])
        for cell, *ours_by_time in zip(row["cells"], *(o["cells"] for o in ours), strict=True):
            assert cell in ours_by_time
            assert type(cell) in {type(value) for value in ours_by_time}
        assert ours[0].get("conditions") == row.get("conditions")


@pytest.mark.parametrize("path", COLUMNS)
def test_columns_are_those_of_the_real_server(path: str) -> None:
    *_, version, plural = path.split("/")
    group = path.split("/")[2] if path.startswith("/apis/") else ""
    found = RESOURCES.find(group, version, plural)
    assert found is not None
    columns = tables.layout_of(found).columns
    assert [[c["name"], c["type"], c["format"], c["priority"]] for c in columns] == COLUMNS[path]


def test_all_resources_that_can_be_listed_were_recorded() -> None:
    listable = {
        f"{'/apis/' + t.group if t.group else '/api'}/{version}/{t.plural}"
        for t in RESOURCES
        for version, info in t.versions.items()
        if "list" in info.verbs
    }
    assert listable == set(COLUMNS)
