"""The door to HiGHS: loaded when first needed, always single-threaded and seeded.

Work is bounded by counts (simplex iterations, branch-and-bound nodes) so that the answer does not depend on the
machine; the time limit given to HiGHS is only the last resort of a caller who set one.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from holokube.base.errors import HolokubeError
from holokube.karpenter.optimal.model import FloatArray, IntArray

INFINITY: Final = float("inf")


class SolverMissing(HolokubeError):
    """HiGHS is not installed."""


def load() -> Any:
    """The ``highspy`` module."""
    try:
        return importlib.import_module("highspy")
    except ImportError as error:
        raise SolverMissing(
            "policy optimal and lower bounds need the HiGHS solver, which is not installed",
            hint="Install it with: pip install 'holokube[optimal]'",
        ) from error


def is_installed() -> bool:
    """Whether bounds and optimal plans can be had."""
    try:
        load()
    except SolverMissing:
        return False
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What HiGHS found. ``bound`` holds for the true optimum even if the search was cut short."""

    found: bool
    objective: float
    bound: float
    values: FloatArray
    row_duals: FloatArray


class LinearProgram:
    """A program to minimise, grown by rows and columns. Keeps its basis between solves."""

    def __init__(self) -> None:
        self._library = load()
        self._highs = self._library.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("random_seed", 0), ("parallel", "off")):
            self._highs.setOptionValue(option, value)

    @property
    def columns(self) -> int:
        """How many variables there are."""
        return int(self._highs.getNumCol())

    def add_columns(self, costs: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
        """Variables that no row has yet."""
        nothing = np.zeros(0, dtype=np.int32)
        starts = np.zeros(len(costs), dtype=np.int32)
        self._highs.addCols(len(costs), costs, lower, upper, 0, starts, nothing, np.zeros(0))

    def add_column(self, cost: float, upper: float, rows: IntArray, amounts: FloatArray) -> None:
        """A variable from zero to ``upper`` in existing rows."""
        self._highs.addCol(cost, 0.0, upper, len(rows), rows.astype(np.int32), amounts.astype(np.float64))

    def add_row(self, lower: float, upper: float, columns: IntArray, amounts: FloatArray) -> None:
        """A constraint over existing variables."""
        self._highs.addRow(lower, upper, len(columns), columns.astype(np.int32), amounts.astype(np.float64))

    def add_rows(
        self, lower: Sequence[float], upper: float, lengths: Sequence[int] | IntArray,
        columns: Sequence[int] | IntArray, amounts: Sequence[float] | FloatArray,
    ) -> None:  # fmt: skip
        """Several constraints; each has as many of the columns and amounts as its length, one after the other."""
        starts = np.cumsum(lengths, dtype=np.int32) - np.asarray(lengths, dtype=np.int32)
        self._highs.addRows(
            len(lower), np.asarray(lower, dtype=np.float64), np.full(len(lower), upper), len(amounts), starts,
            np.asarray(columns, dtype=np.int32), np.asarray(amounts, dtype=np.float64),
        )  # fmt: skip

    def set_row(self, row: int, lower: float, upper: float) -> None:
        """New bounds of a row."""
        self._highs.changeRowBounds(row, lower, upper)

    def set_column(self, column: int, lower: float, upper: float) -> None:
        """New bounds of a variable."""
        self._highs.changeColBounds(column, lower, upper)

    def require_integers(self, columns: IntArray) -> None:
        """From now on these variables are whole."""
        kinds = np.full(len(columns), self._library.HighsVarType.kInteger)
        self._highs.changeColsIntegrality(len(columns), columns.astype(np.int32), kinds)

    def solve(
        self,
        *,
        max_nodes: int | None = None,
        relative_gap: float = 1e-6,
        limit_s: float = INFINITY,
        only_bound: bool = False,
    ) -> Answer:
        """The best values found; with ``only_bound`` nothing is spent on looking for values."""
        self._highs.setOptionValue("mip_rel_gap", relative_gap)
        self._highs.setOptionValue("time_limit", max(limit_s, 0.0))
        if max_nodes is not None:
            self._highs.setOptionValue("mip_max_nodes", max_nodes)
        if only_bound:
            self._highs.setOptionValue("mip_heuristic_effort", 0.0)
        self._highs.run()
        return self._answer()

    def _answer(self) -> Answer:
        info = self._highs.getInfo()
        solution = self._highs.getSolution()
        feasible = info.primal_solution_status == self._library.SolutionStatus.kSolutionStatusFeasible
        optimal = self._highs.getModelStatus() == self._library.HighsModelStatus.kOptimal
        is_mip = info.mip_node_count >= 0
        bound = info.mip_dual_bound if is_mip else (info.objective_function_value if optimal else -INFINITY)
        return Answer(
            found=bool(feasible),
            objective=float(info.objective_function_value),
            bound=float(bound),
            values=np.asarray(solution.col_value, dtype=np.float64),
            row_duals=np.asarray(solution.row_dual, dtype=np.float64),
        )
