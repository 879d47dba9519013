from __future__ import annotations

from holokube.karpenter.termination.claim_finalizer import with_deadline
from tests.karpenter.objects import at, claim

KEY = "karpenter.sh/nodeclaim-termination-timestamp"


def test_the_deadline_is_written_once_and_counts_from_the_deletion() -> None:
    deleted = claim(deleted_s=10, terminationGracePeriod="2m")
    dated = with_deadline(deleted)
    assert dated["metadata"]["annotations"] == {KEY: at(130)}
    assert with_deadline(dated) is dated


def test_without_a_grace_period_or_a_deletion_there_is_none() -> None:
    for one in (claim(deleted_s=10), claim(terminationGracePeriod="2m")):
        assert with_deadline(one) is one
