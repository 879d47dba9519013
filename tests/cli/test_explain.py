"""``holokube explain`` on the command line."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from holokube.lab.comparison import as_document
from tests.cli.program import Inside, assert_two_lines
from tests.lab.results import story_result
from tests.lab.test_result_files import LOG, lines


@pytest.fixture
def result(tmp_path: Path) -> str:
    path = tmp_path / "r.json"
    path.write_bytes(orjson.dumps(as_document([story_result("ca"), story_result("karpenter")])))
    return str(path)


def test_a_story_is_told_for_each_policy(inside: Inside, result: str) -> None:
    done = inside("explain", "pod/shop/web-2", result)
    assert done.returncode == 0
    assert done.stderr == ""
    first = done.stdout.split("\n\n")[0].splitlines()
    assert first == [
        "pod shop/web-2, policy ca",
        "It was pending for 1m01s, then on node a-2 from 00:02:01.",
        "Times count from 2026-01-05T00:00:00Z.",
        "00:01:00                      was created by shop/Deployment/web and requested 0.5 CPU and 1,024 MiB",
        "00:01:00  scheduler           pending",
        "                              0/2 nodes are available",
        "00:01:10  cluster-autoscaler  scale-up cluster: chose a",
        "                              options: a 1, b 2",
        "00:01:10  cluster-autoscaler  scale-up a: enlarged",
        "                              a 1->2 (max: 9)",
        "                              pods: 1",
        "                              least-waste chose a",
        "                                a: 5 %",
        "                                b: 9 %",
        "00:02:01                      was bound to node a-2, after 1m01s",
        "                              the node came at 00:01:30: a 1->2, for 1 pods",
        "00:02:05                      became ready",
    ]
    assert "pod shop/web-2, policy karpenter" in done.stdout


def test_one_policy_and_one_time_can_be_chosen(inside: Inside, result: str) -> None:
    for at in ("100s", "2026-01-05T00:01:40Z"):
        done = inside("explain", "pod/shop/web-2", result, "--policy", "karpenter", "--at", at)
        assert "At 00:01:40 it was pending, for 40s so far." in done.stdout
        assert "policy ca" not in done.stdout
        assert "became ready" not in done.stdout


def test_json_has_the_same(inside: Inside, result: str) -> None:
    done = inside("explain", "node/b-1", result, "-o", "json")
    first, _ = orjson.loads(done.stdout)
    assert (first["kind"], first["name"], first["policy"]) == ("node", "b-1", "ca")
    assert first["moments"][-1] == {"at_s": 3600.0, "component": "", "what": "was removed", "why": ["drained"]}


def test_an_event_log_will_do(inside: Inside, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(*LOG))
    done = inside("explain", "pod/web-1", str(path))
    assert done.returncode == 0
    assert "It was pending for 2s, then on node a-1 from 00:00:05 until 00:01:00." in done.stdout
    assert "Times count" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nodes", "{result}"), "does not say what is to be explained"),
        (("node/a-9", "{result}"), "knows no node 'a-9'"),
        (("node/a-1", "none.json"), "cannot read none.json"),
        (("node/a-1", "{result}", "--policy", "x"), "no run with policy 'x'"),
        (("node/a-1", "{result}", "--at", "noon"), "'noon' is neither a time since the beginning"),
        (("node/a-1", "{result}", "--at", "2025-01-01T00:00:00Z"), "before the beginning"),
        (("node/a-1", "{result}", "--at", "9h"), "after the end"),
    ],
)
def test_wrong_usage_is_told_in_two_lines(
    inside: Inside, result: str, arguments: tuple[str, ...], message: str
) -> None:
    done = inside("explain", *(argument.format(result=result) for argument in arguments))
    assert done.returncode == 2
    assert message in assert_two_lines(done.stderr)[0]


def test_a_log_does_not_know_when_it_began(inside: Inside, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(lines(*LOG))
    done = inside("explain", "pod/web-1", str(path), "--at", "2026-01-05T00:00:00Z")
    assert "an event log does not tell when the run began" in assert_two_lines(done.stderr)[0]
