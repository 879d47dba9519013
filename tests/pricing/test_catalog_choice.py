"""A file, overlays over it, and what is wrong with either."""

from __future__ import annotations

from pathlib import Path

import pytest

from holokube.base.errors import UsageError
from holokube.pricing.catalog_choice import choose_catalog
from holokube.pricing.instance_types import Catalog

CATALOG = "name,cpu,memory,price,spot-price\nsmall,2,8Gi,0.10,0.04\nlarge,8,32Gi,0.40,0.16\n"
HALF_PRICE = """
apiVersion: karpenter.sh/v1alpha1
kind: NodeOverlay
metadata: {name: half}
spec:
  priceAdjustment: "-50%"
  requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
"""


def prices(catalog: Catalog) -> list[float]:
    return [offering.price_usd_per_hour for one in catalog.types for offering in one.offerings]


def files(folder: Path, overlays: str) -> tuple[str, str]:
    (folder / "types.csv").write_text(CATALOG)
    (folder / "overlays.yaml").write_text(overlays)
    return str(folder / "types.csv"), str(folder / "overlays.yaml")


def test_without_files_types_are_generated() -> None:
    assert len(choose_catalog().catalog.types) == 144


def test_an_overlay_changes_the_prices_it_selects(tmp_path: Path) -> None:
    types, overlays = files(tmp_path, HALF_PRICE)
    assert prices(choose_catalog(types).catalog) == [0.10, 0.04, 0.40, 0.16]
    assert prices(choose_catalog(types, overlays).catalog) == [0.05, 0.04, 0.20, 0.16]


def test_of_two_overlays_that_touch_the_same_one_is_left_out_and_named(tmp_path: Path) -> None:
    types, overlays = files(tmp_path, HALF_PRICE + "---" + HALF_PRICE.replace("half", "again"))
    chosen = choose_catalog(types, overlays)
    assert chosen.conflicts == ("again",)
    assert prices(chosen.catalog) == [0.05, 0.04, 0.20, 0.16]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "overlays.yaml holds no Kubernetes objects"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "line 1: a Pod is no NodeOverlay"),
        (HALF_PRICE.replace("-50%", "half"), "line 2: overlay half: priceAdjustment 'half' is no change of a price"),
    ],
)
def test_what_is_no_overlay_is_refused_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    types, overlays = files(tmp_path, text)
    with pytest.raises(UsageError) as refused:
        choose_catalog(types, overlays)
    assert message in str(refused.value)
    assert refused.value.hint
