"""Karpenter's objects: their definitions, and readings of them."""
