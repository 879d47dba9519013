"""The form in which Go would write an object."""

from __future__ import annotations

import copy
from pathlib import Path

import orjson
import pytest

from holokube.apiserver.kinds.all_kinds import kind_for
from holokube.apiserver.kinds.go_shapes import go_shape
from holokube.kube.types import JsonObject
from tests.apiserver.kinds.replay import without_volatile

_RECORDED = Path(__file__).parent / "recorded"


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("core.v1.Service", {}, {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}),
        ("core.v1.ServicePort", {"port": 1, "name": "", "nodePort": 0}, {"port": 1, "targetPort": 0}),
        ("core.v1.NodeSpec", {"unschedulable": False, "providerID": "x"}, {"providerID": "x"}),
        ("core.v1.NodeStatus", {"images": [{}], "phase": ""}, {
            "images": [{"names": None}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 0}},
            "nodeInfo": dict.fromkeys((
                "machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion",
                "kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture",
            ), ""),
        }),
        ("rbac.v1.Role", {"rules": []}, {"metadata": {}, "rules": None}),
        ("rbac.v1.Role", {"rules": [{}]}, {"metadata": {}, "rules": [{"verbs": None}]}),
    ],
)  # fmt: skip
def test_structs_are_written_and_zeros_are_not(name: str, given: JsonObject, expected: JsonObject) -> None:
    go_shape(name).apply(given)
    assert given == expected


def _stored_objects() -> list[tuple[str, str, JsonObject]]:
    found = []
    for path in sorted(_RECORDED.glob("*.json")):
        for item in orjson.loads(path.read_bytes()):
            for step in item.get("steps", ()):
                obj = step.get("answer", {}).get("object", {})
                parts = step["path"].partition("?")[0].strip("/").split("/")
                group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
                plural = rest[2] if rest[0] == "namespaces" and len(rest) > 2 else rest[0]
                version = obj.get("apiVersion", "")
                if obj.get("kind") not in (None, "Status") and version not in ("autoscaling/v1", "events.k8s.io/v1"):
                    found.append((group, plural, obj))
    return found


def test_what_the_real_server_stored_has_no_need_of_defaults() -> None:
    objects = _stored_objects()
    assert len(objects) > 150
    for group, plural, obj in objects:
        again = copy.deepcopy(obj)
        kind_for(group, plural).default(again)
        # Times are not in the recordings; their places come back empty.
        assert without_volatile(again) == obj, (plural, obj["metadata"]["name"])
