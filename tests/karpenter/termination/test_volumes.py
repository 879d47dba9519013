from __future__ import annotations

from holokube.karpenter.termination.volumes import awaited_attachments
from holokube.kube.types import JsonObject
from tests.karpenter.objects import NOW_S, pod


def attachment(name: str, node: str, volume: str | None) -> JsonObject:
    source = {"persistentVolumeName": volume} if volume else {}
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "source": source}}


def test_only_volumes_of_this_node_that_will_be_detached_are_waited_for() -> None:
    claims = {"default/kept": {"spec": {"volumeName": "pv-kept"}}, "default/p-data": {"spec": {"volumeName": "pv-own"}}}
    stays = pod(
        "p", tolerations=[{"operator": "Exists"}],
        volumes=[{"name": "a", "persistentVolumeClaim": {"claimName": "kept"}}, {"name": "data", "ephemeral": {}},
                 {"name": "gone", "persistentVolumeClaim": {"claimName": "gone"}}, {"name": "tmp", "emptyDir": {}}],
    )  # fmt: skip
    leaves = pod("q", volumes=[{"name": "a", "persistentVolumeClaim": {"claimName": "other"}}])
    attachments = [
        attachment("1", "n", "pv-kept"), attachment("2", "n", "pv-own"), attachment("3", "n", "pv-other"),
        attachment("4", "m", "pv-other"), attachment("5", "n", None),
    ]  # fmt: skip
    found = awaited_attachments(attachments, "n", [stays, leaves], claims, NOW_S)
    assert [one["metadata"]["name"] for one in found] == ["3"]
