from holokube.cluster_autoscaler.scale_down.drain_rules import pdb
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from tests.cluster_autoscaler.scale_down.world import make_context, make_pdb, make_pod


def test_a_used_up_budget_blocks() -> None:
    verdict = pdb.judge(make_pod("p"), make_context(make_pdb("full", allowed=5), make_pdb("tight", allowed=0)))
    assert verdict is not None and verdict.reason is BlockingReason.NOT_ENOUGH_PDB
    assert "default/tight" in verdict.message


def test_budgets_of_other_pods_do_not_matter() -> None:
    context = make_context(make_pdb(app="b", allowed=0), make_pdb(namespace="other", allowed=0), make_pdb(allowed=1))
    assert pdb.judge(make_pod("p"), context) is None
