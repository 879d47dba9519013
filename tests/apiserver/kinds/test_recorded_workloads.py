"""Whole answers of a real kube-apiserver 1.36.3 to pods and workloads, good and bad, against the rules here.

Recorded with ``dryRun=All``. What admission adds to pods (service account, tolerations, priority) was taken
out of the answers, and the uid was replaced by a fixed word.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from holokube.kube.types import JsonObject
from tests.apiserver.kinds.workload_steps import KIND_NAMES, UID, create

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> list[Any]:
    items: list[JsonObject] = orjson.loads((RECORDED / f"{name}.json").read_bytes())
    return [pytest.param(item, id=f"{item['plural']}: {item['case']}") for item in items]


@pytest.mark.parametrize("item", recorded("accepted_workloads"))
def test_a_good_object_is_stored_as_the_real_server_stores_it(item: JsonObject) -> None:
    outcome = create(item["plural"], item["body"])
    assert outcome.causes == []
    assert sorted(outcome.warnings) == sorted(item["warnings"])
    obj = orjson.loads(orjson.dumps(outcome.obj).replace(UID.encode(), b"UID"))
    expected = item["object"]
    for side in (obj, expected):
        for key in ("kind", "apiVersion"):
            side.pop(key, None)
        side["metadata"].pop("uid", None)
        if item["plural"] == "pods" and side["spec"].get("serviceAccountName") == "default":
            del side["spec"]["serviceAccountName"]
            del side["spec"]["serviceAccount"]
    assert obj == expected


@pytest.mark.parametrize("item", recorded("rejected_workloads"))
def test_a_bad_object_is_refused_for_the_same_causes_as_by_the_real_server(item: JsonObject) -> None:
    outcome = create(item["plural"], item["body"])
    assert outcome.causes == [tuple(cause) for cause in item["causes"]]


def test_the_recordings_cover_all_workload_kinds() -> None:
    for name in ("accepted_workloads", "rejected_workloads"):
        items = orjson.loads((RECORDED / f"{name}.json").read_bytes())
        assert {item["plural"] for item in items} == set(KIND_NAMES)
