"""Bars: node hours by type and cost by workload, the runs of each side by side. Drawn without a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import Final

from holokube.report.figures import NOTHING
from holokube.report.markup import bar_swatch, empty, style_class, text

ROWS_MAX: Final = 12


def bars(
    amounts: Sequence[Mapping[str, float]],
    labels: Sequence[str],
    figure: Callable[[float], str],
    *,
    nothing: str,
) -> str:
    """One group of bars for each name, the largest first; what does not fit is added up in the last."""
    totals: dict[str, float] = {}
    for one in amounts:
        for name, amount in one.items():
            totals[name] = max(totals.get(name, 0.0), amount)
    names = sorted((name for name, amount in totals.items() if amount > 0), key=lambda name: (-totals[name], name))
    if not names:
        return empty(nothing)
    # A single one left over is as short as "1 other".
    shown = names if len(names) <= ROWS_MAX + 1 else names[:ROWS_MAX]
    rest = names[len(shown):]
    groups: list[tuple[str, list[float]]] = [(name, [one.get(name, 0.0) for one in amounts]) for name in shown]
    if rest:
        groups.append((f"{len(rest)} others", [fsum(one.get(name, 0.0) for name in rest) for one in amounts]))
    largest = max(value for _, values in groups for value in values)
    listed = "".join(_group(*group, labels, figure, largest) for group in groups)
    return f'{_legend(labels)}<ul class="bars">{listed}</ul>'


def _legend(labels: Sequence[str]) -> str:
    """Whose bar is which; those who hear the page are told at each bar."""
    if len(labels) < 2:
        return ""
    names = "".join(f"<span>{bar_swatch(index)}{text(label)}</span>" for index, label in enumerate(labels))
    return f'<p class="bar-keys" aria-hidden="true">{names}</p>'


def _group(
    name: str, values: Sequence[float], labels: Sequence[str], figure: Callable[[float], str], largest: float,
) -> str:
    rows = []
    for index, value in enumerate(values):
        width = 100 * value / largest if largest else 0.0
        shown = figure(value) if value else NOTHING
        rows.append(
            f'<div class="bar {style_class(index)}"><span class="unseen">{text(labels[index])}: </span>'
            f'<svg width="100%" height="9" aria-hidden="true"><rect width="{width:.2f}%" height="9" rx="1"/></svg>'
            f'<span class="num">{text(shown)}</span></div>'
        )
    return f'<li><div class="bar-name">{text(name)}</div>{"".join(rows)}</li>'
