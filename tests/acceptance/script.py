"""What people do with kubectl in a cluster that lives, as a script that runs against any cluster with hollow nodes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from holokube.testing.kubectl import Kubectl

WAIT = "--timeout=300s"
"""Far longer than it takes: how fast a real control plane rolls a thousand pods is up to the machine."""

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: web, image: "registry.example/web:1", resources: {requests: {cpu: 100m, memory: 64Mi}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  maxUnavailable: 1
  selector: {matchLabels: {app: web}}
"""

DAEMON_SET = """
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  updateStrategy: {rollingUpdate: {maxUnavailable: 50%}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: agent, image: "registry.example/agent:1"}]
"""

STATEFUL_SET = """
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: db, image: "registry.example/db:1"}]
"""

JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: batch}
spec:
  completions: 5
  parallelism: 3
  completionMode: Indexed
  template:
    metadata: {annotations: {holokube.dev/run-time: 1s}}
    spec:
      restartPolicy: Never
      containers: [{name: batch, image: "registry.example/batch:1"}]
"""

FAILING_JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: doomed}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {holokube.dev/run-time: 1s, holokube.dev/exit-code: "3"}}
    spec:
      restartPolicy: Never
      containers: [{name: doomed, image: "registry.example/doomed:1"}]
"""


def eventually(look: Callable[[], Any], wanted: Callable[[Any], bool], *, seconds: float = 60.0) -> Any:
    """What ``look`` sees, as soon as it is as wanted; fails with what it saw last."""
    deadline = time.monotonic() + seconds
    while not wanted(seen := look()):
        assert time.monotonic() < deadline, f"still: {seen}"
        time.sleep(0.2)
    return seen


def a_deployment_runs_rolls_and_goes_back(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", WAIT)
    pods = kubectl.json("get", "pods", "-l", "app=web")["items"]
    assert len(pods) == 6
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    assert len({pod["status"]["podIP"] for pod in pods}) == 6
    kubectl("set", "image", "deployment/web", "web=registry.example/web:2")
    kubectl("rollout", "status", "deployment/web", WAIT)
    assert images(kubectl, "app=web") == {"registry.example/web:2"}
    assert kubectl("rollout", "history", "deployment/web").split()[-4:] == ["1", "<none>", "2", "<none>"]
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", WAIT)
    assert images(kubectl, "app=web") == {"registry.example/web:1"}
    kubectl("scale", "deployment/web", "--replicas=4")
    kubectl("wait", "deployment/web", "--for=jsonpath={.status.replicas}=4", WAIT)


def staying(kubectl: Kubectl, selector: str) -> list[dict[str, Any]]:
    """The pods that are not on their way out."""
    pods = kubectl.json("get", "pods", "-l", selector)["items"]
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def images(kubectl: Kubectl, selector: str) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in staying(kubectl, selector)}


def a_pod(kubectl: Kubectl) -> dict[str, Any]:
    """One of the deployment."""
    return staying(kubectl, "app=web")[0]


def a_daemon_set_runs_on_every_node_and_rolls(kubectl: Kubectl) -> None:
    nodes = len(kubectl.json("get", "nodes")["items"])
    kubectl("apply", "-f", "-", stdin=DAEMON_SET)
    kubectl("rollout", "status", "daemonset/agent", WAIT)
    pods = kubectl.json("get", "pods", "-l", "app=agent")["items"]
    assert len({pod["spec"]["nodeName"] for pod in pods}) == nodes
    kubectl("set", "image", "daemonset/agent", "agent=registry.example/agent:2")
    kubectl("rollout", "status", "daemonset/agent", WAIT)
    assert images(kubectl, "app=agent") == {"registry.example/agent:2"}


def a_stateful_set_starts_in_order_and_rolls(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=STATEFUL_SET)
    kubectl("rollout", "status", "statefulset/db", WAIT)
    pods = {pod["metadata"]["name"]: pod for pod in kubectl.json("get", "pods", "-l", "app=db")["items"]}
    assert sorted(pods) == ["db-0", "db-1", "db-2"]
    starts = [pods[name]["metadata"]["creationTimestamp"] for name in sorted(pods)]
    assert starts == sorted(starts)
    kubectl("set", "image", "statefulset/db", "db=registry.example/db:2")
    kubectl("rollout", "status", "statefulset/db", WAIT)
    assert images(kubectl, "app=db") == {"registry.example/db:2"}


def jobs_complete_and_fail(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=JOB)
    kubectl("apply", "-f", "-", stdin=FAILING_JOB)
    kubectl("wait", "job/batch", "--for=condition=complete", WAIT)
    status = kubectl.json("get", "job", "batch")["status"]
    assert (status["succeeded"], status["completedIndexes"]) == (5, "0-4")
    kubectl("wait", "job/doomed", "--for=condition=failed", WAIT)
    pods = kubectl.json("get", "pods", "-l", "job-name=doomed")["items"]
    assert [pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for pod in pods] == [3]


def a_node_is_drained_and_comes_back(kubectl: Kubectl) -> None:
    """After the deployment of before: one of its pods at a time may be away."""
    node = a_pod(kubectl)["spec"]["nodeName"]
    kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", WAIT)
    left = kubectl.json("get", "pods", f"--field-selector=spec.nodeName={node}")["items"]
    owners = {pod["metadata"]["ownerReferences"][0]["kind"] for pod in left if pod["status"]["phase"] == "Running"}
    assert owners <= {"DaemonSet"}
    kubectl("rollout", "status", "deployment/web", WAIT)
    kubectl("uncordon", node)
    assert "SchedulingDisabled" not in kubectl("get", "node", node)


def everything_goes(kubectl: Kubectl) -> None:
    kubectl("delete", "deployment,daemonset,statefulset,job,pdb,service", "--all", WAIT)
    eventually(lambda: kubectl.json("get", "pods")["items"], lambda pods: not pods)


def a_user_sees_what_happens(kubectl: Kubectl) -> None:
    """Words that people look for in describe and events."""
    pod = a_pod(kubectl)["metadata"]["name"]
    assert "PodReadyToStartContainers" in kubectl("describe", "pod", pod)
    eventually(
        lambda: kubectl("describe", "pod", pod),
        lambda text: f"Successfully assigned default/{pod} to " in text,
    )
    kubectl("run", "huge", "--image=i", "--overrides", HUGE)
    nodes = len(kubectl.json("get", "nodes")["items"])
    text = eventually(
        lambda: kubectl("describe", "pod", "huge"), lambda text: "FailedScheduling" in text
    )
    assert f"0/{nodes} nodes are available: {nodes} Insufficient cpu." in text
    kubectl("delete", "pod", "huge")


def logs_come_from_the_hollow_kubelet(kubectl: Kubectl) -> None:
    found = a_pod(kubectl)
    text = kubectl("logs", found["metadata"]["name"])
    assert text.startswith(f"hollow container web (registry.example/web:1) started on node {found['spec']['nodeName']}")
    refused = kubectl.run("exec", found["metadata"]["name"], "--", "ls")
    assert refused.returncode != 0
    assert "hollow" in refused.stderr


HUGE = (
    '{"spec": {"containers": [{"name": "huge", "image": "i", "resources": {"requests": {"cpu": "100000"}}}]}}'
)

STEPS: tuple[Callable[[Kubectl], None], ...] = (
    a_deployment_runs_rolls_and_goes_back,
    a_user_sees_what_happens,
    logs_come_from_the_hollow_kubelet,
    a_daemon_set_runs_on_every_node_and_rolls,
    a_stateful_set_starts_in_order_and_rolls,
    jobs_complete_and_fail,
    a_node_is_drained_and_comes_back,
    everything_goes,
)
