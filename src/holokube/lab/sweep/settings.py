"""Which settings a sweep goes through: a grid of values, a list of rows, or both."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from holokube.base.errors import UsageError
from holokube.lab.scenario.changes import parse_override, split_override

POLICY: Final = "policy"
"""The column of a list that names a policy instead of a path."""
_OPENING, _CLOSING, _QUOTES = "[{", "]}", "\"'"
_HINT: Final = "Write --set spec.workloads[web].curve.high=20,40 or --set spec.seed=1,2,3."


@dataclass(frozen=True, slots=True)
class Settings:
    """One choice of values."""

    texts: Mapping[str, str]
    """By path, as they were written; what tables show."""
    overrides: Mapping[str, Any]
    """The same values as YAML reads them."""
    policy: str = ""
    """Only this one, if not empty."""

    def with_more(self, other: Settings) -> Settings:
        """Both together; what stands in both is an error."""
        twice = self.texts.keys() & other.texts.keys()
        if twice:
            raise UsageError(f"{min(twice)} is set twice", hint="Set it with --set or in the list, not in both.")
        texts = {**self.texts, **other.texts}
        return Settings(texts, {**self.overrides, **other.overrides}, other.policy or self.policy)


def parse_axis(text: str) -> list[Settings]:
    """``PATH=VALUE,VALUE,...`` of a command line. Commas in quotes or brackets do not separate."""
    path, values = split_override(text)
    parts = list(split_values(values))
    if not values.strip() or any(not part for part in parts):
        raise UsageError(f"--set {text}: a value is missing", hint=_HINT)
    if len(set(parts)) < len(parts):
        raise UsageError(f"--set {text}: a value is there twice", hint="Every value is run once; take one away.")
    return [_setting(path, part) for part in parts]


def split_values(text: str) -> Iterator[str]:
    """The parts between commas that are neither in quotes nor in brackets."""
    depth, quote, begin = 0, "", 0
    for place, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in _QUOTES:
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and depth <= 0:
            yield text[begin:place].strip()
            begin = place + 1
    yield text[begin:].strip()


def _setting(path: str, text: str) -> Settings:
    _, value = parse_override(f"{path}={text}")
    return Settings({path: text}, {path: value})


def read_list(path: Path) -> list[Settings]:
    """A CSV file: its header names paths, and perhaps ``policy``; every row is a choice, an empty cell sets nothing."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="Check the name of the file.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text: {error}", hint="Give a CSV file.") from error
    reader = csv.reader(lines)
    header = [name.strip() for name in next(reader, [])]
    if not header or not all(header):
        raise UsageError(f"{path}: the header has a column without a name", hint="Its names are paths: spec.seed,...")
    for name in header:
        if header.count(name) > 1:
            raise UsageError(f"{path}: the header has {name} twice", hint="Take one of the columns away.")
    found: list[Settings] = []
    for row in reader:
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(header):
            raise UsageError(
                f"{path}, line {reader.line_num}: {len(row)} cells under {len(header)} names",
                hint="Every row has a cell for each column; quote cells with commas.",
            )
        found.append(_row(header, [cell.strip() for cell in row]))
    if not found:
        raise UsageError(f"{path} has no rows", hint="Write a row for each run below the header.")
    return found


def _row(header: Sequence[str], cells: Sequence[str]) -> Settings:
    setting = Settings({}, {})
    for name, cell in zip(header, cells, strict=True):
        if not cell:
            continue
        more = Settings({}, {}, cell) if name == POLICY else _setting(name, cell)
        setting = setting.with_more(more)
    return setting


def combine(axes: Sequence[Sequence[Settings]]) -> list[Settings]:
    """Every value with every other, the last axis changing fastest."""
    found: list[Settings] = []
    for choice in itertools.product(*axes):
        setting = Settings({}, {})
        for more in choice:
            setting = setting.with_more(more)
        found.append(setting)
    return found
