"""The real kubectl operates the embedded server: rollouts, nodes, deletion, waiting, logs, access."""

from __future__ import annotations

import json
import subprocess
import threading
import time

from holokube.testing.kubectl import Kubectl
from tests.clients import manifests
from tests.clients.conftest import Embedded
from tests.clients.test_kubectl import refused


def replica_set(name: str, revision: int, image: str, owner: str) -> str:
    """What the deployment controller would have made; there is none here."""
    return json.dumps(
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "labels": {"app": "web", "pod-template-hash": name},
                "annotations": {"deployment.kubernetes.io/revision": str(revision)},
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner, "controller": True}
                ],
            },
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "web", "pod-template-hash": name}},
                "template": {
                    "metadata": {"labels": {"app": "web", "pod-template-hash": name}},
                    "spec": {"containers": [{"name": "web", "image": image}]},
                },
            },
        }
    )


def test_rollouts_are_paused_resumed_restarted_and_undone(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=manifests.DEPLOYMENT)
    assert "paused" in kubectl("rollout", "pause", "deploy/web")
    assert kubectl.json("get", "deploy", "web")["spec"]["paused"] is True
    assert "already paused" in refused(kubectl.run("rollout", "pause", "deploy/web"))
    assert "resumed" in kubectl("rollout", "resume", "deploy/web")
    assert "restarted" in kubectl("rollout", "restart", "deploy/web")
    template = kubectl.json("get", "deploy", "web")["spec"]["template"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
    assert "no rollout history found" in refused(kubectl.run("rollout", "undo", "deploy/web"))
    uid = kubectl("get", "deploy", "web", "-o", "jsonpath={.metadata.uid}")
    for revision in (1, 2):
        kubectl("create", "-f", "-", stdin=replica_set(f"web-{revision}", revision, f"web:v{revision}", uid))
    kubectl("annotate", "deploy", "web", "deployment.kubernetes.io/revision=2")
    assert kubectl("rollout", "history", "deploy/web").count("<none>") == 2
    assert "web:v1" in kubectl("rollout", "history", "deploy/web", "--revision=1")
    assert "rolled back" in kubectl("rollout", "undo", "deploy/web", "--to-revision=1")
    assert kubectl.json("get", "deploy", "web")["spec"]["template"]["spec"]["containers"][0]["image"] == "web:v1"


def test_rollout_status_follows_the_status(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=manifests.DEPLOYMENT)
    waiting = kubectl.run("rollout", "status", "deploy/web", "--timeout=1s")
    assert waiting.returncode != 0 and "Waiting for deployment" in waiting.stdout
    status = {
        "observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
    }  # fmt: skip

    def finish() -> None:
        time.sleep(0.3)
        kubectl(
            "patch", "deploy", "web", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status})
        )

    finisher = threading.Thread(target=finish)
    finisher.start()
    assert "successfully rolled out" in kubectl("rollout", "status", "deploy/web", "--timeout=20s")
    finisher.join()
    for manifest, status in (
        (manifests.DAEMON_SET, {"observedGeneration": 1}),
        (manifests.STATEFUL_SET, {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1,
                                  "currentRevision": "a", "updateRevision": "a"}),
    ):  # fmt: skip
        target = kubectl("apply", "-f", "-", "-o", "name", stdin=manifest).strip()
        full = json.dumps({"status": {"replicas": 0, **status}})
        kubectl("patch", target, "--subresource=status", "--type=merge", "-p", full)
        shown = kubectl("rollout", "status", target, "--timeout=10s")
        assert "successfully rolled out" in shown or "roll out complete" in shown


def test_nodes_are_tainted_cordoned_and_drained(kubectl: Kubectl, namespace: str) -> None:
    node = f"node-{namespace}"
    kubectl("create", "-f", "-", stdin=manifests.node(node))
    assert "tainted" in kubectl("taint", "node", node, "dedicated=lab:NoSchedule")
    assert "already has" in refused(kubectl.run("taint", "node", node, "dedicated=lab:NoSchedule"))
    assert "untainted" in kubectl("taint", "node", node, "dedicated:NoSchedule-")
    assert "cordoned" in kubectl("cordon", node)
    assert "SchedulingDisabled" in kubectl("get", "node", node)
    assert "uncordoned" in kubectl("uncordon", node)
    uid = kubectl("create", "deployment", "owner", "--image=i", "-o", "jsonpath={.metadata.uid}")
    owned = json.loads(kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", stdin=manifests.pod("a", node)))
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "owner", "uid": uid, "controller": True}
    owned["metadata"]["ownerReferences"] = [owner]
    kubectl("create", "-f", "-", stdin=json.dumps(owned))
    kubectl("create", "-f", "-", stdin=manifests.pod("lonely", node))
    assert "declare no controller" in refused(kubectl.run("drain", node))
    kubectl("delete", "pod", "lonely", "--force")
    kubectl("create", "pdb", "budget", "--selector=app=a", "--min-available=1")
    running = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
    kubectl("patch", "pod", "a", "--subresource=status", "--type=merge", "-p", running)
    counts = '"currentHealthy":1,"desiredHealthy":1,"expectedPods":1'
    budget = f'{{"status":{{"observedGeneration":1,"disruptionsAllowed":0,{counts}}}}}'
    kubectl("patch", "pdb", "budget", "--subresource=status", "--type=merge", "-p", budget)
    held = kubectl.run("drain", node, "--timeout=2s")
    assert held.returncode != 0 and "would violate the pod's disruption budget" in held.stderr
    allowed = budget.replace('"disruptionsAllowed":0', '"disruptionsAllowed":1')
    kubectl("patch", "pdb", "budget", "--subresource=status", "--type=merge", "-p", allowed)
    drained = kubectl.run("drain", node, "--grace-period=0", "--timeout=20s")
    assert "evicting pod" in drained.stderr + drained.stdout and f"node/{node} drained" in drained.stdout
    assert kubectl("get", "pods", "-o", "name") == ""
    kubectl("delete", "node", node)


def test_pods_leave_after_their_grace_period(kubectl: Kubectl, namespace: str) -> None:
    for name in ("slow", "now", "force"):
        kubectl("create", "-f", "-", stdin=manifests.pod(name, "some-node"))
    kubectl("delete", "pod", "slow", "--wait=false", "--grace-period=60")
    leaving = kubectl.json("get", "pod", "slow")["metadata"]
    assert leaving["deletionGracePeriodSeconds"] == 60 and "deletionTimestamp" in leaving
    assert "Terminating" in kubectl("get", "pod", "slow")
    assert kubectl.run("delete", "pod", "slow", "--timeout=1s").returncode != 0
    assert "force deleted" in kubectl("delete", "pod", "slow", "--grace-period=0", "--force")
    kubectl("delete", "pod", "now", "--now", "--wait=false")
    assert kubectl.json("get", "pod", "now")["metadata"]["deletionGracePeriodSeconds"] == 1
    kubectl("delete", "pods", "--all", "--force")
    assert kubectl("get", "pods", "-o", "name") == ""


def test_delete_takes_names_files_selectors_and_all(kubectl: Kubectl) -> None:
    for name, color in (("a", "red"), ("b", "blue"), ("c", "blue"), ("d", "green")):
        kubectl("create", "configmap", name, f"--from-literal=color={color}")
        kubectl("label", "configmap", name, f"color={color}")
    assert "dry run" in kubectl("delete", "cm", "a", "--dry-run=server")
    assert "deleted" in kubectl("delete", "cm", "a")
    assert kubectl("delete", "cm", "-l", "color=blue").count("deleted") == 2
    assert kubectl("delete", "cm", "--field-selector", "metadata.name=d", "-o", "name") == "configmap/d\n"
    assert "not found" in refused(kubectl.run("delete", "cm", "a"))
    assert kubectl("delete", "cm", "a", "--ignore-not-found") == ""
    kubectl("apply", "-f", "-", stdin=manifests.DEPLOYMENT)
    assert "deleted" in kubectl("delete", "-f", "-", stdin=manifests.DEPLOYMENT)
    for policy, finalizers in (("foreground", ["foregroundDeletion"]), ("orphan", ["orphan"])):
        kubectl("apply", "-f", "-", stdin=manifests.DEPLOYMENT)
        kubectl("delete", "deploy", "web", f"--cascade={policy}", "--wait=false")
        assert kubectl.json("get", "deploy", "web")["metadata"]["finalizers"] == finalizers
        kubectl("patch", "deploy", "web", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        assert kubectl("get", "deploy", "-o", "name") == ""
    kubectl("create", "configmap", "held", "--from-literal=a=b")
    kubectl("patch", "cm", "held", "--type=merge", "-p", '{"metadata":{"finalizers":["example.com/hold"]}}')
    assert kubectl.run("delete", "cm", "held", "--timeout=1s").returncode != 0
    release = threading.Timer(
        0.3, kubectl, ["patch", "cm", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}']
    )
    release.start()
    kubectl("wait", "cm/held", "--for=delete", "--timeout=20s")
    release.join()
    kubectl("create", "configmap", "last", "--from-literal=a=b")
    kubectl("delete", "cm", "--all")
    assert kubectl("get", "cm", "-o", "name") == ""


def test_wait_sees_conditions_fields_and_creation(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=manifests.pod("one", "some-node"))
    assert "timed out" in refused(kubectl.run("wait", "pod/one", "--for=condition=Ready", "--timeout=1s"))
    ready = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
    later = threading.Timer(
        0.3, kubectl, ["patch", "pod", "one", "--subresource=status", "--type=merge", "-p", ready]
    )
    later.start()
    assert "condition met" in kubectl("wait", "pod/one", "--for=condition=Ready", "--timeout=20s")
    later.join()
    assert "condition met" in kubectl("wait", "pods", "--all", "--for=jsonpath={.status.phase}=Running", "--timeout=5s")
    creation = threading.Timer(0.3, kubectl, ["create", "configmap", "late", "--from-literal=a=b"])
    creation.start()
    assert "condition met" in kubectl("wait", "cm/late", "--for=create", "--timeout=20s")
    creation.join()


def test_logs_say_that_the_container_is_hollow(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=manifests.pod("one", "some-node"))
    assert "hollow" in kubectl("logs", "one", "-c", "side") and "hollow" in kubectl("logs", "one")
    assert kubectl("logs", "one", "--all-containers", "--prefix").count("[pod/one/") >= 2
    assert kubectl("logs", "one", "-c", "main", "--tail=1").count("\n") == 1
    assert "is not valid for pod one" in refused(kubectl.run("logs", "one", "-c", "none"))
    assert kubectl("logs", "-l", "app=one", "-c", "main")
    assert "not found" in refused(kubectl.run("logs", "nobody"))


def test_what_needs_a_container_is_refused_with_a_reason(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=manifests.pod("one", "some-node"))
    running = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
    kubectl("patch", "pod", "one", "--subresource=status", "--type=merge", "-p", running)
    for command in (
        ("exec", "one", "-c", "main", "--", "ls"),
        ("attach", "one", "-c", "main"),
        ("cp", "one:/etc/hosts", "/dev/null", "-c", "main"),
        ("port-forward", "pod/one", ":80"),
    ):
        assert "hollow" in refused(kubectl.run(*command)), command


def test_top_says_that_there_are_no_metrics(kubectl: Kubectl) -> None:
    for what in ("nodes", "pods"):
        assert "Metrics API not available" in refused(kubectl.run("top", what))


def test_access_reviews_answer(kubectl: Kubectl, namespace: str, embedded: Embedded) -> None:
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
    assert "*.*" in kubectl("auth", "can-i", "--list")
    assert "system:masters" in kubectl("auth", "whoami")
    by_token = kubectl.run("auth", "whoami", f"--token={embedded.endpoint.token}")
    assert by_token.returncode == 0 and "holokube-admin" in by_token.stdout
    assert "must be logged in" in refused(kubectl.run("get", "pods", "--token=wrong"))
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r", "namespace": namespace},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    }  # fmt: skip
    assert "reconciled" in kubectl("auth", "reconcile", "-f", "-", stdin=json.dumps(role))


def test_namespaces_are_deleted_with_what_they_hold(kubectl: Kubectl, namespace: str) -> None:
    other = f"{namespace}-gone"
    kubectl("create", "namespace", other)
    kubectl("create", "configmap", "x", "-n", other)
    kubectl("delete", "namespace", other, "--wait=false")
    shown = kubectl.run("get", "namespace", other, "--ignore-not-found", "-o", "jsonpath={.status.phase}")
    assert shown.stdout in ("", "Terminating")
    if shown.stdout:
        # Emptying a namespace is a controller's work, and there is none here.
        assert "is being terminated" in refused(kubectl.run("create", "configmap", "y", "-n", other))


def test_output_is_machine_readable_everywhere(kubectl: Kubectl) -> None:
    result: subprocess.CompletedProcess[str] = kubectl.run("plugin", "list")
    assert "unable to find any kubectl plugins" in result.stderr
    dumped = kubectl("cluster-info", "dump", "-o", "json")
    assert "NodeList" in dumped and "PodList" in dumped
    assert json.loads(kubectl("version", "-o", "json"))["serverVersion"]["major"] == "1"
    assert "kube-system" in kubectl("get", "ns", "-o", "name")
    assert kubectl("options") and kubectl("config", "view", "--minify", "-o", "jsonpath={..namespace}")
