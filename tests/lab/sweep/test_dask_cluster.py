"""Sweeps on a Dask cluster, and what is said when there is none."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holokube.base.errors import UsageError
from holokube.lab.sweep.dask_cluster import DaskRunner
from holokube.lab.sweep.sweeping import sweep
from tests.lab.sweep import fakes


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
    with distributed.LocalCluster(
        # Any free port for its own page: there may be another cluster, of another process that runs tests.
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1",
        # Its scheduler goes on logging after pytest has closed the stream that it logs to.
        silence_logs=logging.ERROR,
    ) as found:
        yield found


def test_runs_go_to_the_workers_and_come_back_in_order(cluster: Any, tmp_path: Path) -> None:
    tasks = [fakes.task(tmp_path, seed=str(seed)) for seed in (3, 1, 2)]
    rows = sweep(tasks, DaskRunner(cluster.scheduler_address, fakes.good))
    assert [row.result.summary["cost_usd"] for row in rows if row.result] == [3, 1, 2]


def test_a_run_that_raises_is_told_and_not_tried_again(cluster: Any, tmp_path: Path) -> None:
    tasks = [fakes.task(tmp_path, seed=str(seed)) for seed in (1, 2, 3)]
    rows = sweep(tasks, DaskRunner(cluster.scheduler_address, fakes.is_wrong))
    assert [row.error for row in rows] == ["", "there is no room", "ZeroDivisionError: division by zero"]
    assert len(list(tmp_path.glob("attempt-*"))) == 3


def test_a_run_whose_worker_died_is_done_by_another(cluster: Any, tmp_path: Path) -> None:
    tasks = [fakes.task(tmp_path, seed=str(seed)) for seed in (1, 2)]
    rows = sweep(tasks, DaskRunner(cluster.scheduler_address, fakes.dies_once))
    assert [row.error for row in rows] == ["", ""]
    assert len(list(tmp_path.glob("attempt-2-*"))) == 2


def test_an_address_where_nobody_listens_is_told(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    runner = DaskRunner("tcp://127.0.0.1:9", fakes.good, connect_within_s=0.2)
    with pytest.raises(UsageError, match=r"--dask tcp://127\.0\.0\.1:9: no scheduler answers") as caught:
        sweep([fakes.task(tmp_path)], runner)
    assert "dask scheduler" in caught.value.hint


def test_without_the_package_the_hint_is_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match="not installed") as caught:
        list(DaskRunner("tcp://x:1", fakes.good).run([fakes.task(tmp_path)]))
    assert "holokube[dask]" in caught.value.hint
