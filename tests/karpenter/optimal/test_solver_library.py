from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from holokube.karpenter.optimal import solver_library
from holokube.karpenter.optimal.solver_library import INFINITY, LinearProgram, SolverMissing


def test_whoever_lacks_the_library_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(SolverMissing) as caught:
        solver_library.load()
    assert "holokube[optimal]" in caught.value.hint
    assert not solver_library.is_installed()


def test_a_program_has_values_duals_and_a_bound() -> None:
    program = LinearProgram()
    program.add_columns(np.array([2.0, 3.0]), np.zeros(2), np.full(2, INFINITY))
    program.add_row(4.0, INFINITY, np.array([0, 1]), np.array([1.0, 2.0]))
    answer = program.solve()
    assert answer.found and answer.objective == pytest.approx(6.0) and answer.bound == pytest.approx(6.0)
    assert answer.row_duals.tolist() == pytest.approx([1.5])
    program.require_integers(np.array([0, 1]))
    program.set_row(0, 3.0, INFINITY)
    assert program.solve(max_nodes=10).objective == pytest.approx(5.0)
