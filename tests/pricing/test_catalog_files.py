from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from holokube.pricing.catalog_files import catalog_from_json, catalog_to_json, parse_json_catalog, read_catalog
from holokube.pricing.errors import CatalogError
from holokube.pricing.generator import generate
from holokube.pricing.instance_types import RESERVATION_ID_LABEL, Catalog

ZONE, CAPACITY_TYPE = "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"


def place(zone: str, capacity_type: str, **more: str) -> list[dict[str, Any]]:
    keys = {CAPACITY_TYPE: capacity_type, ZONE: zone, **more}
    return [{"key": key, "operator": "In", "values": [value]} for key, value in keys.items()]


LONG = {
    "name": "m5.large", "architecture": "amd64", "operatingSystems": ["linux", "windows"],
    "resources": {"cpu": "2", "memory": "8Gi", "ephemeral-storage": "20Gi"},
    "offerings": [
        {"Price": 0.0672, "Available": False, "Requirements": place("us-west-2a", "spot")},
        {"Price": 0.096, "Available": True, "Requirements": place("us-west-2a", "on-demand")},
    ],
}  # fmt: skip
SHORT = {
    **LONG, "offerings": [
        {"zone": "us-west-2a", "capacityType": "spot", "price": 0.0672},
        {"zone": "us-west-2a", "capacityType": "on-demand", "price": 0.096},
    ],
}  # fmt: skip


def shape(catalog: Catalog) -> list[tuple[Any, ...]]:
    return [
        (
            one.name, one.requirements, one.capacity, one.overhead,
            [(o.zone, o.capacity_type, o.price_usd_per_hour, o.is_launchable, o.requirements) for o in one.offerings],
        )
        for one in catalog
    ]  # fmt: skip


def test_both_forms_of_offerings_say_the_same() -> None:
    long, short = catalog_from_json([LONG]), catalog_from_json([SHORT])
    assert shape(long) == shape(short)
    assert long.well_known == short.well_known
    (one,) = long
    assert one.capacity["pods"] == 110_000, "the kubelet's default"
    assert one.allocatable["cpu"] == 1900
    assert [o.price_usd_per_hour for o in one.offerings] == [0.0672, 0.096]
    assert all(o.is_launchable for o in one.offerings), "Available is ignored, as upstream does"
    assert one.requirements["kubernetes.io/os"].values == {"linux", "windows"}
    assert one.requirements["karpenter.kwok.sh/instance-size"].values == {"large"}
    assert {"karpenter.kwok.sh/instance-cpu", ZONE} <= long.well_known


def test_the_short_form_may_say_that_something_is_not_to_be_had() -> None:
    offerings = [{**SHORT["offerings"][0], "available": False}]  # type: ignore[dict-item] - a dict of dicts
    assert not catalog_from_json([{**SHORT, "offerings": offerings}]).types[0].offerings[0].available


def test_a_name_may_come_once_for_each_operating_system() -> None:
    linux, windows = ({**LONG, "operatingSystems": [system]} for system in ("linux", "windows"))
    catalog = catalog_from_json([linux, windows])
    assert [one.name for one in catalog] == ["m5.large", "m5.large"]
    assert catalog.by_name["m5.large"] is catalog.types[1]


def test_keys_of_offerings_become_well_known() -> None:
    offerings = [{"Price": 1, "Requirements": place("a", "spot", rack="r-1")}]
    catalog = catalog_from_json([{**LONG, "offerings": offerings}])
    assert "rack" in catalog.well_known
    assert catalog.types[0].offerings[0].requirements["rack"].values == {"r-1"}


def test_reservations_have_an_id_and_a_capacity() -> None:
    long = {"Price": 0, "ReservationCapacity": 3, "Requirements": place("a", "reserved", **{RESERVATION_ID_LABEL: "r"})}
    short = {"zone": "a", "capacityType": "reserved", "price": 0, "reservationId": "r", "reservationCapacity": 3}
    for offering in (long, short):
        (made,) = catalog_from_json([{**LONG, "offerings": [offering]}]).types[0].offerings
        assert (made.reservation_id, made.reservation_capacity, made.is_launchable) == ("r", 3, True)


def test_a_generated_catalogue_survives_its_file(tmp_path: Path) -> None:
    written = generate()
    text = json.dumps(catalog_to_json(written))
    for name, data in (("catalog.json", text.encode()), ("catalog.json.gz", gzip.compress(text.encode()))):
        path = tmp_path / name
        path.write_bytes(data)
        assert shape(read_catalog(path)) == shape(written)


def test_the_name_of_a_file_tells_csv(tmp_path: Path) -> None:
    path = tmp_path / "catalog.csv.gz"
    path.write_bytes(gzip.compress(b"name,cpu,memory,price\nbox,4,16Gi,0.2\n"))
    assert [one.name for one in read_catalog(path)] == ["box"]


@pytest.mark.parametrize(
    ("types", "words"),
    [
        ({}, "f: a list of instance types"),
        ([], "f: a list of instance types"),
        (["m5.large"], r'f: \[0\]: an instance type is expected, not "m5.large"'),
        ([{**LONG, "name": ""}], r"f: \[0\]\.name: a text is expected"),
        ([LONG, SHORT, LONG], r"f: \[1\]\.name: m5.large is the same type as \[0\]"),
        ([{**LONG, "architecture": 5}], r"f: \[0\] \(m5.large\)\.architecture: a text is expected, not 5"),
        ([{**LONG, "operatingSystems": "linux"}], r"\.operatingSystems: a list"),
        ([{**LONG, "offerings": None}], r"\.offerings: a list"),
        ([{**LONG, "offerings": ["x"]}], r"\.offerings\[0\]: an offering"),
        ([{**LONG, "resources": None}], r"\.resources: amounts"),
        ([{**LONG, "resources": {"cpu": "2"}}], r"\.resources\.memory: is missing"),
        ([{**LONG, "resources": {"cpu": "two", "memory": "1Gi"}}], r"\.resources\.cpu: 'two' is no amount"),
        ([{**LONG, "resources": {"cpu": "-2", "memory": "1Gi"}}], r"\.resources\.cpu: '-2' is negative"),
        ([{**LONG, "offerings": [{"Price": "1", "Requirements": []}]}], r"\.offerings\[0\]\.price: a price"),
        ([{**LONG, "offerings": [{"Price": -1, "Requirements": []}]}], r"\.offerings\[0\]\.price: a price"),
        ([{**LONG, "offerings": [{"Price": 1, "Requirements": []}]}], r"\.offerings\[0\]: a requirement on karp"),
        ([{**LONG, "offerings": [{"Price": 1, "Requirements": {}}]}], r"\.Requirements: a list"),
        ([{**LONG, "offerings": [{"Price": 1, "Requirements": [{"key": "a", "operator": "Is"}]}]}],
         r"\.offerings\[0\]\.Requirements\[0\]: .*'Is' is no operator"),
        ([{**LONG, "offerings": [{"Price": 1, "Requirements": [5]}]}], r"\.Requirements\[0\]"),
        ([{**LONG, "offerings": [{"price": 1, "capacityType": "spot"}]}], r"\.offerings\[0\]\.zone: a text"),
        ([{**LONG, "offerings": [{"price": 1, "zone": "a", "capacityType": "reserved"}]}], "a reserved offering needs"),
        ([{**LONG, "offerings": [{"price": 1, "zone": "a", "capacityType": "spot", "reservationCapacity": "x"}]}],
         r"\.reservationCapacity: a number"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_type_and_field(types: Any, words: str) -> None:
    with pytest.raises(CatalogError, match=words):
        catalog_from_json(types, "f")


def test_what_is_no_json_is_refused_with_its_line() -> None:
    with pytest.raises(CatalogError, match=r"f: no JSON: .* line 2 column 1"):
        parse_json_catalog("[\n", "f")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json.gz"
    broken.write_bytes(gzip.compress(b"[]" * 500)[:-12])
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\xfd")
    for path in (tmp_path / "missing.json", broken, binary):
        with pytest.raises(CatalogError, match=f"{path.name}: cannot be read"):
            read_catalog(path)
