"""Catalogues in CSV: one line per type, or per type and place.

Columns ``name``, ``cpu``, ``memory`` and ``price`` (USD per hour) are needed. These may be there, in any order:

- ``arch`` (amd64), ``os`` (linux), ``zone`` (zone-a), ``capacity-type`` (on-demand): several values as ``a|b``
- ``spot-price``: also offered as spot, at this price
- ``pods`` (110), ``ephemeral-storage``, and any resource with a slash in its name, such as ``nvidia.com/gpu``
- ``label:KEY``: a label of the nodes

Lines with the same name are more offerings of one type, and must agree in everything else.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from holokube.kube import names
from holokube.kube.quantity import QuantityError
from holokube.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, ResourceVector, parse_resources
from holokube.pricing.errors import CatalogError
from holokube.pricing.hollow_types import hollow_type
from holokube.pricing.instance_types import ON_DEMAND, SPOT, Catalog, Offering
from holokube.pricing.size_labels import SIZE_LABELS

_NEEDED: Final = ("name", CPU, MEMORY, "price")
_PLACES: Final = ("zone", "capacity-type", "price", "spot-price")
_KNOWN: Final = frozenset({*_NEEDED, *_PLACES, "arch", "os", PODS, EPHEMERAL_STORAGE})
_LABEL: Final = "label:"
_SMALLEST_MEMORY_MILLI: Final = 2**20 * 1000


@dataclass(slots=True)
class _Type:
    line: int
    shape: Mapping[str, str]
    """All columns that are not about a place; lines of one type must agree in them."""
    resources: ResourceVector
    offerings: list[Offering] = field(default_factory=list)


def parse_csv_catalog(text: str, source: str) -> Catalog:
    """The catalogue in a CSV text; ``source`` is named in errors."""
    reader = csv.DictReader(io.StringIO(text), skipinitialspace=True, strict=True)
    try:
        _check_columns([column.strip() for column in reader.fieldnames or ()], source)
        types: dict[str, _Type] = {}
        for row in reader:
            where = f"{source}: line {reader.line_num}"
            if None in row or any(value is None for value in row.values()):
                raise CatalogError(f"{where}: as many fields are expected as the first line has")
            fields = {key.strip(): value.strip() for key, value in row.items() if key is not None}
            _take(fields, where, reader.line_num, types)
    except csv.Error as error:
        raise CatalogError(f"{source}: after line {reader.line_num}: {error}") from error
    if not types:
        raise CatalogError(f"{source}: no instance types", hint="a line per type follows the line of column names")
    made = []
    for name, one in types.items():
        labels = {
            column.removeprefix(_LABEL): value
            for column, value in one.shape.items()
            if column.startswith(_LABEL) and value
        }
        systems = _several(one.shape.get("os") or "linux")
        made.append(hollow_type(name, one.shape.get("arch") or "amd64", systems, one.resources, one.offerings, labels))
    own = {key for one in types.values() for key in one.shape if key.startswith(_LABEL)}
    return Catalog(made, SIZE_LABELS | {key.removeprefix(_LABEL) for key in own})


def _check_columns(columns: list[str], source: str) -> None:
    missing = [column for column in _NEEDED if column not in columns]
    if missing:
        raise CatalogError(
            f"{source}: line 1: column {', '.join(missing)} is missing", hint=f"needed are {', '.join(_NEEDED)}"
        )
    for number, column in enumerate(columns):
        if column in columns[:number]:
            raise CatalogError(f"{source}: line 1: column {column} is there twice")
        if column in _KNOWN:
            continue
        key = column.removeprefix(_LABEL)
        if (column == key and "/" not in column) or names.is_qualified_name(key):
            raise CatalogError(
                f"{source}: line 1: column {column!r} is not known",
                hint=f"known are {', '.join(sorted(_KNOWN))}, resources such as nvidia.com/gpu, and label:KEY",
            )


def _take(row: dict[str, str], where: str, line: int, types: dict[str, _Type]) -> None:
    name = row["name"]
    if not name:
        raise CatalogError(f"{where}: name: is empty")
    shape = {column: value for column, value in row.items() if column not in _PLACES}
    known = types.get(name)
    if known is None:
        known = types[name] = _Type(line, shape, _resources(row, where))
    elif known.shape != shape:
        differing = next(column for column, value in shape.items() if known.shape[column] != value)
        raise CatalogError(
            f"{where}: {differing}: {shape[differing]!r} is not {known.shape[differing]!r}, as line {known.line} has it"
            f" for {name}",
            hint="lines of one type may differ only in zone, capacity-type, price and spot-price",
        )
    for offering in _offerings(row, where):
        if any((o.zone, o.capacity_type) == (offering.zone, offering.capacity_type) for o in known.offerings):
            raise CatalogError(f"{where}: {name} is offered twice as {offering.capacity_type} in {offering.zone}")
        known.offerings.append(offering)


def _resources(row: dict[str, str], where: str) -> ResourceVector:
    found: ResourceVector = {}
    for column, value in row.items():
        is_resource = column in (CPU, MEMORY, PODS, EPHEMERAL_STORAGE)
        is_device = "/" in column and not column.startswith(_LABEL)
        if not value or not (is_resource or is_device):
            continue
        try:
            found |= parse_resources({column: value})
        except QuantityError as error:
            raise CatalogError(f"{where}: {column}: {value!r} is no amount: {error}") from error
        if found[column] < 0:
            raise CatalogError(f"{where}: {column}: {value!r} is negative")
    for column in (CPU, MEMORY):
        if not found.get(column):
            raise CatalogError(f"{where}: {column}: is missing or 0")
    if found[MEMORY] < _SMALLEST_MEMORY_MILLI:
        raise CatalogError(f"{where}: memory: {row[MEMORY]!r} is a number of bytes", hint="write it like 8Gi")
    return found


def _offerings(row: dict[str, str], where: str) -> list[Offering]:
    price = _price(row["price"], "price", where)
    spot_price = _price(row["spot-price"], "spot-price", where) if row.get("spot-price") else None
    made = []
    for zone in _several(row.get("zone") or "zone-a"):
        for capacity_type in _several(row.get("capacity-type") or ON_DEMAND):
            if capacity_type not in (ON_DEMAND, SPOT):
                raise CatalogError(f"{where}: capacity-type: {capacity_type!r} is neither {ON_DEMAND} nor {SPOT}")
            if capacity_type == SPOT and spot_price is not None:
                continue
            made.append(Offering(zone, capacity_type, price))
        if spot_price is not None:
            made.append(Offering(zone, SPOT, spot_price))
    return made


def _price(text: str, column: str, where: str) -> float:
    try:
        price = float(text)
    except ValueError:
        price = math.nan
    if not 0 <= price < math.inf:
        raise CatalogError(f"{where}: {column}: {text!r} is no price in USD per hour")
    return price


def _several(text: str) -> list[str]:
    return [part.strip() for part in text.split("|") if part.strip()]
