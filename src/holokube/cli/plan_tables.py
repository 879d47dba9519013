"""Plans as tables, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

_GIB = 1 << 30
_ROWS_MAX = 60
_VERDICTS = {"comes": "green", "goes": "red", "stays": "default"}


def show_snapshot(console: Console, plan: Mapping[str, Any]) -> None:
    """The plan for a snapshot."""
    console.print(_headline(plan))
    _show(console, _groups(plan["groups"]))
    for scale_up in plan["scaleUp"]:
        _show_choice(console, scale_up)
    _show_unplaced(console, plan["pods"])
    _show(console, _nodes(plan["nodes"]))
    if "price" in plan:
        price = plan["price"]
        console.print(
            f"Price: {price['perHourBefore']:.4f} -> {price['perHourAfter']:.4f} USD per hour "
            f"({price['perMonthBefore']:.2f} -> {price['perMonthAfter']:.2f} per month)")
    for note in plan["notes"]:
        console.print(f"Note: {escape(note)}", style="yellow")


def _headline(plan: Mapping[str, Any]) -> str:
    verdicts = Counter(node["verdict"] for node in plan["nodes"])
    pods = plan["pods"]
    unplaced = sum(len(group["pods"]) for group in pods["unplaced"])
    return (
        f"[bold]{verdicts['comes']} nodes come, {verdicts['goes']} go, {verdicts['stays']} stay; "
        f"of {pods['pending']} pending pods {unplaced} stay pending.[/bold]")


def _groups(groups: Sequence[Mapping[str, Any]]) -> Table:
    table = _table("Node groups", "GROUP", "MIN", "MAX", "NODES", "CPU", "MEMORY", "PRICE/H", "FROM")
    for group in groups:
        before, after = group["before"], group["after"]
        color = "default" if before == after else "green" if after > before else "red"
        price = group.get("pricePerHour")
        table.add_row(
            escape(group["id"]), str(group["min"]), str(group["max"]),
            f"[{color}]{before}[/]" if before == after else f"[{color}]{before} -> {after}[/]",
            str(group["template"].get("cpu", "")), str(group["template"].get("memory", "")),
            "" if price is None else f"{price:g}", escape(group["source"]))
    return table


def _show_choice(console: Console, scale_up: Mapping[str, Any]) -> None:
    grown = ", ".join(
        f"{one['group']} {one['current']} -> {one['new']} (max {one['max']})" for one in scale_up["increases"])
    after_s = round(scale_up["afterSeconds"])
    console.print(f"\nScale-up after {after_s} s: {escape(grown or scale_up['result'])}", style="bold")
    if scale_up["error"]:
        console.print(f"  {escape(scale_up['error'])}", style="red")
    for choice in scale_up["choices"]:
        scores = {step["name"]: step["scores"] for step in choice["expanders"]}
        table = _table("", "OPTION", "NODES", "PODS", *(name.upper() for name in scores), "")
        for option in choice["options"]:
            is_best = option["group"] == choice["chosen"]
            table.add_row(
                escape(option["group"]), str(option["nodeCount"]), str(option["pods"]),
                *(escape(str(by_group.get(option["group"], ""))) for by_group in scores.values()),
                "[green]chosen[/]" if is_best else "")
        _show(console, table)
        for cap in choice["caps"]:
            console.print(f"  less than wanted: {escape(cap)}")
        for group, why in {**choice["skippedGroups"], **choice["groupsWithoutOption"]}.items():
            console.print(f"  {escape(group)}: {escape(why)}")


def _show_unplaced(console: Console, pods: Mapping[str, Any]) -> None:
    if not pods["unplaced"]:
        return
    table = _table("Pods that stay pending", "PODS", "FIRST", "GROUP", "WHY NOT")
    for group in pods["unplaced"][:_ROWS_MAX]:
        head = (str(len(group["pods"])), escape(group["pods"][0]))
        reasons = {name: ", ".join(why) for name, why in group["reasons"].items()} or {"": group["message"]}
        for number, (name, why) in enumerate(reasons.items()):
            table.add_row(*(head if number == 0 else ("", "")), escape(name), escape(why))
    _show(console, table)


def _nodes(nodes: Sequence[Mapping[str, Any]]) -> Table:
    """Rows that say the same but for the node's name are one."""
    table = _table(
        "Nodes", "NODE", "GROUP", "", "PODS", "CPU", "MEMORY", "FREE CPU", "FREE MEMORY", "WASTED CPU", "WASTED MEMORY",
        "WHY")
    rows: dict[tuple[str, ...], list[str]] = {}
    for node in nodes:
        rows.setdefault(_node_row(node), []).append(node["node"])
    for cells, names in list(rows.items())[:_ROWS_MAX]:
        more = f" (+{len(names) - 1} alike)" if len(names) > 1 else ""
        table.add_row(escape(names[0]) + more, *cells)
    if len(rows) > _ROWS_MAX:
        table.add_row(f"... {len(rows) - _ROWS_MAX} more kinds of nodes; -o json has all")
    return table


def _node_row(node: Mapping[str, Any]) -> tuple[str, ...]:
    verdict = node["verdict"]
    head = escape(node["group"] or ""), f"[{_VERDICTS[verdict]}]{verdict}[/]"
    if verdict == "goes":
        return (*head, *[""] * 8)
    wasted = node.get("wasted")
    return (
        *head, str(node["pods"]), *_amounts(node["allocatable"]), *_amounts(node["free"]),
        *(_amounts(wasted) if wasted is not None else ("", "")), escape(_reason(node["why"])))


def _amounts(amounts: Mapping[str, Any]) -> tuple[str, str]:
    return f"{amounts['cpu']:g}", f"{amounts['memory'] / _GIB:.4g}Gi"


def _reason(why: Mapping[str, Any]) -> str:
    text = str(why["reason"])
    if "blockingPod" in why:
        text += f": {why['blockingPod']} ({why['blockingReason']})"
    elif "homelessPod" in why:
        text += f": {why['homelessPod']} fits nowhere else"
    elif why["reason"] == "NotUnderutilized" and "utilization" in why:
        text += f": {why['utilization']['value']:.0%} of {why['utilization']['resource']}"
        if "threshold" in why:
            text += f", more than {why['threshold']:.0%}"
    elif "detail" in why:
        text += f": {why['detail']}"
    return text


def show_scenario(console: Console, plan: Mapping[str, Any]) -> None:
    """The answer to a scenario, loop by loop."""
    for loop in plan["loops"]:
        up, down = loop["scaleUp"], loop["scaleDown"]
        console.print(f"\nLoop {loop['loop']}: scale-up {up['result']}, scale-down {down['result']}", style="bold")
        if loop.get("options"):
            table = _table("Options", "GROUP", "NODES", "PODS", "")
            for option in loop["options"]:
                is_best = loop.get("best") == option
                table.add_row(escape(option["group"]), str(option["nodeCount"]), str(len(option["pods"])),
                              "[green]chosen[/]" if is_best else "")
            _show(console, table)
        for info in up["infos"]:
            console.print(f"  {escape(info['group'])}: {info['current']} -> {info['new']} (max {info['max']})")
        _show_scenario_pods(console, up)
        _show_scenario_nodes(console, loop)


def _show_scenario_pods(console: Console, up: Mapping[str, Any]) -> None:
    if not up["remainUnschedulable"]:
        return
    table = _table("Pods that nothing can be done for", "POD", "GROUP", "WHY NOT")
    for pod in up["remainUnschedulable"][:_ROWS_MAX]:
        reasons = {**pod["rejected"], **pod["skipped"]} or {"": [up["result"]]}
        for number, (group, why) in enumerate(reasons.items()):
            table.add_row(escape(pod["pod"]) if number == 0 else "", escape(group), escape(", ".join(why)))
    _show(console, table)


def _show_scenario_nodes(console: Console, loop: Mapping[str, Any]) -> None:
    table = _table("Nodes", "NODE", "", "UTILIZATION", "WHY")
    for gone in loop["scaleDown"]["deleting"]:
        evicted = f"evicted: {', '.join(gone['evicted'])}" if gone["evicted"] else "empty"
        table.add_row(escape(gone["node"]), "[red]goes[/]", _share(gone.get("util")), escape(evicted))
    for node in loop["scaleDown"]["unremovable"]:
        why = node["reason"] + (f": {node['blockingPod']} ({node['blockingReason']})" if "blockingPod" in node else "")
        table.add_row(escape(node["node"]), "stays", _share(node.get("util")), escape(why))
    _show(console, table)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, title_style="bold")
    for column in columns:
        is_number = column in ("MIN", "MAX", "NODES", "PODS", "CPU", "MEMORY", "PRICE/H", "UTILIZATION")
        is_number = is_number or column.startswith(("FREE", "WASTED"))
        wraps = column in ("WHY", "WHY NOT", "FROM")
        table.add_column(column, justify="right" if is_number else "left", no_wrap=not wraps)
    return table


def _show(console: Console, *tables: Table) -> None:
    for table in _nonempty(tables):
        console.print()
        console.print(table)


def _nonempty(tables: Iterable[Table]) -> Iterable[Table]:
    return (table for table in tables if table.row_count)
