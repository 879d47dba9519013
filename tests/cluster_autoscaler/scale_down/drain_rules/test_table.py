import pytest

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.drain_rules import ALL_RULES, Outcome, judge, rules_for
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from holokube.kube.types import JsonObject
from tests.cluster_autoscaler.scale_down.world import SAFE_TO_EVICT, make_context, make_pdb, make_pod

SAFE, UNSAFE = {SAFE_TO_EVICT: "true"}, {SAFE_TO_EVICT: "false"}
DISK = [{"name": "v", "emptyDir": {}}]


def test_the_rules_stand_in_upstreams_order() -> None:
    assert [rule.name for rule in ALL_RULES] == [
        "Mirror", "LongTerminating", "ReplicaCount", "DaemonSet", "SafeToEvict", "Terminal", "OnCompletion",
        "Replicated", "System", "NotSafeToEvict", "LocalStorage", "PDB",
    ]  # fmt: skip


def test_settings_switch_rules_off() -> None:
    off = AutoscalerOptions(
        skip_nodes_with_system_pods=False, skip_nodes_with_local_storage=False,
        skip_nodes_with_custom_controller_pods=False,
    )  # fmt: skip
    left = {rule.name for rule in rules_for(off)}
    assert {rule.name for rule in ALL_RULES} - left == {"ReplicaCount", "System", "LocalStorage"}


@pytest.mark.parametrize(
    ("pod", "outcome", "reason"),
    [
        (make_pod("p"), Outcome.DRAIN, None),
        # A missing controller is worse than anything the pod says of itself.
        (make_pod("p", owner=("Job", "gone"), annotations=SAFE), Outcome.BLOCK, BlockingReason.CONTROLLER_NOT_FOUND),
        # Safe to evict beats every blocking rule, budgets included.
        (make_pod("p", owner=None, annotations=SAFE, volumes=DISK, labels={"app": "tight"}), Outcome.DRAIN, None),
        (make_pod("p", namespace="kube-system", annotations=SAFE), Outcome.DRAIN, None),
        # Rules speak in their order: not replicated, system, annotation, storage, budget.
        (make_pod("p", namespace="kube-system", owner=None), Outcome.BLOCK, BlockingReason.NOT_REPLICATED),
        (make_pod("p", namespace="kube-system", annotations=UNSAFE), Outcome.BLOCK,
         BlockingReason.UNMOVABLE_KUBE_SYSTEM_POD),
        (make_pod("p", annotations=UNSAFE, volumes=DISK), Outcome.BLOCK, BlockingReason.NOT_SAFE_TO_EVICT_ANNOTATION),
        (make_pod("p", labels={"app": "tight"}, volumes=DISK), Outcome.BLOCK, BlockingReason.LOCAL_STORAGE_REQUESTED),
        (make_pod("p", labels={"app": "tight"}), Outcome.BLOCK, BlockingReason.NOT_ENOUGH_PDB),
        # An old system pod goes, whatever the rules behind would say.
        (make_pod("p", namespace="kube-system", age_s=7200, volumes=DISK), Outcome.DRAIN, None),
        (make_pod("p", owner=("DaemonSet", "d"), volumes=DISK, annotations=UNSAFE), Outcome.DRAIN, None),
    ],
)  # fmt: skip
def test_the_first_rule_with_something_to_say_decides(
    pod: JsonObject, outcome: Outcome, reason: BlockingReason | None
) -> None:
    controllers: dict[tuple[str, str, str], JsonObject] = {
        (kind, namespace, name): {}
        for kind, name in (("ReplicaSet", "rs"), ("DaemonSet", "d"))
        for namespace in ("default", "kube-system")
    }
    context = make_context(make_pdb(app="tight", allowed=0), controllers=controllers)
    verdict = judge(pod, rules_for(context.options), context)
    assert (verdict.outcome, verdict.reason) == (outcome, reason)
