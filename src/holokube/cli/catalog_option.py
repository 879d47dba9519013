"""The option ``--price-overlays``, and the catalogue that it and ``--catalog`` mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from holokube.pricing.instance_types import Catalog

overlays_option = click.option(
    "--price-overlays", "overlays", default="", type=click.Path(), metavar="FILE",
    help="NodeOverlay manifests: other prices, discounts or extended resources for instance types that they select.",
)  # fmt: skip


def catalog_from(path: str, overlays: str) -> Catalog:
    """The instance types, with a warning for every overlay that conflicts with another one."""
    from holokube.pricing.catalog_choice import choose_catalog

    chosen = choose_catalog(path, overlays)
    for name in chosen.conflicts:
        click.echo(f"warning: overlay {name} touches what another one of its weight does, and is left out", err=True)
    return chosen.catalog
