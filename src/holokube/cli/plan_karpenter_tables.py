"""Karpenter's plans as tables, for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_ROWS_MAX = 60
_PODS_SHOWN = 3
_VERDICTS = {"goes": "red", "is replaced": "yellow", "could go": "yellow", "stays": "default"}
_NUMBERS = ("NODES", "PODS", "PRICE/H", "TYPES", "CPU", "COST", "SAVES/H", "EACH/H")


def show_plan(console: Console, plan: Mapping[str, Any]) -> None:
    """The whole plan: what comes, who stays pending, what goes, and the price of it."""
    console.print(_headline(plan))
    _show(console, _claims(plan["newNodeClaims"]))
    _show(console, _placed(plan["existingNodes"]))
    _show(console, _pending(plan["podErrors"]))
    if "commands" in plan:
        _show(console, _commands(plan["commands"]))
    if "nodes" in plan:
        _show(console, _nodes(plan["nodes"]))
    _show_price(console, plan)
    for note in plan.get("notes", ()):
        console.print(f"Note: {escape(note)}", style="yellow")


def _headline(plan: Mapping[str, Any]) -> str:
    summary = plan["summary"]
    text = (
        f"{summary['newNodes']} nodes come; of {summary['pods']} pending pods {summary['podsOnNew']} go to new nodes, "
        f"{summary['podsOnExisting']} to existing ones, {summary['unschedulable']} stay pending.")
    if plan.get("commands"):
        first = plan["commands"][0]
        text += f" First, {len(first['candidates'])} nodes would {_verb(first)} ({first['reason']})."
    elif "commands" in plan:
        text += " No node would be disrupted."
    return f"[bold]{text}[/bold]"


def _verb(command: Mapping[str, Any]) -> str:
    return "be replaced" if command["decision"] == "replace" else "go"


def _claims(claims: Sequence[Mapping[str, Any]]) -> Table:
    """Claims that differ in their pods only are one row."""
    table = _table("New nodes", "NODES", "POOL", "TYPE", "ZONE", "CAPACITY", "EACH/H", "TYPES", "PODS", "FOR")
    rows: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for claim in claims:
        key = (
            claim["nodePool"], claim["instanceType"], claim["zone"], claim["capacityType"], f"{claim['price']:.4f}",
            str(claim["numInstanceTypeOptions"]), str(len(claim["pods"])),
        )  # fmt: skip
        rows.setdefault(key, []).append(claim)
    for row, same in list(rows.items())[:_ROWS_MAX]:
        table.add_row(str(len(same)), *map(escape, row), escape(_some(same[0]["pods"])))
    _tell_rest(table, len(rows))
    return table


def _placed(existing: Mapping[str, Sequence[str]]) -> Table:
    table = _table("Pods that go to existing nodes", "NODE", "PODS", "FOR")
    for name, pods in list(existing.items())[:_ROWS_MAX]:
        table.add_row(escape(name), str(len(pods)), escape(_some(pods)))
    _tell_rest(table, len(existing))
    return table


def _pending(errors: Mapping[str, str]) -> Table:
    """Pods with the same reason are one row."""
    table = _table("Pods that stay pending", "PODS", "FIRST", "WHY")
    reasons: dict[str, list[str]] = {}
    for pod, why in errors.items():
        reasons.setdefault(why, []).append(pod)
    for why, pods in list(reasons.items())[:_ROWS_MAX]:
        table.add_row(str(len(pods)), escape(pods[0]), escape(why))
    _tell_rest(table, len(reasons))
    return table


def _commands(commands: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("What each method would do now", "METHOD", "REASON", "DECISION", "NODES", "WHICH", "BY", "SAVES/H")
    for command in commands:
        instead = ", ".join(
            f"{one['instanceType']} {one['zone']} {one['capacityType']}" for one in command["replacements"])
        table.add_row(
            command["method"], command["reason"], command["decision"], str(len(command["candidates"])),
            escape(_some(command["candidates"])), escape(instead), f"{command['estimatedSavings']:.4f}")
    return table


def _nodes(nodes: Sequence[Mapping[str, Any]]) -> Table:
    """Rows that say the same but for the node's name are one."""
    table = _table("Nodes", "NODE", "POOL", "TYPE", "ZONE", "CAPACITY", "PRICE/H", "PODS", "", "WHY")
    rows: dict[tuple[str, ...], list[str]] = {}
    for node in nodes:
        price = node["price"]
        why = "; ".join(one["message"] for one in node["why"])
        if not why and node["by"]:
            why = f"{node['reason']} ({node['by']})"
        cells = (
            escape(node["nodePool"]), escape(node["instanceType"]), escape(node["zone"]), escape(node["capacityType"]),
            "" if price is None else f"{price:.4f}", str(node["pods"]),
            f"[{_VERDICTS[node['verdict']]}]{node['verdict']}[/]", escape(why),
        )  # fmt: skip
        rows.setdefault(cells, []).append(node["node"])
    for row, names in list(rows.items())[:_ROWS_MAX]:
        more = f" (+{len(names) - 1} alike)" if len(names) > 1 else ""
        table.add_row(escape(names[0]) + more, *row)
    _tell_rest(table, len(rows))
    return table


def _show_price(console: Console, plan: Mapping[str, Any]) -> None:
    console.print()
    console.print(f"New nodes cost {plan['totalPrice']:.4f} USD per hour.")
    if "lowerBound" in plan:
        console.print(
            f"No plan for these pods can cost less than {plan['lowerBound']:.4f} USD per hour: this one is at most "
            f"{plan['gap']:.1%} dearer than the cheapest.")
    if "consolidation" in plan:
        found = plan["consolidation"]
        console.print(
            f"Nodes that may go cost {found['perHourBefore']:.4f} USD per hour, after consolidation "
            f"{found['perHourAfter']:.4f}, at least {found['lowerBound']:.4f} in any case.")
    if "price" in plan:
        price = plan["price"]
        console.print(
            f"Price of all nodes: {price['perHourBefore']:.4f} -> {price['perHourAfter']:.4f} USD per hour "
            f"({price['perMonthBefore']:.2f} -> {price['perMonthAfter']:.2f} per month)")


def _some(names: Sequence[str]) -> str:
    rest = len(names) - _PODS_SHOWN
    return ", ".join(names[:_PODS_SHOWN]) + (f" and {rest} more" if rest > 0 else "")


def _tell_rest(table: Table, rows: int) -> None:
    if rows > _ROWS_MAX:
        table.add_row(f"... {rows - _ROWS_MAX} more rows; -o json has all")


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for column in columns:
        wraps = column in ("WHY", "FOR", "WHICH", "BY")
        table.add_column(column, justify="right" if column in _NUMBERS else "left", no_wrap=not wraps)
    return table


def _show(console: Console, table: Table) -> None:
    if table.row_count:
        console.print()
        console.print(table)
