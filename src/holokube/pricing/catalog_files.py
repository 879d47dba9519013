"""Catalogues in files: what instance types there are, where, and for how much.

Three forms are read, gzipped or not. JSON is a list of types with either of two forms of offerings::

    {"name": "m5.large", "architecture": "amd64", "operatingSystems": ["linux"],
     "resources": {"cpu": "2", "memory": "8Gi"},
     "offerings": [{"Price": 0.096, "Requirements": [{"key": ..., "operator": "In", "values": [...]}, ...]},
                   {"zone": "zone-a", "capacityType": "spot", "price": 0.03}]}

The first is the file of upstream's kwok provider, where ``Available`` is ignored and everything is available. The
second is short for it, and ``"available": false`` counts. For CSV see :mod:`holokube.pricing.csv_catalog`.
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from holokube.kube.quantity import QuantityError
from holokube.kube.requirements import ARCH_LABEL, CAPACITY_TYPE_LABEL, OS_LABEL, ZONE_LABEL, Requirement, Requirements
from holokube.kube.resources import CPU, MEMORY, ResourceVector, parse_resources, to_json
from holokube.pricing.csv_catalog import parse_csv_catalog
from holokube.pricing.errors import CatalogError
from holokube.pricing.hollow_types import hollow_type
from holokube.pricing.instance_types import (
    RESERVATION_ID_LABEL,
    RESERVED,
    Catalog,
    InstanceType,
    Offering,
)
from holokube.pricing.size_labels import SIZE_LABELS

_GZIP_MAGIC: Final = b"\x1f\x8b"


def read_catalog(path: Path) -> Catalog:
    """The catalogue in a file: JSON, or CSV if the name says so; gzipped if it begins so."""
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP_MAGIC):
            data = gzip.decompress(data)
        text = data.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise CatalogError(f"{path}: cannot be read: {error}") from error
    if path.name.removesuffix(".gz").lower().endswith(".csv"):
        return parse_csv_catalog(text, str(path))
    return parse_json_catalog(text, str(path))


def parse_json_catalog(text: str, source: str) -> Catalog:
    """The catalogue in a JSON text; ``source`` is named in errors."""
    try:
        types = json.loads(text)
    except ValueError as error:
        raise CatalogError(f"{source}: no JSON: {error}", hint="a list of instance types is expected") from error
    return catalog_from_json(types, source)


def catalog_from_json(types: Any, source: str = "catalogue") -> Catalog:
    """The catalogue in decoded JSON."""
    if not isinstance(types, list) or not types:
        raise CatalogError(f"{source}: a list of instance types is expected")
    seen: dict[tuple[object, ...], int] = {}
    shared: dict[Requirements, Requirements] = {}
    made = []
    for number, given in enumerate(types):
        one = _Reader(f"{source}: [{number}]", shared).instance_type(given)
        # A name may come once for each operating system and architecture, as in upstream's sample of AWS types.
        before = seen.setdefault((one.name, one.requirements[ARCH_LABEL], one.requirements[OS_LABEL]), number)
        if before != number:
            raise CatalogError(f"{source}: [{number}].name: {one.name} is the same type as [{before}]")
        made.append(one)
    return Catalog(made, SIZE_LABELS)


class _Reader:
    """Reads one type, and knows where it is for the sake of errors."""

    def __init__(self, where: str, shared: dict[Requirements, Requirements]) -> None:
        self._where = where
        self._shared = shared

    def fail(self, field: str, problem: str) -> CatalogError:
        return CatalogError(f"{self._where}.{field}: {problem}")

    def text(self, owner: Mapping[str, Any], field: str, prefix: str = "", default: str | None = None) -> str:
        value = owner.get(field, default)
        if not isinstance(value, str) or not value:
            raise self.fail(prefix + field, f"a text is expected, not {json.dumps(value)}")
        return value

    def instance_type(self, one: Any) -> InstanceType:
        if not isinstance(one, dict):
            raise CatalogError(f"{self._where}: an instance type is expected, not {json.dumps(one)[:80]}")
        name = self.text(one, "name")
        self._where += f" ({name})"
        systems = one.get("operatingSystems", ["linux"])
        if not isinstance(systems, list) or not systems or not all(isinstance(system, str) for system in systems):
            raise self.fail("operatingSystems", "a list of texts is expected")
        offerings = one.get("offerings")
        if not isinstance(offerings, list):
            raise self.fail("offerings", "a list of offerings is expected")
        return hollow_type(
            name,
            self.text(one, "architecture", default="amd64"),
            systems,
            self.resources(one.get("resources")),
            [self.offering(offering, f"offerings[{number}]") for number, offering in enumerate(offerings)],
        )

    def resources(self, given: Any) -> ResourceVector:
        if not isinstance(given, dict):
            raise self.fail("resources", "amounts by resource name are expected")
        found: ResourceVector = {}
        for name, amount in given.items():
            try:
                found |= parse_resources({name: amount})
            except (QuantityError, ValueError, TypeError) as error:
                raise self.fail(f"resources.{name}", f"{amount!r} is no amount: {error}") from error
            if found[name] < 0:
                raise self.fail(f"resources.{name}", f"{amount!r} is negative")
        for name in (CPU, MEMORY):
            # Zero is taken: upstream's sample has a type whose memory rounds to it, and nothing will fit there.
            if name not in found:
                raise self.fail(f"resources.{name}", "is missing")
        return found

    def offering(self, given: Any, where: str) -> Offering:
        if not isinstance(given, dict):
            raise self.fail(where, f"an offering is expected, not {json.dumps(given)[:80]}")
        # Go reads field names without regard to case, so files have both Price and price.
        fields = {name.lower(): value for name, value in given.items()}
        price = fields.get("price", 0.0)
        if isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price < math.inf:
            raise self.fail(f"{where}.price", f"a price is expected, not {json.dumps(price)}")
        capacity = fields.get("reservationcapacity", 0)
        if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 0:
            raise self.fail(f"{where}.reservationCapacity", f"a number is expected, not {json.dumps(capacity)}")
        if "requirements" in fields:
            requirements = self.requirements(fields["requirements"], f"{where}.Requirements")
        else:
            requirements = Requirements.from_labels({
                ZONE_LABEL: self.text(given, "zone", f"{where}."),
                CAPACITY_TYPE_LABEL: self.text(given, "capacityType", f"{where}."),
                **({RESERVATION_ID_LABEL: given["reservationId"]} if given.get("reservationId") else {}),
            })  # fmt: skip
        # There are few places and many offerings.
        requirements = self._shared.setdefault(requirements, requirements)
        capacity_type = self._only(requirements, CAPACITY_TYPE_LABEL, where)
        reservation = requirements.of(RESERVATION_ID_LABEL).values
        if capacity_type == RESERVED and len(reservation) != 1:
            raise self.fail(where, f"a reserved offering needs a requirement on {RESERVATION_ID_LABEL} with one value")
        return Offering(
            self._only(requirements, ZONE_LABEL, where),
            capacity_type,
            float(price),
            available="requirements" in fields or fields.get("available", True) is not False,
            reservation_id=next(iter(reservation), ""),
            reservation_capacity=capacity,
            requirements=requirements,
        )

    def requirements(self, given: Any, where: str) -> Requirements:
        if not isinstance(given, list):
            raise self.fail(where, "a list of requirements is expected")
        made = []
        for number, one in enumerate(given):
            try:
                made.append(Requirement.from_json(one))
            except (ValueError, AttributeError, TypeError) as error:
                raise self.fail(f"{where}[{number}]", str(error)) from error
        return Requirements(made)

    def _only(self, requirements: Requirements, key: str, where: str) -> str:
        values = requirements.of(key).values if key in requirements else ()
        if len(values) != 1 or requirements[key].complement:
            raise self.fail(where, f"a requirement on {key} with exactly one value is needed")
        return next(iter(values))


def catalog_to_json(catalog: Catalog) -> list[dict[str, Any]]:
    """The catalogue in the form of upstream's kwok provider."""
    return [
        {
            "name": one.name,
            "architecture": min(one.requirements.of(ARCH_LABEL).values, default=""),
            "operatingSystems": sorted(one.requirements.of(OS_LABEL).values),
            "resources": to_json(one.capacity),
            "offerings": [
                {
                    "Price": offering.price_usd_per_hour,
                    "Available": offering.available,
                    **({"ReservationCapacity": offering.reservation_capacity} if offering.is_reserved else {}),
                    "Requirements": offering.requirements.to_json(),
                }
                for offering in one.offerings
            ],
        }
        for one in catalog.types
    ]
