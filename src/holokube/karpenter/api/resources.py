"""Karpenter's kinds of objects, as the client addresses them."""

from __future__ import annotations

from typing import Final

from holokube.client.resources import Resource
from holokube.karpenter.api.labels import GROUP, KWOK_GROUP, KWOK_NODE_CLASS

NODE_POOLS: Final = Resource(GROUP, "v1", "nodepools", "NodePool", False)
NODE_CLAIMS: Final = Resource(GROUP, "v1", "nodeclaims", "NodeClaim", False)
KWOK_NODE_CLASSES: Final = Resource(KWOK_GROUP, "v1alpha1", "kwoknodeclasses", KWOK_NODE_CLASS, False)
ALL: Final = (NODE_POOLS, NODE_CLAIMS, KWOK_NODE_CLASSES)
