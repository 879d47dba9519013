"""Node-specific sizing in the hands of kubectl, as a script for any cluster with hollow nodes of three sizes."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from holokube.kube.sizing import ORIGINAL_ANNOTATION, PREFIX, STATUS_ANNOTATION
from holokube.testing.kubectl import Kubectl
from tests.acceptance.script import eventually

WAIT = "--timeout=60s"
SIZES = {"small": ("4", "16Gi"), "mid": ("16", "64Gi"), "large": ("96", "384Gi")}
READY = "registered at"


def node(name: str) -> str:
    cpu, memory = SIZES[name]
    amounts = {"cpu": cpu, "memory": memory, "pods": "110"}
    meta = {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    status = {"capacity": amounts, "allocatable": amounts}
    return json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status})


def daemon_set(name: str, **annotations: str) -> str:
    """A DaemonSet with two containers and annotations for all four fractions, or those given."""
    chosen = annotations or {
        f"{kind}_{resource}_fraction": "0.1" for kind in ("request", "limit") for resource in ("cpu", "memory")
    }
    containers = [
        {
            "name": container, "image": "registry.example/agent:1",
            "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"cpu": cpu, "memory": "1Gi"}},
        }
        for container, cpu in (("a", "1"), ("b", "3"))
    ]  # fmt: skip
    template = {
        "metadata": {
            "labels": {"app": name, PREFIX + "enabled": "true"},
            "annotations": {PREFIX + key.replace("_", "-"): text for key, text in chosen.items()},
        },
        "spec": {"terminationGracePeriodSeconds": 0, "containers": containers},
    }
    return json.dumps({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    })  # fmt: skip


class Webhook:
    """A running ``holokube node-sizing``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.said: list[str] = []
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._ready.wait(timeout=30), f"the webhook did not get ready: {self.said}"

    def _read(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.said.append(line)
            if READY in line:
                self._ready.set()

    def stop(self) -> None:
        self._process.terminate()
        code = self._process.wait(timeout=30)
        self._reader.join(timeout=10)
        assert code == 0, "".join(self.said)


@contextmanager
def webhook(kubeconfig: Path, *options: str) -> Iterator[Webhook]:
    """A webhook on this machine, reached by URL; gone at the end, whatever happens."""
    command = [
        sys.executable, "-m", "holokube", "node-sizing", "--url=https://127.0.0.1:0/mutate", "--listen=127.0.0.1:0",
        f"--kubeconfig={kubeconfig}", "--drain=0s", *options,
    ]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        running = Webhook(process)
        yield running
        running.stop()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        assert process.stderr is not None
        process.stderr.close()


def pods_of(kubectl: Kubectl, name: str) -> dict[str, Any]:
    """The pods of a DaemonSet that stay, by node."""
    pods = kubectl.json("get", "pods", "-l", f"app={name}")["items"]
    return {pod["spec"].get("nodeName"): pod for pod in pods if "deletionTimestamp" not in pod["metadata"]}


def tunables(pod: Any, field: str, resource: str) -> list[str]:
    return [container["resources"][field][resource] for container in pod["spec"]["containers"]]


def running(kubectl: Kubectl, name: str) -> dict[str, Any]:
    """The pods of a DaemonSet when it has rolled out."""
    kubectl("rollout", "status", f"daemonset/{name}", WAIT)
    return pods_of(kubectl, name)


def three_sizes_of_nodes_give_three_sizes_of_pods(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=daemon_set("agent"))
    pods = running(kubectl, "agent")
    assert {name: tunables(pod, "requests", "cpu") for name, pod in pods.items()} == {
        "small": ["100m", "300m"], "mid": ["400m", "1200m"], "large": ["2400m", "7200m"],
    }  # fmt: skip
    assert {name: tunables(pod, "limits", "cpu") for name, pod in pods.items()} == {
        "small": ["100m", "300m"], "mid": ["400m", "1200m"], "large": ["2400m", "7200m"],
    }  # fmt: skip
    # A tenth of 16Gi, in bytes that add up.
    assert tunables(pods["small"], "requests", "memory") == ["858993459", "858993459"]
    status = json.loads(pods["mid"]["metadata"]["annotations"][STATUS_ANNOTATION])
    assert status["node"] == "mid" and status["requests"]["cpu"] == "1600m"
    assert json.loads(pods["mid"]["metadata"]["annotations"][ORIGINAL_ANNOTATION])["containers"].keys() == {"a", "b"}
    kubectl("delete", "daemonset", "agent", WAIT)


def excluded_containers_keep_theirs(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=daemon_set("partly", request_cpu_fraction="0.5", exclude_containers="a"))
    pods = running(kubectl, "partly")
    assert tunables(pods["mid"], "requests", "cpu") == ["1", "7"]
    assert tunables(pods["large"], "requests", "cpu") == ["1", "47"]
    # Its limit was 3 and is raised to the request.
    assert tunables(pods["large"], "limits", "cpu") == ["1", "47"]
    assert tunables(pods["small"], "requests", "cpu") == ["1", "1"]
    kubectl("delete", "daemonset", "partly", WAIT)


def a_bad_annotation_warns_and_tells_and_blocks_nothing(kubectl: Kubectl) -> None:
    bad = daemon_set("bad", request_cpu_fraction="10%")
    applied = kubectl.run("apply", "-f", "-", stdin=bad)
    assert applied.returncode == 0
    assert "Warning: pods will not be sized" in applied.stderr and "request-cpu-fraction" in applied.stderr
    assert 'such as "0.1"' in applied.stderr
    pods = running(kubectl, "bad")
    assert len(pods) == 3 and tunables(pods["mid"], "requests", "cpu") == ["1", "3"]
    events = eventually(
        lambda: kubectl.json("get", "events", "--field-selector=involvedObject.name=bad,reason=NodeSizingFailed"),
        lambda listed: bool(listed["items"]),
    )["items"]
    assert events[0]["involvedObject"]["kind"] == "DaemonSet" and events[0]["type"] == "Warning"
    assert "request-cpu-fraction" in events[0]["message"]
    kubectl("delete", "daemonset", "bad", WAIT)


def a_pod_by_hand_is_warned_about(kubectl: Kubectl) -> None:
    made = kubectl.run(
        "run", "lonely", "--image=registry.example/agent:1", f"--labels={PREFIX}enabled=true",
        f"--annotations={PREFIX}request-cpu-fraction=0.1",
    )  # fmt: skip
    assert made.returncode == 0 and "Warning: pod not sized" in made.stderr
    kubectl("delete", "pod", "lonely", "--force", "--grace-period=0")


def a_dry_run_is_sized_and_leaves_nothing(kubectl: Kubectl) -> None:
    template = json.loads(daemon_set("dry"))["spec"]["template"]
    spec = {**template["spec"], "nodeName": "mid"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**template["metadata"], "name": "dry"}, "spec": spec}
    made = json.loads(kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=json.dumps(pod)))
    assert tunables(made, "requests", "cpu") == ["400m", "1200m"]


def without_the_webhook_nothing_is_blocked(kubectl: Kubectl) -> None:
    """Its configuration is still there; nobody listens."""
    assert kubectl.json("get", "mutatingwebhookconfiguration", "holokube-node-sizing")["webhooks"]
    kubectl("apply", "-f", "-", stdin=daemon_set("orphan"))
    pods = running(kubectl, "orphan")
    assert len(pods) == 3 and tunables(pods["mid"], "requests", "cpu") == ["1", "3"]
    kubectl("delete", "daemonset", "orphan", WAIT)


def running_pods_follow_their_node_and_their_annotations(kubectl: Kubectl) -> None:
    """With --resize-running."""
    kubectl("apply", "-f", "-", stdin=daemon_set("elastic"))
    before = running(kubectl, "elastic")
    grown = {"status": {"allocatable": {"cpu": "32", "memory": "64Gi", "pods": "110"}}}
    kubectl("patch", "node", "mid", "--subresource=status", "--type=merge", "-p", json.dumps(grown))
    after = eventually(
        lambda: pods_of(kubectl, "elastic"),
        lambda pods: tunables(pods["mid"], "requests", "cpu") == ["800m", "2400m"],
    )
    assert after["mid"]["metadata"]["uid"] == before["mid"]["metadata"]["uid"]
    assert after["small"]["spec"] == before["small"]["spec"]
    # The kubelet has done it as well, without a restart.
    done = eventually(
        lambda: pods_of(kubectl, "elastic")["mid"]["status"]["containerStatuses"],
        lambda statuses: {one["resources"]["requests"]["cpu"] for one in statuses} == {"800m", "2400m"},
    )
    assert [one["restartCount"] for one in done] == [0, 0]
    small = after["small"]["metadata"]["name"]
    chosen = [f"{PREFIX}{kind}-cpu-fraction=0.2" for kind in ("request", "limit")]
    kubectl("annotate", "--overwrite", "pod", small, *chosen)
    eventually(
        lambda: pods_of(kubectl, "elastic")["small"],
        lambda pod: tunables(pod, "requests", "cpu") == ["200m", "600m"]
        and json.loads(pod["metadata"]["annotations"][STATUS_ANNOTATION])["requests"]["cpu"] == "800m",
    )
    back = {"status": {"allocatable": {"cpu": "16", "memory": "64Gi", "pods": "110"}}}
    kubectl("patch", "node", "mid", "--subresource=status", "--type=merge", "-p", json.dumps(back))
    eventually(
        lambda: pods_of(kubectl, "elastic"), lambda pods: tunables(pods["mid"], "requests", "cpu") == ["400m", "1200m"]
    )
    kubectl("delete", "daemonset", "elastic", WAIT)


def a_node_that_joins_later_gets_its_size_too(kubectl: Kubectl) -> None:
    """The controller makes its pod the moment it sees the node, maybe before the webhook does."""
    kubectl("apply", "-f", "-", stdin=daemon_set("welcome"))
    running(kubectl, "welcome")
    for number in range(5):
        late = json.loads(node("mid"))
        late["metadata"]["name"] = f"late-{number}"
        kubectl("create", "-f", "-", stdin=json.dumps(late))
    pods = eventually(
        lambda: kubectl.json("get", "pods", "-l", "app=welcome")["items"], lambda found: len(found) == 3 + 5
    )
    late_pods = [pod for pod in pods if "late-" in json.dumps(pod["spec"]["affinity"])]
    assert [tunables(pod, "requests", "cpu") for pod in late_pods] == [["400m", "1200m"]] * 5
    kubectl("delete", "daemonset", "welcome", WAIT)
    kubectl("delete", "node", *(f"late-{number}" for number in range(5)))


def told_to_deny_it_refuses(kubectl: Kubectl) -> None:
    """With --on-error=deny."""
    template = json.loads(daemon_set("x", request_cpu_fraction="10%"))["spec"]["template"]
    spec = {**template["spec"], "nodeName": "mid"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {**template["metadata"], "name": "x"}, "spec": spec}
    refused = kubectl.run("create", "-f", "-", stdin=json.dumps(pod))
    assert refused.returncode == 1 and "denied the request" in refused.stderr
    assert "request-cpu-fraction" in refused.stderr and 'such as "0.1"' in refused.stderr


STEPS: tuple[Callable[[Kubectl], None], ...] = (
    three_sizes_of_nodes_give_three_sizes_of_pods,
    excluded_containers_keep_theirs,
    a_bad_annotation_warns_and_tells_and_blocks_nothing,
    a_pod_by_hand_is_warned_about,
    a_dry_run_is_sized_and_leaves_nothing,
    running_pods_follow_their_node_and_their_annotations,
    a_node_that_joins_later_gets_its_size_too,
)
"""Whatever can be seen with a webhook that runs with --resize-running."""
