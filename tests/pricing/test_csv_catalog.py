from __future__ import annotations

import pytest

from holokube.pricing.csv_catalog import parse_csv_catalog
from holokube.pricing.errors import CatalogError

GIB = 2**30 * 1000


def test_four_columns_are_enough() -> None:
    (box,) = parse_csv_catalog("name,cpu,memory,price\nbox,4,16Gi,0.2\n", "f")
    assert box.name == "box"
    assert box.capacity == {"cpu": 4000, "memory": 16 * GIB, "pods": 110_000}
    assert [(o.zone, o.capacity_type, o.price_usd_per_hour) for o in box.offerings] == [("zone-a", "on-demand", 0.2)]
    assert box.requirements["kubernetes.io/arch"].values == {"amd64"}
    assert box.requirements["kubernetes.io/os"].values == {"linux"}


def test_all_columns_are_read() -> None:
    catalog = parse_csv_catalog(
        "arch, name, cpu, memory, price, spot-price, zone, os, pods, ephemeral-storage, nvidia.com/gpu, "
        "label:example.com/tier\n"
        "arm64, g.large, 8, 32Gi, 1.5, 0.5, a|b, linux|windows, 58, 100Gi, 2, gold\n"
        "amd64, c.large, 2, 4Gi, 0.1, , a, , , , ,\n",
        "f",
    )
    big, small = catalog
    assert big.capacity == {
        "cpu": 8000, "memory": 32 * GIB, "pods": 58_000, "ephemeral-storage": 100 * GIB, "nvidia.com/gpu": 2000,
    }  # fmt: skip
    assert [(o.zone, o.capacity_type, o.price_usd_per_hour) for o in big.offerings] == [
        ("a", "on-demand", 1.5), ("a", "spot", 0.5), ("b", "on-demand", 1.5), ("b", "spot", 0.5),
    ]  # fmt: skip
    assert big.requirements["kubernetes.io/os"].values == {"linux", "windows"}
    assert big.requirements["example.com/tier"].values == {"gold"}
    assert "example.com/tier" not in small.requirements and "nvidia.com/gpu" not in small.capacity
    assert len(small.offerings) == 1
    assert "example.com/tier" in catalog.well_known


def test_lines_of_one_name_are_offerings_of_one_type() -> None:
    (box,) = parse_csv_catalog(
        "name,cpu,memory,price,zone,capacity-type\nbox,4,16Gi,0.2,a,on-demand\nbox,4,16Gi,0.1,a|b,spot\n", "f"
    )
    assert [(o.zone, o.capacity_type, o.price_usd_per_hour) for o in box.offerings] == [
        ("a", "on-demand", 0.2), ("a", "spot", 0.1), ("b", "spot", 0.1),
    ]  # fmt: skip


HEAD = "name,cpu,memory,price,zone,capacity-type\n"
BOX = "box,4,16Gi,0.2,a,on-demand\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "f: line 1: column name, cpu, memory, price is missing"),
        ("name,cpu,price\n", "f: line 1: column memory is missing"),
        ("name,cpu,memory,price,colour\n", "f: line 1: column 'colour' is not known"),
        ("name,cpu,memory,price,label:a b\n", "f: line 1: column 'label:a b' is not known"),
        ("name,cpu,memory,price,cpu\n", "f: line 1: column cpu is there twice"),
        (HEAD, "f: no instance types"),
        (HEAD + "box,4\n", "f: line 2: as many fields"),
        (HEAD + BOX.strip() + ",x\n", "f: line 2: as many fields"),
        (HEAD + ",4,16Gi,0.2,a,spot\n", "f: line 2: name: is empty"),
        (HEAD + BOX + "two,many,16Gi,0.2,a,spot\n", "f: line 3: cpu: 'many' is no amount"),
        (HEAD + "box,,16Gi,0.2,a,spot\n", "f: line 2: cpu: is missing"),
        (HEAD + "box,-1,16Gi,0.2,a,spot\n", "f: line 2: cpu: '-1' is negative"),
        (HEAD + "box,4,16,0.2,a,spot\n", "f: line 2: memory: '16' is a number of bytes"),
        (HEAD + "box,4,16Gi,cheap,a,spot\n", "f: line 2: price: 'cheap' is no price"),
        (HEAD + "box,4,16Gi,nan,a,spot\n", "f: line 2: price: 'nan' is no price"),
        (HEAD + "box,4,16Gi,-1,a,spot\n", "f: line 2: price: '-1' is no price"),
        (HEAD + "box,4,16Gi,1,a,leased\n", "f: line 2: capacity-type: 'leased' is neither"),
        (HEAD + BOX + BOX, "f: line 3: box is offered twice as on-demand in a"),
        (HEAD + BOX + "box,8,16Gi,0.2,b,on-demand\n", "f: line 3: cpu: '8' is not '4', as line 2 has it for box"),
        (HEAD + BOX + 'two,"4,16Gi,0.2,a,spot\n', "f: after line 2: unexpected end of data"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number_and_column(text: str, words: str) -> None:
    with pytest.raises(CatalogError, match=words):
        parse_csv_catalog(text, "f")
