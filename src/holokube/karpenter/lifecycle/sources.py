"""Which claims and pools a change of something else concerns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from holokube.client.informer import Informer
from holokube.karpenter.api.labels import NODEPOOL_LABEL
from holokube.kube.types import JsonObject
from holokube.runtime.sources import Change

BY_POOL: Final = "karpenter/pool"
Names = Callable[[JsonObject], Iterable[str]]


def pools_of_claim(claim: JsonObject) -> Iterable[str]:
    """For an index of claims by their pool."""
    pool = (claim["metadata"].get("labels") or {}).get(NODEPOOL_LABEL)
    return (pool,) if pool else ()


def claims_of_pool(claims: Informer) -> Names:
    """From a pool to the claims made from it."""

    def names(pool: JsonObject) -> list[str]:
        return [claim["metadata"]["name"] for claim in claims.lister.by_index(BY_POOL, pool["metadata"]["name"])]

    return names


def is_other_pool(change: Change) -> bool:
    """Whether a pool asks for something else now; what it counts and how it fares means nothing to its claims."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    return old.get("spec") != new.get("spec") or any(
        old["metadata"].get(field) != new["metadata"].get(field) for field in ("uid", "annotations")
    )


def basis_of(claim: JsonObject) -> tuple[object, ...]:
    """What the conditions of a claim are made from, apart from its node, its pods and the time.

    In process what a write leaves alone is the very same object, so that two of these are compared quickly. The last of
    them is the list of conditions, or None.
    """
    # Of each change several controllers ask, each of all that have come together before the next one does.
    known = _known_bases.get(id(claim))
    if known is not None and known[0] is claim:
        return known[1]
    metadata = claim["metadata"].get
    basis = (
        metadata("uid"), metadata("creationTimestamp"), metadata("deletionTimestamp"), metadata("generation"),
        metadata("labels"), metadata("annotations"), metadata("finalizers"), claim.get("spec"),
        (claim.get("status") or {}).get("conditions"),
    )  # fmt: skip
    if len(_known_bases) >= _BASES_KEPT:
        _known_bases.clear()
    _known_bases[id(claim)] = claim, basis
    return basis


_BASES_KEPT: Final = 512
_known_bases: dict[int, tuple[JsonObject, tuple[object, ...]]] = {}
"""By the identity of a claim, which is its own for as long as it is kept here."""


def claims_of_class(claims: Informer) -> Names:
    """From a node class to the claims that refer to it."""

    def names(node_class: JsonObject) -> list[str]:
        return [
            claim["metadata"]["name"]
            for claim in claims.lister.list()
            if _refers((claim.get("spec") or {}).get("nodeClassRef"), node_class)
        ]

    return names


def pools_of_class(pools: Informer) -> Names:
    """From a node class to the pools that refer to it."""

    def names(node_class: JsonObject) -> list[str]:
        return [
            pool["metadata"]["name"] for pool in pools.lister.list() if _refers(class_ref_of_pool(pool), node_class)
        ]

    return names


def class_ref_of_pool(pool: JsonObject) -> JsonObject | None:
    """The reference as it is written, in a pool that may make no sense otherwise."""
    template = (pool.get("spec") or {}).get("template") or {}
    ref: JsonObject | None = (template.get("spec") or {}).get("nodeClassRef")
    return ref


def _refers(ref: JsonObject | None, node_class: JsonObject) -> bool:
    if ref is None:
        return False
    return (ref.get("kind"), ref.get("name")) == (node_class["kind"], node_class["metadata"]["name"])
