from __future__ import annotations

from dataclasses import replace

import pytest

from holokube.lab.results import Decision, Series
from holokube.report import payload
from holokube.report.columns import NEVER, unpack
from holokube.report.payload import journal_block, series_block, wall_block
from tests.report.samples import run_result

RUN = run_result("karpenter", nodes=12, hours=6)


def test_the_samples_are_there_to_seven_digits() -> None:
    header, columns = unpack(series_block(RUN))
    assert [tick * header["tick_s"] for tick in columns["times"]] == list(RUN.series.times_s)
    assert columns["nodes"] == list(RUN.series.columns["nodes"])
    assert columns["cost_usd_per_hour"] == pytest.approx(RUN.series.columns["cost_usd_per_hour"], rel=1e-6)
    assert header["duration_s"] == RUN.duration_s
    assert header["start_s"] == 1767571200


def test_a_column_that_was_not_sampled_is_left_out() -> None:
    short = replace(RUN, series=Series((0.0, 1.0), {"nodes": (1.0, 2.0), "moon": (0.0, 0.0)}))
    _, columns = unpack(series_block(short))
    assert set(columns) == {"times", "nodes"}


def test_faults_are_marked_with_their_time() -> None:
    fault = Decision(42.5, "scenario", "fault", "zone-a", "lost")
    header, _ = unpack(series_block(replace(RUN, decisions=(fault, *RUN.decisions))))
    assert [42.5, "zone-a: lost"] in header["marks"]


def test_the_wall_tells_where_each_pod_ran_and_when() -> None:
    header, columns = unpack(wall_block(RUN))
    assert header["node_names"] == [node.name for node in RUN.nodes]
    for place, pod in enumerate(RUN.pods):
        assert header["pod_names"][place] == pod.name
        assert columns["pod_node"][place] == (-1 if pod.node is None else pod.node)
        assert header["workloads"][int(columns["pod_workload"][place])] == pod.workload
        assert columns["pod_ended"][place] == NEVER if pod.ended_s is None else (
            columns["pod_ended"][place] * header["tick_s"] == pytest.approx(pod.ended_s, abs=0.006))
    for place, node in enumerate(RUN.nodes):
        assert header["strings"][int(columns["node_type"][place])] == node.instance_type
        assert header["strings"][int(columns["node_why_added"][place])] == node.why_added
        assert columns["node_memory_mib"][place] * 2**20 == pytest.approx(node.memory_bytes, rel=1e-6)


def test_workloads_come_in_order_of_their_cost() -> None:
    header, _ = unpack(wall_block(RUN))
    costs = [RUN.cost_by_workload_usd.get(name, 0.0) for name in header["workloads"]]
    assert costs == sorted(costs, reverse=True)


def test_the_journal_is_in_order_of_time_with_reasons_and_facts() -> None:
    facts = {"share": 0.5, "pods": ["a", "b"], "why": "y"}
    late = Decision(9.0, "ca", "node", "x", "stays", ("too full", "too new"), facts)
    early = Decision(1.0, "ca", "pod", "ns/p", "pending")
    header, columns = unpack(journal_block(replace(RUN, decisions=(late, early))))
    strings = header["strings"]
    assert [tick * header["tick_s"] for tick in columns["at"]] == [1.0, 9.0]
    assert [strings[int(place)] for place in columns["subject"]] == ["ns/p", "x"]
    assert [strings[int(place)] for place in columns["reasons"]] == ["", "too full\ntoo new"]
    assert strings[int(columns["facts"][1])] == 'share: 0.5\npods: ["a","b"]\nwhy: y'
    assert header["left_out"] == 0


def test_a_journal_that_is_too_long_keeps_the_latest_and_says_how_many_are_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(payload, "ENTRIES_MAX", 3)
    entries = tuple(Decision(float(number), "ca", "node", f"n{number}", "stays") for number in range(5))
    header, columns = unpack(journal_block(replace(RUN, decisions=entries)))
    assert header["left_out"] == 2
    assert [header["strings"][int(place)] for place in columns["subject"]] == ["n2", "n3", "n4"]


def test_a_run_without_anything_packs_too() -> None:
    nothing = replace(RUN, nodes=(), pods=(), decisions=(), series=Series((), {}), cost_by_workload_usd={})
    assert unpack(wall_block(nothing))[0]["node_names"] == []
    assert unpack(journal_block(nothing))[1]["at"] == []
    assert unpack(series_block(nothing))[1]["times"] == []
