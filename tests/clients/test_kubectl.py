"""The real kubectl reads from the embedded server: discovery, get in all its forms, explain, describe."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest
import yaml

from holokube.testing.kubectl import Kubectl
from tests.clients import manifests
from tests.clients.conftest import Embedded


def refused(result: subprocess.CompletedProcess[str]) -> str:
    """What kubectl said when it failed; fails the test if it did not."""
    assert result.returncode != 0, result.stdout
    return result.stderr


def test_kubectl_learns_what_the_server_offers(kubectl: Kubectl) -> None:
    assert "Server Version: v1." in kubectl("version")
    versions = kubectl("api-versions").split()
    assert {"v1", "apps/v1", "batch/v1", "autoscaling/v2", "policy/v1", "events.k8s.io/v1"} <= set(versions)
    wide = kubectl("api-resources", "-o", "wide")
    for name, short in (("pods", "po"), ("nodes", "no"), ("deployments", "deploy"), ("leases", "")):
        row = next(line.split() for line in wide.splitlines() if line.startswith(f"{name} "))
        assert (not short or row[1] == short) and "watch" in row[-1] + row[-2]
    namespaced = kubectl("api-resources", "--namespaced=false", "-o", "name").split()
    assert "nodes" in namespaced and "pods" not in namespaced
    assert "deployments.apps" in kubectl("api-resources", "--api-group=apps", "-o", "name").split()
    assert "control plane" in kubectl("cluster-info")
    assert kubectl("get", "--raw", "/healthz") == "ok"
    assert "[+]ping ok" in kubectl("get", "--raw", "/readyz?verbose")
    assert json.loads(kubectl("get", "--raw", "/apis/apps/v1"))["kind"] == "APIResourceList"
    assert "apiserver_request_total" in kubectl("get", "--raw", "/metrics")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("pods", "spec\t<PodSpec>"),
        ("pod.spec.containers.resources.limits", "map[string]Quantity"),
        ("deployments.spec.strategy.rollingUpdate", "maxSurge\t<IntOrString>"),
        ("nodes.status", "allocatable"),
        ("cronjobs.spec.jobTemplate.spec", "backoffLimit"),
        ("pdb.spec", "minAvailable"),
        ("hpa.spec.metrics", "averageUtilization|containerResource"),
        ("crd.spec.versions", "openAPIV3Schema|schema"),
    ],
)
def test_explain_names_fields_and_types(kubectl: Kubectl, path: str, expected: str) -> None:
    shown = kubectl("explain", path)
    assert any(text in shown for text in expected.split("|")), shown


def test_explain_walks_whole_types_and_other_versions(kubectl: Kubectl) -> None:
    whole = kubectl("explain", "deployment", "--recursive")
    assert "terminationGracePeriodSeconds" in whole and whole.count("\n") > 300
    assert "targetCPUUtilizationPercentage" in kubectl("explain", "hpa.spec", "--api-version=autoscaling/v1")
    assert "does not exist" in refused(kubectl.run("explain", "pods.spec.nothing"))


@pytest.fixture
def web(kubectl: Kubectl) -> Kubectl:
    """A namespace with a deployment, two services and a config map."""
    services = "".join(
        f"---\n{{apiVersion: v1, kind: Service, metadata: {{name: svc-{n}, labels: {{number: '{n}'}}}}, "
        f"spec: {{ports: [{{port: {80 + n}}}], selector: {{app: web}}}}}}\n"
        for n in (2, 1)
    )
    kubectl("apply", "-f", "-", stdin=manifests.DEPLOYMENT + services)
    kubectl("create", "configmap", "settings", "--from-literal=a=1")
    return kubectl


def test_get_prints_every_output_format(web: Kubectl, namespace: str) -> None:
    assert web("get", "deploy").split("\n")[0].split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert "registry.example/web:1" in web("get", "deploy", "-o", "wide")
    assert web("get", "deploy", "-o", "name") == "deployment.apps/web\n"
    assert web.json("get", "deploy", "web")["spec"]["replicas"] == 2
    assert yaml.safe_load(web("get", "deploy", "web", "-o", "yaml"))["kind"] == "Deployment"
    assert web("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers[*].image}") == (
        "registry.example/web:1"
    )
    template = '{{range .items}}{{.metadata.name}};{{end}}'
    assert web("get", "svc", "-o", f"go-template={template}") == "svc-1;svc-2;"
    columns = web("get", "svc", "-o", "custom-columns=NAME:.metadata.name,PORT:.spec.ports[0].port", "--no-headers")
    assert [line.split() for line in columns.splitlines()] == [["svc-1", "81"], ["svc-2", "82"]]
    assert "app=web,tier=front" in web("get", "deploy", "--show-labels")
    assert "front" in web("get", "deploy", "-L", "tier")
    assert web("get", "deploy", "web", "-o", "json", "--show-managed-fields").count('"managedFields"') == 1
    assert "managedFields" not in web("get", "deploy", "web", "-o", "json")
    assert "deployment.apps/web" in web("get", "deploy", "--show-kind")
    everywhere = web("get", "deploy", "-A")
    assert namespace in everywhere and everywhere.startswith("NAMESPACE")
    several = web("get", "deploy/web", "svc/svc-1", "-o", "name").split()
    assert several == ["deployment.apps/web", "service/svc-1"]
    assert "service/svc-1" in web("get", "all")
    kyaml = web("get", "deploy", "web", "-o", "kyaml")
    assert yaml.safe_load(kyaml)["kind"] == "Deployment"


def test_get_selects_sorts_and_pages(web: Kubectl) -> None:
    assert web("get", "svc", "-l", "number=1", "-o", "name") == "service/svc-1\n"
    assert web("get", "svc", "-l", "number in (1,2),!gone", "-o", "name").count("service/") == 2
    assert web("get", "svc", "--field-selector", "metadata.name!=svc-1", "-o", "name") == "service/svc-2\n"
    by_port = web("get", "svc", "--sort-by=.spec.ports[0].port", "-o", "name").split()
    assert by_port == ["service/svc-1", "service/svc-2"]
    by_age = web("get", "svc", "--sort-by=.metadata.resourceVersion", "-o", "name").split()
    assert by_age == ["service/svc-2", "service/svc-1"]
    assert web("get", "svc", "--chunk-size=1", "-o", "name").count("service/") == 2
    assert "field label not supported" in refused(web.run("get", "svc", "--field-selector", "spec.nothing=1"))
    assert "unable to parse requirement" in refused(web.run("get", "svc", "-l", "a in b"))


def test_get_says_what_is_missing(kubectl: Kubectl, namespace: str) -> None:
    assert 'pods "none" not found' in refused(kubectl.run("get", "pod", "none"))
    assert kubectl("get", "pod", "none", "--ignore-not-found") == ""
    assert f"No resources found in {namespace} namespace" in kubectl.run("get", "pods").stderr
    assert "doesn't have a resource type" in refused(kubectl.run("get", "unicorns"))
    assert "NotFound" in refused(kubectl.run("get", "--raw", "/api/v1/unicorns"))


def test_watch_shows_changes_as_they_come(web: Kubectl) -> None:
    watcher = subprocess.Popen(
        [web.program, "get", "configmap", "settings", "-w", "-o", "jsonpath={.data.a}{\"\\n\"}"],
        env=web.environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert watcher.stdout is not None
    try:
        assert watcher.stdout.readline() == "1\n"
        web("patch", "configmap", "settings", "-p", '{"data":{"a":"2"}}')
        assert watcher.stdout.readline() == "2\n"
    finally:
        watcher.kill()
        watcher.communicate()
    table = web("get", "svc", "--watch", "--request-timeout=1s", "--output-watch-events")
    assert table.split("\n")[0].split()[0] == "EVENT" and table.count("ADDED") == 2
    assert "svc-2" in web("get", "svc", "--watch-only=false", "-o", "wide")


def test_describe_tells_the_story_of_each_kind(web: Kubectl, namespace: str, embedded: Embedded) -> None:
    node = f"node-{namespace}"
    web("create", "-f", "-", stdin=manifests.node(node))
    web("create", "-f", "-", stdin=manifests.pod("one", node))
    web("create", "-f", "-", stdin=manifests.CLAIM)
    web("create", "job", "once", "--image=registry.example/job:1", "--", "true")
    web("create", "cronjob", "often", "--image=registry.example/job:1", "--schedule=*/5 * * * *")
    web("autoscale", "deployment", "web", "--min=1", "--max=5", "--cpu=80%")
    web("create", "quota", "small", "--hard=pods=10,cpu=4")
    web("create", "pdb", "budget", "--selector=app=web", "--min-available=50%")
    web("create", "ingress", "door", "--rule=example.com/path=svc-1:81")
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "one.1"}, "type": "Warning",
        "reason": "FailedScheduling", "message": "no node fits",
        "involvedObject": {"kind": "Pod", "name": "one", "namespace": namespace, "apiVersion": "v1",
                           "uid": web("get", "pod", "one", "-o", "jsonpath={.metadata.uid}")},
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z", "count": 3,
    }  # fmt: skip
    web("create", "-f", "-", stdin=json.dumps(event))
    told = {
        f"node/{node}": ("KubeletReady", f"{namespace}", "Allocated resources", "one"),
        "pod/one": (f"Node:             {node}", "registry.example/side:1", "FailedScheduling", "BestEffort"),
        "deployment/web": ("25% max unavailable", "2 desired", "registry.example/web:1"),
        "service/svc-1": ("81/TCP", "app=web", "10.96."),
        f"namespace/{namespace}": ("Active", "small"),
        "pvc/data": ("Pending", "slow"),
        "job/once": ("registry.example/job:1", "0 Active"),
        "cronjob/often": ("*/5 * * * *", "registry.example/job:1"),
        "hpa/web": ("Deployment/web", "80%", "Max replicas"),
        "quota/small": ("Resource", "Used"),
        "pdb/budget": ("50%", "app=web"),
        "ingress/door": ("example.com", "/path", "svc-1:81"),
        "configmap/settings": ("a:", "1"),
        "serviceaccount/default": ("Image pull secrets",),
        "priorityclass/system-node-critical": ("2000001000",),
    }
    for target, texts in told.items():
        shown = web("describe", target)
        for text in texts:
            assert text in shown, f"{text!r} is not in the description of {target}:\n{shown}"
    assert "FailedScheduling" in web("events", "--for", "pod/one")
    assert "FailedScheduling" in web("get", "events", "--field-selector", "involvedObject.name=one")
    assert "no node fits" in web("get", "events.events.k8s.io")
    assert "FailedScheduling" not in web("events", "--types=Normal")
    assert "2 desired" in web("describe", "deploy", "-l", "tier=front")


def test_custom_resources_are_first_class(kubectl_in: Callable[[str], Kubectl], namespace: str) -> None:
    kubectl = kubectl_in(namespace)
    group = f"{namespace}.example.com"
    widget = f"apiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: w}}\nspec: {{size: 3}}\n"
    try:
        kubectl("apply", "-f", "-", stdin=manifests.widgets(group))
        kubectl("wait", f"crd/widgets.{group}", "--for=condition=Established", "--timeout=10s")
        assert f"widgets.{group}" in kubectl("api-resources", f"--api-group={group}", "-o", "name")
        kubectl("apply", "-f", "-", stdin=widget)
        assert kubectl("get", f"widgets.{group}").split() == ["NAME", "SIZE", "w", "3"]
        assert kubectl.json("get", f"widget.{group}", "w")["spec"]["color"] == "red"
        assert "How big the widget is" in kubectl("explain", "widgets.spec", f"--api-version={group}/v1")
        kubectl("scale", f"widgets.{group}/w", "--replicas=7")
        kubectl("patch", f"widgets.{group}", "w", "--type=merge", "-p", '{"spec":{"color":"blue"}}')
        kubectl(
            "patch", f"widgets.{group}", "w", "--type=merge", "--subresource=status", "-p", '{"status":{"phase":"On"}}'
        )
        found = kubectl.json("get", f"widgets.{group}", "w")
        assert (found["spec"], found["status"]["phase"]) == ({"size": 7, "color": "blue"}, "On")
        wrong = refused(kubectl.run("apply", "-f", "-", stdin=widget.replace("size: 3", "size: 0, color: green")))
        assert "should be greater than or equal to 1" in wrong and "supported values" in wrong
        assert "unknown field" in refused(
            kubectl.run("apply", "-f", "-", stdin=widget.replace("size: 3", "size: 3, shape: round"))
        )
        assert "conflict with" in refused(kubectl.run("apply", "--server-side", "-f", "-", stdin=widget))
        kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=widget)
    finally:
        kubectl("delete", "crd", f"widgets.{group}", "--ignore-not-found")
    assert "doesn't have a resource type" in refused(kubectl.run("get", f"widgets.{group}"))
