"""What the pods of one controller have in common is what each of them would be found to have by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.base.clock import VirtualClock
from holokube.hollow.usage import UsageProfile
from holokube.kube.types import JsonObject
from holokube.lab.run.event_log import EventLog
from holokube.lab.run.node_meter import NodeMeter
from holokube.lab.run.owners import Owners
from holokube.lab.run.pod_meter import PodMeter
from holokube.lab.run.usage_meter import UsageMeter
from holokube.runtime.informers import InformerSet

TEMPLATES: tuple[list[JsonObject], ...] = (
    [{"name": "a", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}],
    [{"name": "a", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}, {"name": "b"}],
)
BESIDE: tuple[JsonObject, ...] = (
    {}, {"overhead": {"cpu": "50m"}}, {"initContainers": [{"name": "i", "resources": {"requests": {"cpu": "2"}}}]},
    {"resources": {"requests": {"cpu": "3"}}}, {"nodeSelector": {"a": "b"}},
)  # fmt: skip
OWNERS: tuple[JsonObject | None, ...] = (
    None, {"kind": "ReplicaSet", "name": "r"}, {"kind": "ReplicaSet", "name": "late"}, {"kind": "Job", "name": "j"},
    {"kind": "DaemonSet", "name": "d"},
)  # fmt: skip
PODS = st.tuples(
    st.integers(0, len(OWNERS) - 1), st.integers(0, len(TEMPLATES) - 1), st.integers(0, len(BESIDE) - 1),
    st.sampled_from(["", "1", "2"]),
)  # fmt: skip


class Objects:
    """Lists what is between pods and their workloads; some of it comes late."""

    def __init__(self) -> None:
        self.has_late = False

    def get(self, _resource: Any) -> Any:
        return SimpleNamespace(lister=SimpleNamespace(get=self._find))

    def _find(self, name: str, namespace: str) -> JsonObject | None:
        if name == "late" and not self.has_late:
            return None
        above = {"kind": "Deployment", "name": f"above-{name}", "uid": "x", "controller": True}
        return {"metadata": {"name": name, "namespace": namespace, "ownerReferences": [above]}}


def pod_of(number: int, made: tuple[int, int, int, str]) -> JsonObject:
    owner, template, beside, revision = made
    meta: JsonObject = {"name": f"p{number}", "namespace": "default", "uid": f"u{number}", "labels": {}}
    if revision:
        meta["labels"]["pod-template-hash"] = revision
    controller = OWNERS[owner]
    if controller is not None:
        meta["ownerReferences"] = [{**controller, "uid": f"uid-{controller['name']}", "controller": True}]
    return {"metadata": meta, "spec": {"containers": TEMPLATES[template], **BESIDE[beside]}}


def meter_of(objects: Objects) -> PodMeter:
    clock, log = VirtualClock(), EventLog(None)
    owners = Owners(cast("InformerSet", objects))
    nodes, usage = NodeMeter(clock, None, log), UsageMeter(clock, UsageProfile())
    return PodMeter(clock, nodes, owners, usage, log, lambda _pod, _why: None)


@settings(deadline=None)
@given(st.lists(st.tuples(PODS, st.booleans()), max_size=20))
def test_pods_are_counted_as_if_each_were_looked_at_by_itself(pods: list[tuple[Any, bool]]) -> None:
    objects = Objects()
    remembers, forgets = meter_of(objects), meter_of(objects)
    for number, (made, comes_late) in enumerate(pods):
        objects.has_late = objects.has_late or comes_late
        pod = pod_of(number, made)
        remembers.on_event("ADDED", None, pod)
        forgets._alike.clear()
        forgets.on_event("ADDED", None, pod)
    assert [one.span() for one in remembers.records] == [one.span() for one in forgets.records]
    assert [one.shape for one in remembers.records] == [one.shape for one in forgets.records]


def test_the_pods_of_one_controller_are_looked_at_once() -> None:
    meter = meter_of(Objects())
    for number in range(3):
        meter.on_event("ADDED", None, pod_of(number, (1, 0, 0, "1")))
    assert len(meter._alike) == 1
    assert {one.workload for one in meter.records} == {"default/Deployment/above-r"}
