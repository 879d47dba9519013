from __future__ import annotations

import pytest

from holokube.apiserver.kinds.image_names import default_pull_policy
from holokube.kube.types import JsonObject
from tests.apiserver.kinds.workload_steps import create, created, decoded, kind_of, pod


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.27", "IfNotPresent"),
        ("registry.io:5000/team/app", "Always"),
        ("registry.io:5000/team/app:v1", "IfNotPresent"),
        ("nginx@sha256:" + "a" * 64, "IfNotPresent"),
        ("nginx:latest@sha256:" + "a" * 64, "Always"),
        ("nginx@sha256:abc", "IfNotPresent"),
        ("Not A Name", "IfNotPresent"),
        ("a" * 64, "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_only_the_tag_latest_is_always_pulled(image: str, policy: str) -> None:
    assert default_pull_policy(image) == policy


def test_requests_default_to_limits_in_a_pod_but_not_in_a_template() -> None:
    body = pod(resources={"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}})
    resources = decoded("pods", body)["spec"]["containers"][0]["resources"]
    assert resources["requests"] == {"cpu": "500m", "memory": "1Gi"}
    template = decoded("podtemplates", {"metadata": {"name": "t"}, "template": {"spec": body["spec"]}})
    assert template["template"]["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "500m"}


def test_pod_level_requests_are_what_the_containers_need_at_their_peak() -> None:
    body = pod(
        {
            "resources": {"limits": {"cpu": "4", "memory": "1Gi"}},
            "initContainers": [
                {
                    "name": "s",
                    "image": "x",
                    "restartPolicy": "Always",
                    "resources": {"requests": {"cpu": "100m"}},
                },
                {"name": "i", "image": "x", "resources": {"requests": {"cpu": "2"}}},
            ],
        },
        resources={"requests": {"cpu": "1"}},
    )
    assert decoded("pods", body)["spec"]["resources"]["requests"] == {"cpu": "2100m", "memory": "1Gi"}


def test_amounts_finer_than_a_thousandth_are_rounded_up() -> None:
    spec = decoded("pods", pod(resources={"requests": {"cpu": "100u", "memory": "1.5"}}))["spec"]
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1m", "memory": "1500m"}


def test_ports_of_a_pod_on_the_hosts_network_are_the_hosts_ports() -> None:
    spec = decoded("pods", pod({"hostNetwork": True}, ports=[{"containerPort": 80}]))["spec"]
    assert spec["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def test_a_negative_grace_period_becomes_one_second() -> None:
    assert (
        decoded("pods", pod({"terminationGracePeriodSeconds": -5}))["spec"]["terminationGracePeriodSeconds"]
        == 1
    )


def test_the_old_name_of_the_service_account_field_still_works() -> None:
    spec = decoded("pods", pod({"serviceAccount": "builder"}))["spec"]
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "builder"


@pytest.mark.parametrize(
    ("resources", "qos"),
    [
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
    ],
)
def test_a_new_pod_is_pending_and_knows_its_class(resources: JsonObject, qos: str) -> None:
    obj = created("pods", pod(resources=resources))
    assert obj["status"] == {"phase": "Pending", "qosClass": qos}


def test_a_gated_pod_says_that_it_is_not_scheduled() -> None:
    (condition,) = created("pods", pod({"schedulingGates": [{"name": "wait"}]}))["status"]["conditions"]
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
        "lastProbeTime": None,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def test_match_label_keys_become_requirements_with_the_pods_own_values() -> None:
    constraint = {
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["pod-template-hash", "missing"],
    }  # fmt: skip
    body = pod({"topologySpreadConstraints": [constraint]})
    body["metadata"]["labels"] = {"app": "web", "pod-template-hash": "abc"}
    (stored,) = created("pods", body)["spec"]["topologySpreadConstraints"]
    assert stored["labelSelector"]["matchExpressions"] == [
        {"key": "pod-template-hash", "operator": "In", "values": ["abc"]}
    ]


def test_an_apparmor_annotation_becomes_the_field() -> None:
    body = pod()
    body["metadata"]["annotations"] = {"container.apparmor.security.beta.kubernetes.io/c": "localhost/mine"}
    outcome = create("pods", body)
    profile = outcome.obj["spec"]["containers"][0]["securityContext"]["appArmorProfile"]
    assert profile == {"type": "Localhost", "localhostProfile": "mine"}
    assert "deprecated since v1.30" in outcome.warnings[0]


def test_fields_of_features_that_are_off_vanish() -> None:
    body = pod(
        {
            "schedulingGroup": {"podGroupName": "g"},
            "volumes": [
                {"name": "v", "projected": {"sources": [{"podCertificate": {"keyType": "ED25519"}}]}}
            ],
        },
        lifecycle={"stopSignal": "SIGTERM"},
    )
    spec = created("pods", body)["spec"]
    assert "schedulingGroup" not in spec
    assert "lifecycle" not in spec["containers"][0]
    assert spec["volumes"][0]["projected"]["sources"] == [{}]


@pytest.mark.parametrize(
    ("node", "phase", "requested_s", "grace_s"),
    [
        ("", "Pending", None, 0),
        ("", "Pending", 60, 0),
        ("n1", "Running", None, 20),
        ("n1", "Running", 5, 5),
        ("n1", "Running", 0, 0),
        ("n1", "Running", -1, 1),
        ("n1", "Succeeded", None, 0),
        ("n1", "Failed", 60, 0),
    ],
)
def test_only_a_bound_pod_that_may_still_run_lingers(
    node: str, phase: str, requested_s: int | None, grace_s: int
) -> None:
    obj = {"spec": {"nodeName": node, "terminationGracePeriodSeconds": 20}, "status": {"phase": phase}}
    assert kind_of("pods").grace_period_s(obj, requested_s) == grace_s


def test_pods_can_be_selected_by_these_fields() -> None:
    kind = kind_of("pods")
    obj = created("pods", pod({"nodeName": "n1", "hostNetwork": True}))
    obj["status"]["podIPs"] = [{"ip": "10.0.0.1"}]
    values = kind.field_values(obj)
    assert values["spec.nodeName"] == values["spec.host"] == "n1"
    assert values["spec.hostNetwork"] == "true"
    assert values["status.phase"] == "Pending"
    assert values["status.podIP"] == "10.0.0.1"
    assert values["status.nominatedNodeName"] == ""
    assert set(values) < kind.field_labels


def test_a_variable_that_hides_another_gets_a_warning() -> None:
    env = [
        {"name": "PATH", "value": "a"},
        {"name": "PATH", "value": "$(PATH):b"},
        {"name": "PATH", "value": "c"},
    ]
    (warning,) = create("pods", pod(env=env)).warnings
    assert warning.startswith('spec.containers[0].env[2]: hides previous definition of "PATH"')


def test_a_variable_that_only_repeats_another_gets_a_warning() -> None:
    assert len(create("pods", pod(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)"}])).warnings) == 1
