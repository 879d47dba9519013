"""The real kubectl writes to the embedded server: create, apply, diff, edit, replace, patch, label, expose."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from holokube.testing.kubectl import Kubectl
from tests.clients import manifests
from tests.clients.test_kubectl import refused

GENERATORS = [
    (("deployment", "web", "--image=i:1", "--replicas=3", "--port=80"), "deployment.apps/web"),
    (("job", "once", "--image=i:1", "--", "echo", "hi"), "job.batch/once"),
    (("cronjob", "often", "--image=i:1", "--schedule=*/5 * * * *"), "cronjob.batch/often"),
    (("configmap", "settings", "--from-literal=a=b"), "configmap/settings"),
    (("secret", "generic", "token", "--from-literal=a=b"), "secret/token"),
    (("secret", "docker-registry", "pull", "--docker-server=s", "--docker-username=u", "--docker-password=p"),
     "secret/pull"),
    (("serviceaccount", "robot"), "serviceaccount/robot"),
    (("role", "reader", "--verb=get", "--resource=pods"), "role.rbac.authorization.k8s.io/reader"),
    (("rolebinding", "readers", "--role=reader", "--serviceaccount=default:robot"),
     "rolebinding.rbac.authorization.k8s.io/readers"),
    (("ingress", "door", "--class=nginx", "--rule=example.com/path=web:80"), "ingress.networking.k8s.io/door"),
    (("quota", "small", "--hard=pods=100"), "resourcequota/small"),
    (("poddisruptionbudget", "budget", "--selector=app=web", "--max-unavailable=1"),
     "poddisruptionbudget.policy/budget"),
    (("service", "clusterip", "inner", "--tcp=80:8080"), "service/inner"),
    (("service", "nodeport", "outer", "--tcp=80"), "service/outer"),
    (("service", "loadbalancer", "balanced", "--tcp=80"), "service/balanced"),
    (("service", "externalname", "far", "--external-name=far.example"), "service/far"),
]  # fmt: skip


def test_every_generator_of_create_works(kubectl: Kubectl, namespace: str) -> None:
    for arguments, created in GENERATORS:
        assert kubectl("create", *arguments) == f"{created} created\n"
    cluster_wide = [
        (("clusterrole", f"{namespace}-reader", "--verb=get", "--resource=nodes"), "clusterrole.rbac"),
        (("clusterrolebinding", f"{namespace}-readers", f"--clusterrole={namespace}-reader", "--user=me"),
         "clusterrolebinding.rbac"),
        (("priorityclass", f"{namespace}-high", "--value=1000", "--description=important"), "priorityclass"),
        (("namespace", f"{namespace}-more"), "namespace/"),
    ]  # fmt: skip
    for arguments, created in cluster_wide:
        assert kubectl("create", *arguments).startswith(created)
    token = kubectl("create", "token", "robot", "--duration=1h").strip()
    assert token.count(".") == 2
    whoami = kubectl("auth", "whoami", f"--token={token}", "-o", "json")
    # The client certificate of the kubeconfig is not used once a token is given.
    assert json.loads(whoami)["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:robot"
    assert kubectl("create", "job", "again", "--from=cronjob/often") == "job.batch/again created\n"
    assert kubectl("run", "lonely", "--image=i:1", "--labels=a=b") == "pod/lonely created\n"
    assert "already exists" in refused(kubectl.run("create", "deployment", "web", "--image=i:1"))


def test_a_generated_object_equals_its_manifest(kubectl: Kubectl) -> None:
    """kubectl sends what it generates as protobuf and what it reads from files as JSON; both must mean the same."""
    for arguments, _ in GENERATORS:
        manifest = kubectl("create", "--dry-run=client", "-o", "json", *arguments)
        sent_as_json = json.loads(kubectl("create", "-f", "-", "-o", "json", "--dry-run=server", stdin=manifest))
        sent_as_protobuf = json.loads(kubectl("create", "-o", "json", "--dry-run=server", *arguments))
        for answer in (sent_as_json, sent_as_protobuf):
            for key in ("uid", "creationTimestamp", "managedFields"):
                answer["metadata"].pop(key, None)
            for key in ("clusterIP", "clusterIPs", "ports"):
                # Addresses and node ports are drawn at random.
                answer.get("spec", {}).pop(key, None)
            _drop_generated_selectors(answer)
        assert sent_as_protobuf == sent_as_json


def _drop_generated_selectors(answer: dict[str, object]) -> None:
    """A job's selector names its own uid."""
    text = json.dumps(answer)
    if '"batch.kubernetes.io/controller-uid"' in text:
        spec = answer["spec"]
        assert isinstance(spec, dict)
        spec.pop("selector", None)
        spec["template"].pop("metadata", None)
        answer["metadata"].pop("labels", None)  # type: ignore[attr-defined]  # JSON


def test_create_validates_on_the_server(kubectl: Kubectl) -> None:
    unknown = refused(kubectl.run("create", "-f", "-", stdin=manifests.DEPLOYMENT.replace("replicas", "replica")))
    assert 'unknown field "spec.replica"' in unknown and "strict decoding error" in unknown
    warned = kubectl.run(
        "create", "--validate=warn", "-f", "-", stdin=manifests.DEPLOYMENT.replace("replicas", "replica")
    )
    assert warned.returncode == 0 and 'unknown field "spec.replica"' in warned.stderr
    bad = refused(kubectl.run("create", "-f", "-", stdin=manifests.pod("A_b", "node-1")))
    assert "Invalid value" in bad and "RFC 1123" in bad
    twice = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"1"},"data":{"a":"2"}}'
    kubectl("create", "-f", "-", "--dry-run=server", stdin=twice)
    assert "no matches for kind" in refused(
        kubectl.run("create", "-f", "-", stdin="{apiVersion: v9, kind: Unicorn, metadata: {name: x}}")
    )
    generated = "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: many-}}"
    names = {kubectl("create", "-f", "-", "-o", "name", stdin=generated) for _ in range(3)}
    assert len(names) == 3
    assert "not found" in refused(kubectl.run("create", "cm", "x", "-n", "no-such-namespace"))


def test_apply_creates_changes_and_notices_nothing_to_do(kubectl: Kubectl) -> None:
    first = manifests.DEPLOYMENT
    second = first.replace("replicas: 2", "replicas: 4").replace("web:1", "web:2").replace(", tier: front", "")
    assert kubectl("apply", "-f", "-", stdin=first) == "deployment.apps/web created\n"
    assert kubectl("apply", "-f", "-", stdin=first) == "deployment.apps/web unchanged\n"
    dry = kubectl("apply", "--dry-run=server", "-f", "-", stdin=second)
    assert dry == "deployment.apps/web configured (server dry run)\n"
    assert kubectl.json("get", "deploy", "web")["spec"]["replicas"] == 2
    assert kubectl("apply", "-f", "-", stdin=second) == "deployment.apps/web configured\n"
    found = kubectl.json("get", "deploy", "web")
    assert found["spec"]["replicas"] == 4 and found["metadata"]["generation"] == 2
    assert found["metadata"]["labels"] == {"app": "web"}
    assert found["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":2")
    assert "replicas: 4" in kubectl("apply", "view-last-applied", "deploy/web")
    kubectl("apply", "set-last-applied", "-f", "-", stdin=first)
    assert "replicas: 2" in kubectl("apply", "view-last-applied", "deploy/web")
    immutable = refused(kubectl.run("apply", "-f", "-", stdin=first.replace("{app: web}", "{app: other}")))
    assert "field is immutable" in immutable


def test_apply_prunes_what_left_the_set(kubectl: Kubectl) -> None:
    def config_map(name: str) -> str:
        return f"---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, labels: {{set: mine}}}}}}\n"

    kubectl("apply", "-f", "-", stdin=config_map("a") + config_map("b"))
    kubectl("create", "configmap", "bystander", "--from-literal=a=b")
    pruned = kubectl(
        "apply", "--prune", "-l", "set=mine", "--prune-allowlist=core/v1/ConfigMap", "-f", "-", stdin=config_map("a")
    )
    assert "configmap/b pruned" in pruned
    assert kubectl("get", "cm", "-o", "name").split() == ["configmap/a", "configmap/bystander"]


def test_server_side_apply_reports_conflicts_by_manager(kubectl: Kubectl) -> None:
    first = "{apiVersion: v1, kind: ConfigMap, metadata: {name: shared}, data: {a: '1', b: '1'}}"
    other = "{apiVersion: v1, kind: ConfigMap, metadata: {name: shared}, data: {a: '2'}}"
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", "-", stdin=first)
    conflict = refused(kubectl.run("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=other))
    assert 'conflict with "kubectl": .data.a' in conflict
    kubectl("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", stdin=other)
    found = kubectl.json("get", "cm", "shared", "--show-managed-fields")
    assert found["data"] == {"a": "2", "b": "1"}
    assert {entry["manager"] for entry in found["metadata"]["managedFields"]} == {"kubectl", "other"}
    dropped = "{apiVersion: v1, kind: ConfigMap, metadata: {name: shared}}"
    kubectl("apply", "--server-side", "-f", "-", stdin=dropped)
    assert kubectl.json("get", "cm", "shared")["data"] == {"a": "2"}
    without_a = first.replace("a: '1', ", "")
    dry = kubectl("apply", "--server-side", "--dry-run=server", "-f", "-", "-o", "json", stdin=without_a)
    assert json.loads(dry)["data"] == {"a": "2", "b": "1"}
    assert kubectl.json("get", "cm", "shared")["data"] == {"a": "2"}


def test_client_side_apply_migrates_to_server_side_apply(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=manifests.DEPLOYMENT)
    changed = manifests.DEPLOYMENT.replace("replicas: 2", "replicas: 3")
    kubectl("apply", "--server-side", "-f", "-", stdin=changed)
    assert kubectl.json("get", "deploy", "web")["spec"]["replicas"] == 3


def test_diff_tells_by_its_exit_code(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=manifests.DEPLOYMENT)
    assert kubectl.run("diff", "-f", "-", stdin=manifests.DEPLOYMENT).returncode == 0
    changed = kubectl.run("diff", "-f", "-", stdin=manifests.DEPLOYMENT.replace("web:1", "web:2"))
    assert changed.returncode == 1 and "+      - image: registry.example/web:2" in changed.stdout
    fresh = manifests.DEPLOYMENT.replace("name: web", "name: fresh")
    assert kubectl.run("diff", "-f", "-", stdin=fresh).returncode == 1
    broken = kubectl.run("diff", "-f", "-", stdin=manifests.DEPLOYMENT.replace("replicas: 2", "replicas: -1"))
    assert broken.returncode > 1 and "must be greater than or equal to 0" in broken.stderr
    server_side = kubectl.run("diff", "--server-side", "-f", "-", stdin=manifests.DEPLOYMENT)
    assert server_side.returncode in (0, 1)


def test_edit_sends_back_what_the_editor_made_of_it(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("create", "configmap", "settings", "--from-literal=a=before")
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/before/after/' \"$1\"\n")
    editor.chmod(0o755)
    kubectl.environment |= {"KUBE_EDITOR": str(editor)}
    assert "edited" in kubectl("edit", "configmap", "settings")
    assert kubectl.json("get", "cm", "settings")["data"] == {"a": "after"}
    assert "no changes" in (kubectl.run("edit", "configmap", "settings").stderr.lower())
    editor.write_text("#!/bin/sh\nsed -i 's/name: web/name: web2/; s/replicas: 2/replicas: -2/' \"$1\"\n")
    kubectl("apply", "-f", "-", stdin=manifests.DEPLOYMENT)
    assert kubectl.run("edit", "deployment", "web").returncode != 0


def test_replace_needs_the_current_version(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "settings", "--from-literal=a=1")
    old = kubectl("get", "cm", "settings", "-o", "json")
    kubectl("replace", "-f", "-", stdin=old.replace('"a": "1"', '"a": "2"'))
    stale = refused(kubectl.run("replace", "-f", "-", stdin=old.replace('"a": "1"', '"a": "3"')))
    assert "the object has been modified" in stale
    assert "deleted" in kubectl("replace", "--force", "-f", "-", stdin=old)
    assert kubectl.json("get", "cm", "settings")["data"] == {"a": "1"}
    assert "not found" in refused(kubectl.run("replace", "-f", "-", stdin=manifests.DEPLOYMENT))


def test_patch_takes_three_types_and_subresources(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=manifests.DEPLOYMENT)
    strategic = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1"}]}}}}'
    assert kubectl("patch", "deploy", "web", "-p", strategic) == "deployment.apps/web patched\n"
    assert "no change" in kubectl("patch", "deploy", "web", "-p", strategic)
    containers = kubectl.json("get", "deploy", "web")["spec"]["template"]["spec"]["containers"]
    assert sorted(c["name"] for c in containers) == ["side", "web"]
    kubectl("patch", "deploy", "web", "--type=merge", "-p", '{"metadata":{"annotations":{"a":"b"}}}')
    kubectl("patch", "deploy", "web", "--type=json", "-p", '[{"op":"replace","path":"/spec/replicas","value":7}]')
    tested = '[{"op":"test","path":"/spec/replicas","value":1},{"op":"remove","path":"/spec/replicas"}]'
    assert refused(kubectl.run("patch", "deploy", "web", "--type=json", "-p", tested))
    kubectl(
        "patch", "deploy", "web", "--subresource=status", "--type=merge",
        "-p", '{"status":{"replicas":7,"observedGeneration":3},"spec":{"replicas":1}}',
    )  # fmt: skip
    kubectl("patch", "deploy", "web", "--subresource=scale", "--type=merge", "-p", '{"spec":{"replicas":9}}')
    found = kubectl.json("get", "deploy", "web")
    assert found["spec"]["replicas"] == 9 and found["status"]["replicas"] == 7
    assert found["metadata"]["annotations"]["a"] == "b"
    assert kubectl.json("get", "deploy", "web", "--subresource=scale")["spec"]["replicas"] == 9
    assert kubectl("patch", "deploy", "web", "-p", '{"spec":{"paused":true}}', "--dry-run=server")
    assert "paused" not in kubectl.json("get", "deploy", "web")["spec"]
    assert "is invalid" in refused(kubectl.run("patch", "deploy", "web", "-p", '{"spec":{"replicas":"many"}}'))
    assert "not found" in refused(kubectl.run("patch", "deploy", "none", "-p", "{}"))


def test_labels_annotations_and_set_change_one_thing(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=manifests.DEPLOYMENT)
    assert "labeled" in kubectl("label", "deploy", "web", "color=blue")
    assert "already has a value" in refused(kubectl.run("label", "deploy", "web", "color=red"))
    kubectl("label", "deploy", "web", "color=red", "--overwrite")
    kubectl("label", "deploy", "--all", "tier-")
    kubectl("annotate", "deploy", "-l", "app=web", "note=hello")
    assert "color=red" in kubectl("label", "deploy", "web", "--list")
    kubectl("set", "image", "deploy/web", "web=registry.example/web:9")
    kubectl("set", "env", "deploy/web", "MODE=test")
    kubectl("set", "resources", "deploy", "web", "--limits=cpu=200m")
    kubectl("set", "serviceaccount", "deploy", "web", "robot")
    kubectl("create", "service", "clusterip", "web", "--tcp=80")
    kubectl("set", "selector", "service", "web", "app=other")
    found = kubectl.json("get", "deploy", "web")
    assert found["metadata"]["labels"] == {"app": "web", "color": "red"}
    assert found["metadata"]["annotations"]["note"] == "hello"
    spec = found["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == "robot"
    container = spec["containers"][0]
    assert (container["image"], container["env"], container["resources"]["limits"]) == (
        "registry.example/web:9", [{"name": "MODE", "value": "test"}], {"cpu": "200m"},
    )  # fmt: skip
    assert "must be no more than 63" in refused(kubectl.run("label", "deploy", "web", "x=" + "y" * 64))


def test_expose_autoscale_and_scale_find_the_workload(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=manifests.DEPLOYMENT)
    assert "exposed" in kubectl("expose", "deploy", "web", "--port=80", "--target-port=8080", "--name=door")
    service = kubectl.json("get", "svc", "door")
    assert service["spec"]["selector"] == {"app": "web"} and service["spec"]["clusterIP"].startswith("10.96.")
    kubectl("autoscale", "deploy", "web", "--min=2", "--max=6", "--cpu=70%", "--name=auto")
    old = kubectl.json("get", "horizontalpodautoscalers.v1.autoscaling", "auto")
    assert old["spec"]["targetCPUUtilizationPercentage"] == 70
    assert kubectl.json("get", "hpa", "auto")["spec"]["metrics"][0]["resource"]["name"] == "cpu"
    assert kubectl("scale", "deploy", "web", "--replicas=5", "--current-replicas=2") == "deployment.apps/web scaled\n"
    assert "Expected replicas to be 2" in refused(
        kubectl.run("scale", "deploy", "web", "--replicas=1", "--current-replicas=2")
    )
    kubectl("apply", "-f", "-", stdin=manifests.STATEFUL_SET)
    kubectl("scale", "statefulset/db", "deployment/web", "--replicas=1")
    assert [kubectl.json("get", kind)["items"][0]["spec"]["replicas"] for kind in ("deploy", "sts")] == [1, 1]


def test_kustomize_folders_are_applied_and_deleted(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "deployment.yaml").write_text(manifests.DEPLOYMENT)
    kustomization = {
        "resources": ["deployment.yaml"],
        "namePrefix": "pre-",
        "configMapGenerator": [{"name": "settings", "literals": ["a=b"]}],
    }
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    assert "pre-web" in kubectl("kustomize", str(tmp_path))
    assert "deployment.apps/pre-web created" in kubectl("apply", "-k", str(tmp_path))
    assert kubectl("get", "-k", str(tmp_path), "-o", "name").count("pre-") == 2
    assert kubectl.run("diff", "-k", str(tmp_path)).returncode == 0
    assert 'deployment.apps "pre-web"' in kubectl("delete", "-k", str(tmp_path))


@pytest.mark.parametrize("manifest", [manifests.STATEFUL_SET, manifests.DAEMON_SET, manifests.CLAIM])
def test_other_manifests_round_trip_through_apply(kubectl: Kubectl, manifest: str) -> None:
    kubectl("apply", "-f", "-", stdin=manifest)
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=manifest)
    before = json.loads(kubectl("get", "-f", "-", "-o", "json", stdin=manifest))["items"][0]
    live = kubectl("get", "-f", "-", "-o", "yaml", stdin=manifest)
    # A whole List: kubectl checks it against the server's types by itself before it sends the parts.
    assert "configured" in kubectl("apply", "-f", "-", stdin=live)
    after = json.loads(kubectl("get", "-f", "-", "-o", "json", stdin=manifest))["items"][0]
    assert after["spec"] == before["spec"]
    assert after["metadata"].get("generation") == before["metadata"].get("generation")
    wrong = live.replace("  spec:", "  spec:\n    nonsense: 1", 1)
    assert "nonsense" in refused(kubectl.run("apply", "-f", "-", stdin=wrong))
