"""Results and event logs are read back as they were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from holokube.base.errors import UsageError
from holokube.lab.comparison import as_document
from holokube.lab.result_files import evidence_of, read_evidence, result_from_json
from tests.lab.results import run_result, story_result

LOG: list[dict[str, Any]] = [
    {"at": 0.0, "kind": "Node", "name": "a-1", "what": "created", "type": "m5", "group": "a", "zone": "z1"},
    {"at": 2.5, "kind": "Node", "name": "a-1", "what": "ready"},
    {"at": 3.0, "kind": "Deployment", "name": "shop/web", "what": "created"},
    {"at": 3.0, "kind": "Pod", "name": "shop/web-1", "what": "created", "workload": "shop/Deployment/web"},
    {"at": 4.0, "kind": "Decision", "name": "pod/shop/web-1", "what": "pending", "component": "scheduler",
     "reasons": ["0/1 nodes"], "facts": {"alike": 2}},
    {"at": 5.0, "kind": "Pod", "name": "shop/web-1", "what": "bound", "node": "a-1"},
    {"at": 6.0, "kind": "Pod", "name": "shop/web-1", "what": "ready"},
    {"at": 50.0, "kind": "Pod", "name": "shop/web-1", "what": "evicted", "why": "EvictionByEvictionAPI"},
    {"at": 60.0, "kind": "Pod", "name": "shop/web-1", "what": "evicted"},
    {"at": 70.0, "kind": "Node", "name": "a-1", "what": "removed"},
]  # fmt: skip


def lines(*entries: dict[str, Any]) -> bytes:
    return b"".join(orjson.dumps(entry) + b"\n" for entry in entries)


def test_a_result_survives_json() -> None:
    result = story_result()
    assert result_from_json(orjson.dumps(result.as_json()), "r.json") == result


@pytest.mark.parametrize("count", [1, 2])
def test_runs_are_read_as_they_are_printed(tmp_path: Path, count: int) -> None:
    results = [story_result("one"), run_result("two")][:count]
    path = tmp_path / "r.json"
    path.write_bytes(orjson.dumps(as_document(results), option=orjson.OPT_INDENT_2))
    assert read_evidence(path) == [evidence_of(result) for result in results]


def test_an_event_log_tells_of_pods_nodes_and_decisions(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(*LOG))
    (found,) = read_evidence(path)
    (node,) = found.nodes
    assert (node.name, node.group, node.created_s, node.ready_s, node.removed_s) == ("a-1", "a", 0, 2.5, 70)
    (pod,) = found.pods
    assert (pod.workload, pod.node, pod.bound_s, pod.ready_s, pod.ended_s, pod.end) == (
        "shop/Deployment/web", 0, 5, 6, 60, "evicted",
    )  # fmt: skip
    (decision,) = found.decisions
    assert (decision.kind, decision.subject, decision.decision) == ("pod", "shop/web-1", "pending")
    assert (decision.component, decision.reasons, decision.facts) == ("scheduler", ("0/1 nodes",), {"alike": 2})
    assert found.duration_s == 70


def test_a_log_of_one_line_is_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(LOG[0]))
    assert len(read_evidence(path)[0].nodes) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not JSON"),
        (b"[]", "is not the result of a run"),
        (b'{"kind": "Pod"}', "is not the result of a run"),
        (b'{"kind": "RunResult", "apiVersion": "holokube.dev/v2"}', "has version 'holokube.dev/v2'"),
        (b'{"kind": "RunResult", "apiVersion": "holokube.dev/v1alpha1"}', "is damaged: .*scenario"),
        (b'{"kind": "RunResultList", "items": []}', "a list of results without any"),
        (b'{"kind": "RunResultList", "items": [3]}', r"items\[0\] is not the result"),
        (lines(*LOG[:2]) + b"half a li", "line 3: not a line of an event log"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=message) as caught:
        read_evidence(path)
    assert caught.value.hint


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        read_evidence(tmp_path / "none.json")
