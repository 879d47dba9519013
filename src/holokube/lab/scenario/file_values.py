"""Fields whose value lies in a file: catalogues, profiles, node templates and traces."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import yaml

from holokube.base.errors import UsageError
from holokube.hollow.node_template import NodeTemplate
from holokube.hollow.profile import Profile, load_profile, named_profile, parse_profile
from holokube.lab.scenario.document import Marked
from holokube.lab.scenario.errors import Wrong, choose_among
from holokube.lab.scenario.object_types import type_problems
from holokube.lab.scenario.values import Reading, Value, duration_s
from holokube.pricing.catalog_files import catalog_from_json, read_catalog
from holokube.pricing.instance_types import Catalog

_LIST: Final = "the list"
_IN_PLACE: Final = re.compile(rf"{_LIST}: (?P<number>\[\d+\])(?: \([^)]*\))?(?P<field>[^:]*): (?P<what>.*)", re.DOTALL)
"""What is wrong with a type of a catalogue that stands in the scenario."""
MOST: Final = 1_000_000
"""Replicas, or arrivals at one moment."""


@dataclass(frozen=True)
class CatalogValue(Value):
    """What the cloud has on offer."""

    title: ClassVar[str] = "path of a [catalogue](#catalogues) (JSON or CSV), or a list of instance types"
    example: ClassVar[str] = "instance-types.json"

    def read(self, given: Marked, path: str, reading: Reading) -> Catalog:  # noqa: ARG002 - part of the protocol
        try:
            if isinstance(given.value, str):
                catalog = read_catalog(reading.file(given.value, given))
            elif isinstance(given.value, list):
                catalog = catalog_from_json(given.plain, _LIST)
            else:
                raise Wrong(f"a catalogue is expected, not {given.kind}", f"Write a path such as {self.example}.")
        except UsageError as error:
            reading.has_wrong_catalog = True
            remedy = error.hint or "Correct it; docs/scenario.md#catalogues tells what a type has."
            in_place = _IN_PLACE.fullmatch(error.message)
            if in_place is not None:
                raise Wrong(in_place["what"], remedy, in_place["number"] + in_place["field"]) from error
            raise Wrong(error.message, remedy) from error
        except Wrong:
            reading.has_wrong_catalog = True
            raise
        reading.catalog = catalog
        return catalog


@dataclass(frozen=True)
class ProfileValue(Value):
    """How hollow nodes and pods behave."""

    title: ClassVar[str] = "`fast`, `kubelet`, the path of a [profile](hollow-nodes.md#profiles), or its fields"
    example: ClassVar[str] = "fast"

    def read(self, given: Marked, path: str, reading: Reading) -> Profile:  # noqa: ARG002 - part of the protocol
        value = given.value
        try:
            if value == "fast":
                return named_profile("fast")
            if value == "kubelet":
                return named_profile("kubelet")
            if isinstance(value, str):
                return load_profile(reading.file(value, given))
            if isinstance(value, dict):
                return parse_profile(yaml.safe_dump(given.plain), source="the profile")
        except UsageError as error:
            raise Wrong(error.message, f"{error.hint} Names are fast and kubelet.") from error
        raise Wrong(f"a profile is expected, not {given.kind}", "Write fast, kubelet, or the path of a file.")

    def shown(self, value: Any) -> str:
        return str(value.base)


@dataclass(frozen=True)
class NodeTemplateValue(Value):
    """What nodes are made of."""

    title: ClassVar[str] = "path of a Node manifest or template, or the manifest itself"
    example: ClassVar[str] = "node.yaml"

    def read(self, given: Marked, path: str, reading: Reading) -> NodeTemplate:  # noqa: ARG002 - part of the protocol
        try:
            if isinstance(given.value, str):
                return _readable(NodeTemplate.load(reading.file(given.value, given)), f"{given.value}: ")
            if isinstance(given.value, dict):
                return _readable(NodeTemplate(yaml.safe_dump(given.plain), "the manifest"))
        except UsageError as error:
            raise Wrong(error.message, error.hint) from error
        raise Wrong(f"a Node is expected, not {given.kind}", "Write the path of a file, or a v1 Node manifest.")


def _readable(template: NodeTemplate, source: str = "") -> NodeTemplate:
    """The template; Wrong if the server would not take its nodes. ``source`` is where it stands, if not in place."""
    for wrong in type_problems(template.render("node-0", 0)):
        what = f"{source}{wrong.field}: {wrong.what}" if source else wrong.what
        raise Wrong(what, wrong.remedy, "" if source else wrong.field)
    return template


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a trace."""

    at_s: float
    amount: int


@dataclass(frozen=True)
class TraceFile(Value):
    """A CSV file with a line of names and then one line for each moment."""

    example: ClassVar[str] = "trace.csv"
    column: str
    """Of the amounts; times are in the column ``at``."""
    default: int | None = None
    """The amount where there is no such column; None if it must be there."""

    @property
    def describes(self) -> str:
        optional = " (1 by default)" if self.default is not None else ""
        return f"path of a CSV file with the columns `at` (seconds or durations) and `{self.column}`{optional}"

    def read(self, given: Marked, path: str, reading: Reading) -> tuple[Row, ...]:  # noqa: ARG002 - part of the protocol
        if not isinstance(given.value, str):
            raise Wrong(f"the path of a CSV file is expected, not {given.kind}", f"Write one such as {self.example}.")
        where = reading.file(given.value, given)
        try:
            text = where.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise Wrong(f"cannot read {where}: {error.strerror}", "Check the name of the file.") from error
        except UnicodeDecodeError as error:
            raise Wrong(f"{where} is not text in UTF-8", "Save it in that encoding.") from error
        rows = tuple(self._rows(text, str(where)))
        if not rows:
            raise Wrong(f"{where} has no rows", f"Write lines such as 0,5 below at,{self.column}.")
        return rows

    def _rows(self, text: str, source: str) -> Iterator[Row]:
        lines = csv.reader(io.StringIO(text))
        names = [name.strip() for name in next(lines, [])]
        wanted = ("at", self.column) if self.default is None else ("at",)
        for name in wanted:
            if name not in names:
                remedy = f"Begin with the line at,{self.column}. " + (choose_among(name, names) if any(names) else "")
                raise Wrong(f"{source}:1: there is no column {name}", remedy.strip())
        last_s = 0.0
        for cells in lines:
            if not any(cell.strip() for cell in cells):
                continue
            where = f"{source}:{lines.line_num}"
            if len(cells) != len(names):
                raise Wrong(f"{where}: has {len(cells)} cells, not {len(names)}", "Write one cell for each column.")
            row = dict(zip(names, (cell.strip() for cell in cells), strict=True))
            at_s, amount = _time(row["at"], where), self._amount(row, where)
            if at_s < last_s:
                raise Wrong(f"{where}: {row['at']} is earlier than the row before", "Sort the rows by time.")
            last_s = at_s
            yield Row(at_s, amount)

    def _amount(self, row: dict[str, str], where: str) -> int:
        text = row.get(self.column, "")
        if self.column not in row and self.default is not None:
            return self.default
        if not (text.isascii() and text.isdecimal()):
            raise Wrong(f"{where}: {self.column} {text!r} is no whole number", "Write one of 0 or more.")
        if int(text) > MOST:
            raise Wrong(f"{where}: {self.column} {text} is out of range", f"Use a number from 0 to {MOST}.")
        return int(text)


def _time(text: str, where: str) -> float:
    try:
        value_s = float(text)
    except ValueError:
        try:
            value_s = duration_s(text)
        except Wrong as wrong:
            raise Wrong(f"{where}: at {wrong.what}", "Write seconds such as 90, or a duration such as 5m.") from wrong
    if not 0 <= value_s < 1e12:
        raise Wrong(f"{where}: at {text!r} is out of range", "Count seconds from the start of the run.")
    return value_s
