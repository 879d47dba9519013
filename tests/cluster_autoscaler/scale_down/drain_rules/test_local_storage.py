from typing import Any

import pytest

from holokube.cluster_autoscaler.options import AutoscalerOptions
from holokube.cluster_autoscaler.scale_down.drain_rules import local_storage
from holokube.cluster_autoscaler.scale_down.reasons import BlockingReason
from tests.cluster_autoscaler.scale_down.world import make_context, make_pod

SAFE_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"


@pytest.mark.parametrize(
    ("volume", "safe", "blocks"),
    [
        ({"emptyDir": {}}, "", True),
        ({"emptyDir": {"medium": "Memory"}}, "", False),
        ({"hostPath": {"path": "/x"}}, "", True),
        ({"configMap": {"name": "c"}}, "", False),
        ({"emptyDir": {}}, "other,v", False),
        ({"emptyDir": {}}, "other, v", True),
    ],
)
def test_data_on_the_nodes_disk_blocks_unless_declared_worthless(
    volume: dict[str, Any], safe: str, blocks: bool
) -> None:
    annotations = {SAFE_VOLUMES: safe} if safe else None
    pod = make_pod("p", volumes=[{"name": "v", **volume}], annotations=annotations)
    verdict = local_storage.judge(pod, make_context())
    assert (verdict is not None and verdict.reason is BlockingReason.LOCAL_STORAGE_REQUESTED) is blocks


def test_one_worthless_volume_does_not_excuse_another() -> None:
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]
    pod = make_pod("p", volumes=volumes, annotations={SAFE_VOLUMES: "v"})
    verdict = local_storage.judge(pod, make_context())
    assert verdict is not None and verdict.message.endswith("w")


def test_the_rule_can_be_switched_off() -> None:
    assert local_storage.RULE.is_on is not None
    assert not local_storage.RULE.is_on(AutoscalerOptions(skip_nodes_with_local_storage=False))
