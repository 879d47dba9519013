"""Custom resources: serving what CustomResourceDefinitions describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# The kind of CRDs uses modules of this package, and they use the base of all kinds: whoever is imported first,
# kinds have to be loaded before anything here.
import holokube.apiserver.kinds  # noqa: F401 - imported for the order alone

if TYPE_CHECKING:
    from holokube.apiserver.crds.serving import CustomResources

__all__ = ["CustomResources"]


def __getattr__(name: str) -> Any:
    """``CustomResources`` is loaded on first use.

    The kind of CRDs needs modules of this package while kinds are being loaded, and serving needs kinds.
    """
    if name == "CustomResources":
        from holokube.apiserver.crds.serving import CustomResources

        return CustomResources
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
