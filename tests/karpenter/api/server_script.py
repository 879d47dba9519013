"""What kubectl must see of Karpenter's objects, on whatever server."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

from holokube.base.clock import WallClock
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import CUSTOM_RESOURCE_DEFINITIONS
from holokube.karpenter.api.install import SPEC_HASH, definitions, install
from holokube.karpenter.api.node_claim import NodeClaim
from holokube.karpenter.api.node_pool import NodePool
from holokube.kube.types import JsonObject
from holokube.testing.kubectl import Kubectl
from tests.karpenter.api import pools

NODE_CLASS = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}


def use(kubeconfig: Path, work: Any) -> Any:
    """Run an async function with a client, over HTTP."""

    async def main() -> Any:
        async with Client(HttpTransport(WallClock(), load_access(str(kubeconfig)))) as client:
            return await work(client)

    return asyncio.run(main())


def kubeconfig_of(kubectl: Kubectl) -> Path:
    return Path(kubectl.environment["KUBECONFIG"])


def install_definitions(kubectl: Kubectl) -> None:
    use(kubeconfig_of(kubectl), lambda client: install(WallClock(), client))


def remove_definitions(kubectl: Kubectl) -> None:
    kubectl("delete", "crd", *(one["metadata"]["name"] for one in definitions()))


def installing_again_writes_only_what_changed(kubectl: Kubectl) -> None:
    name = "nodepools.karpenter.sh"

    async def again(client: Client) -> list[str]:
        return await install(WallClock(), client)

    async def with_annotations(client: Client, annotations: dict[str, str | None]) -> None:
        await client.patch(CUSTOM_RESOURCE_DEFINITIONS, name, {"metadata": {"annotations": annotations}})

    config = kubeconfig_of(kubectl)
    assert use(config, again) == []
    use(config, lambda client: with_annotations(client, {SPEC_HASH: "of an older version"}))
    assert use(config, again) == [name]
    use(config, lambda client: with_annotations(client, {SPEC_HASH: None}))
    assert use(config, again) == [], "a definition of somebody else stays as it is"
    use(config, lambda client: with_annotations(client, {SPEC_HASH: "of an older version"}))
    assert use(config, again) == [name]


def apply(kubectl: Kubectl, obj: JsonObject | str) -> None:
    kubectl("apply", "-f", "-", stdin=obj if isinstance(obj, str) else json.dumps(obj))


def a_pool_with_everything_comes_back_as_it_went_in(kubectl: Kubectl) -> None:
    apply(kubectl, pools.WITH_EVERYTHING)
    found = kubectl.json("get", "nodepool", "with-everything")
    written = pools.yaml_of(pools.WITH_EVERYTHING)
    assert found["spec"] == written["spec"]
    pool = NodePool.of(found)
    assert pool.weight == 10 and pool.consolidate_after_s == 60 and len(pool.budgets) == 3
    assert pool.hash == NodePool.of(written).hash
    kubectl("delete", "nodepool", "with-everything")


def defaults_are_filled_in(kubectl: Kubectl) -> None:
    apply(kubectl, pools.node_pool("bare"))
    bare = kubectl.json("get", "nodepool", "bare")["spec"]
    assert bare["disruption"] == {
        "consolidateAfter": "0s",
        "consolidationPolicy": "WhenEmptyOrUnderutilized",
        "budgets": [{"nodes": "10%"}],
    }
    assert bare["template"]["spec"]["expireAfter"] == "720h"
    apply(kubectl, pools.node_pool("part", spec={"disruption": {"budgets": [{"reasons": ["Empty"]}]}}))
    part = kubectl.json("get", "nodepool", "part")["spec"]["disruption"]
    assert part["budgets"] == [{"reasons": ["Empty"], "nodes": "10%"}]
    assert part["consolidateAfter"] == "0s" and part["consolidationPolicy"] == "WhenEmptyOrUnderutilized"
    # Defaults that the readings assume are those that the server writes.
    written, read = NodePool.of(pools.node_pool("bare")), NodePool.of(kubectl.json("get", "nodepool", "bare"))
    for name in ("budgets", "consolidation_policy", "consolidate_after_s", "expire_after_s", "hash"):
        assert getattr(written, name) == getattr(read, name), name
    kubectl("delete", "nodepool", "bare", "part")


def a_node_class_is_ready_at_once(kubectl: Kubectl) -> None:
    apply(kubectl, {**NODE_CLASS, "spec": {"nodeRegistrationDelay": "30s"}})
    found = kubectl.json("get", "kwoknc", "default")
    assert [(c["type"], c["status"]) for c in found["status"]["conditions"]] == [("Ready", "True")]
    kubectl("delete", "kwokncs", "default")


def a_delay_of_a_node_class_is_a_duration(kubectl: Kubectl) -> None:
    wrong = {**NODE_CLASS, "spec": {"nodeRegistrationDelay": "soon"}}
    refused = kubectl.run("apply", "-f", "-", stdin=json.dumps(wrong))
    assert refused.returncode != 0 and "should match" in refused.stderr


def attempts(kubectl: Kubectl) -> dict[str, str]:
    """What the server says to each pool, by its case: nothing, if it takes it. One kubectl asks for all."""
    cases = [case[0] for case in pools.REFUSED] + [case[0] for case in pools.ACCEPTED]
    tried = [case[1] for case in pools.REFUSED] + [case[1] for case in pools.ACCEPTED]
    assert len(set(cases)) == len(cases)
    named = [{**pool, "metadata": {"name": f"case-{number}"}} for number, pool in enumerate(tried)]
    text = "\n---\n".join(map(json.dumps, named))
    result = kubectl.run("create", "--dry-run=server", "-f", "-", stdin=text)
    said: dict[str, str] = dict.fromkeys(cases, "no word")
    for line in result.stdout.splitlines():
        taken = re.fullmatch(r"nodepool\.karpenter\.sh/case-(\d+) created \(server dry run\)", line)
        assert taken, line
        said[cases[int(taken[1])]] = ""
    current = ""
    for line in result.stderr.splitlines(keepends=True):
        # The other lines of an answer with several causes do not name the object again.
        about = re.search(r'NodePool(?:\.karpenter\.sh)? "case-(\d+)" is invalid', line)
        if about:
            current = cases[int(about[1])]
            said[current] = ""
        said[current] += line
    return said


def what_cannot_change_stays(kubectl: Kubectl) -> None:
    apply(kubectl, pools.node_pool("fixed"))
    for patch, words in (
        ({"spec": {"replicas": 3}}, "Cannot transition NodePool between static"),
        ({"spec": {"template": {"spec": {"nodeClassRef": {"group": "other"}}}}}, "nodeClassRef.group is immutable"),
        ({"spec": {"template": {"spec": {"nodeClassRef": {"kind": "Other"}}}}}, "nodeClassRef.kind is immutable"),
    ):
        result = kubectl.run("patch", "nodepool", "fixed", "--type=merge", "-p", json.dumps(patch))
        assert result.returncode != 0 and words in result.stderr, (patch, result.stdout, result.stderr)
    renamed = {"spec": {"template": {"spec": {"nodeClassRef": {"name": "other"}}}, "weight": 5}}
    kubectl("patch", "nodepool", "fixed", "--type=merge", "-p", json.dumps(renamed))
    kubectl("delete", "nodepool", "fixed")


def condition(type: str, status: str = "True") -> JsonObject:
    return {"type": type, "status": status, "reason": type, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}


def pools_are_shown_in_columns(kubectl: Kubectl) -> None:
    apply(kubectl, pools.node_pool("shown", spec={"weight": 7}))
    status = {"nodes": 3, "resources": {"cpu": "12", "memory": "48Gi"}, "conditions": [condition("Ready")]}
    patch = json.dumps({"status": status})
    kubectl("patch", "nodepool", "shown", "--subresource=status", "--type=merge", "-p", patch)
    head, row = (line.split() for line in kubectl("get", "nodepools", "-o", "wide").splitlines())
    assert head == ["NAME", "NODECLASS", "NODES", "READY", "AGE", "WEIGHT", "CPU", "MEMORY"]
    assert row[:4] == ["shown", "default", "3", "True"] and row[5:] == ["7", "12", "48Gi"]
    assert kubectl("get", "nodepools").splitlines()[0].split() == ["NAME", "NODECLASS", "NODES", "READY", "AGE"]
    assert "shown" in kubectl("get", "karpenter", "-o", "name")
    kubectl("delete", "nodepool", "shown")


def claims_are_shown_in_columns_and_cannot_change(kubectl: Kubectl) -> None:
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": "default-x7k2p",
            "labels": {
                "karpenter.sh/nodepool": "default",
                "node.kubernetes.io/instance-type": "c-2x-amd64-linux",
                "karpenter.sh/capacity-type": "spot",
                "topology.kubernetes.io/zone": "test-zone-a",
            },
        },
        "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "fast"},
            "requirements": [
                pools.requirement("karpenter.sh/nodepool", "In", "default"),
                pools.requirement("node.kubernetes.io/instance-type", "In", "c-2x-amd64-linux", minValues=1),
            ],
            "resources": {"requests": {"cpu": "1500m", "pods": "3"}},
        },
    }
    apply(kubectl, claim)
    status = {
        "nodeName": "node-1",
        "providerID": "kwok://node-1",
        "imageID": "image-1",
        "capacity": {"cpu": "2"},
        "allocatable": {"cpu": "1900m"},
        "lastPodEventTime": "2026-01-01T00:01:00Z",
        # A claim's conditions need neither reason nor message.
        "conditions": [
            condition("Launched"),
            {"type": "Drifted", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            condition("Ready"),
        ],
    }
    name = "default-x7k2p"
    kubectl("patch", "nodeclaim", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    head, row = (line.split() for line in kubectl("get", "nodeclaims", "-o", "wide").splitlines())
    assert head[:7] == ["NAME", "TYPE", "CAPACITY", "ZONE", "NODE", "READY", "AGE"]
    assert head[7:] == ["IMAGEID", "ID", "NODEPOOL", "NODECLASS", "DRIFTED"]
    assert row[:6] == [name, "c-2x-amd64-linux", "spot", "test-zone-a", "node-1", "True"]
    assert row[7:] == ["image-1", "kwok://node-1", "default", "fast", "True"]
    read = NodeClaim.of(kubectl.json("get", "nodeclaim", name))
    assert read.requests == {"cpu": 1500, "pods": 3000} and read.allocatable == {"cpu": 1900}
    assert read.is_launched and not read.is_registered and read.pool_name == "default"
    assert read.expire_after_s == 720 * 3600 and read.last_pod_event_s == 1767225660
    changed = kubectl.run("patch", "nodeclaim", name, "--type=merge", "-p", '{"spec": {"expireAfter": "1h"}}')
    assert changed.returncode != 0 and "spec is immutable" in changed.stderr
    kubectl("annotate", "nodeclaim", name, "karpenter.sh/do-not-disrupt=true")
    kubectl("delete", "nodeclaim", name)


def a_static_pool_can_be_scaled(kubectl: Kubectl) -> None:
    apply(kubectl, {**pools.static_pool(), "metadata": {"name": "fleet"}})
    kubectl("scale", "nodepool", "fleet", "--replicas=5")
    assert kubectl.json("get", "nodepool", "fleet")["spec"]["replicas"] == 5
    kubectl("delete", "nodepool", "fleet")


STEPS = (
    installing_again_writes_only_what_changed,
    a_pool_with_everything_comes_back_as_it_went_in,
    defaults_are_filled_in,
    a_node_class_is_ready_at_once,
    a_delay_of_a_node_class_is_a_duration,
    what_cannot_change_stays,
    pools_are_shown_in_columns,
    claims_are_shown_in_columns_and_cannot_change,
    a_static_pool_can_be_scaled,
)
