"""Which instance types there are, as a user says it: a file or none, and overlays over it or none."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from holokube.apiserver.manifests import read_manifests
from holokube.base.errors import UsageError
from holokube.pricing.catalog_files import read_catalog
from holokube.pricing.generator import generate
from holokube.pricing.overlays import Overlaid, Overlay, apply_overlays

_KIND: Final = "NodeOverlay"


def choose_catalog(path: str = "", overlays_path: str = "") -> Overlaid:
    """The file's types, or generated ones; with the prices and resources that the overlays give them."""
    catalog = read_catalog(Path(path)) if path else generate()
    return apply_overlays(catalog, read_overlays(overlays_path)) if overlays_path else Overlaid(catalog, ())


def read_overlays(path: str) -> list[Overlay]:
    """The NodeOverlays of a file; it may hold nothing else."""
    found = read_manifests(path)
    overlays = []
    for number, obj in enumerate(found.objects):
        if not isinstance(obj, dict) or obj.get("kind") != _KIND:
            kind = obj.get("kind") if isinstance(obj, dict) else type(obj).__name__
            raise UsageError(
                f"{found.where(number)}: a {kind} is no {_KIND}", hint="Keep overlays in a file of their own.")
        try:
            overlays.append(Overlay.from_json(obj))
        except UsageError as error:
            raise UsageError(f"{found.where(number)}: {error}", hint=error.hint) from error
    return overlays
