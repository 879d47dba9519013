"""Commands become smaller when they do not bring what was hoped for, and end when nothing is to be gained."""

from __future__ import annotations

from holokube.karpenter.optimal.trust import LEAST, Trust


def test_a_promise_that_is_kept_changes_nothing_and_one_that_is_not_halves_the_next_command() -> None:
    trust = Trust()
    assert trust.look(1.2) == 1.0
    trust.hope(1.2, 1.1)
    assert trust.look(1.14) == 1.0
    trust.hope(1.14, 1.1)
    assert trust.look(1.13) == 0.5
    trust.hope(1.13, 1.1)
    assert trust.look(1.1) == 1.0


def test_without_a_command_nothing_is_learned() -> None:
    trust = Trust()
    assert [trust.look(ratio) for ratio in (1.1, 1.3, 1.5)] == [1.0] * 3


def test_it_ends_after_disappointments_until_the_cluster_is_another_one() -> None:
    trust = Trust()
    shares = []
    for _ in range(6):
        share = trust.look(1.1)
        shares.append(share)
        if share:
            trust.hope(1.1, 1.05)
    assert shares == [1.0, 0.5, 0.25, LEAST, 0.0, 0.0]
    assert trust.look(1.105) == 0.0
    assert trust.look(1.15) == 1.0
