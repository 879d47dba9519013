from __future__ import annotations

from holokube.karpenter.disruption.methods import METHODS


def test_methods_are_tried_in_this_order() -> None:
    assert [method.name for method in METHODS] == ["emptiness", "drift", "multi", "single"]
    assert [method.is_validated for method in METHODS] == [True, False, True, True]
    assert [method.consolidation_type for method in METHODS] == ["empty", "", "multi", "single"]
