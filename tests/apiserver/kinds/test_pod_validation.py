"""Which pods are refused, and for which field. Reasons and fields are those of kube-apiserver 1.36.3."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.kube.types import JsonObject
from tests.apiserver.kinds.workload_steps import create, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HTTP = {"httpGet": {"port": 80}}
C = "spec.containers[0]"

BAD_CONTAINERS: list[tuple[str, JsonObject, list[tuple[str, str]]]] = [
    ("no name", {"name": ""}, [("Required", f"{C}.name")]),
    ("a name with dots", {"name": "a.b"}, [("Invalid", f"{C}.name")]),
    ("no image", {"image": ""}, [("Required", f"{C}.image")]),
    ("spaces around the image", {"image": " nginx"}, [("Invalid", f"{C}.image")]),
    ("an unknown pull policy", {"imagePullPolicy": "Sometimes"}, [("NotSupported", f"{C}.imagePullPolicy")]),
    (
        "a port out of range",
        {"ports": [{"containerPort": 70000}]},
        [("Invalid", f"{C}.ports[0].containerPort")],
    ),
    ("no port number", {"ports": [{"name": "web"}]}, [("Required", f"{C}.ports[0].containerPort")]),
    (
        "two ports of one name",
        {"ports": [{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]},
        [("Duplicate", f"{C}.ports[1].name")],
    ),
    (
        "one host port twice",
        {"ports": [{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]},
        [("Duplicate", f"{C}.ports[1].hostPort")],
    ),
    ("a variable without name", {"env": [{"value": "x"}]}, [("Required", f"{C}.env[0].name")]),
    ("a variable name with =", {"env": [{"name": "a=b"}]}, [("Invalid", f"{C}.env[0].name")]),
    ("a variable name beyond ASCII", {"env": [{"name": "größe"}]}, [("Invalid", f"{C}.env[0].name")]),
    (
        "a value from nowhere",
        {"env": [{"name": "a", "valueFrom": {}}]},
        [("Invalid", f"{C}.env[0].valueFrom")],
    ),
    (
        "labels as a variable",
        {"env": [{"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}]},
        [("NotSupported", f"{C}.env[0].valueFrom.fieldRef.fieldPath")],
    ),
    ("variables from nowhere", {"envFrom": [{}]}, [("Invalid", f"{C}.envFrom")]),
    (
        "more requested than allowed",
        {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}},
        [("Invalid", f"{C}.resources.requests")],
    ),
    (
        "a negative request",
        {"resources": {"requests": {"cpu": "-1"}}},
        [("Invalid", f"{C}.resources.requests[cpu]")],
    ),
    (
        "an unknown resource",
        {"resources": {"requests": {"gpu": "1"}}},
        [("Invalid", f"{C}.resources.requests[gpu]"), ("Invalid", f"{C}.resources.requests[gpu]")],
    ),
    (
        "devices without a limit",
        {"resources": {"requests": {"nvidia.com/gpu": "1"}}},
        [("Required", f"{C}.resources.limits")],
    ),
    (
        "half a device",
        {"resources": {"limits": {"nvidia.com/gpu": "500m"}}},
        [
            ("Invalid", f"{C}.resources.limits[nvidia.com/gpu]"),
            ("Invalid", f"{C}.resources.requests[nvidia.com/gpu]"),
        ],
    ),
    (
        "huge pages alone",
        {"resources": {"limits": {"hugepages-2Mi": "2Mi"}}},
        [("Forbidden", f"{C}.resources")],
    ),
    (
        "a claim that the pod does not have",
        {"resources": {"claims": [{"name": "gpu"}]}},
        [("NotFound", f"{C}.resources.claims[0]")],
    ),
    (
        "a volume that is not there",
        {"volumeMounts": [{"name": "data", "mountPath": "/data"}]},
        [("NotFound", f"{C}.volumeMounts[0].name")],
    ),
    ("a probe that does nothing", {"livenessProbe": {}}, [("Required", f"{C}.livenessProbe")]),
    (
        "a probe that does two things",
        {"livenessProbe": {**HTTP, "tcpSocket": {"port": 1}}},
        [("Forbidden", f"{C}.livenessProbe.tcpSocket")],
    ),
    (
        "two successes for liveness",
        {"livenessProbe": {**HTTP, "successThreshold": 2}},
        [("Invalid", f"{C}.livenessProbe.successThreshold")],
    ),
    (
        "a grace period for readiness",
        {"readinessProbe": {**HTTP, "terminationGracePeriodSeconds": 5}},
        [("Invalid", f"{C}.readinessProbe.terminationGracePeriodSeconds")],
    ),
    (
        "a longer sleep than the grace period",
        {"lifecycle": {"preStop": {"sleep": {"seconds": 31}}}},
        [("Invalid", f"{C}.lifecycle.preStop.sleep")],
    ),
    (
        "privileged without escalation",
        {"securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
        [("Invalid", f"{C}.securityContext")],
    ),
    (
        "a restart rule without policy",
        {"restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]},
        [("Required", f"{C}.restartPolicy")],
    ),
]

SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
BAD_SPECS: list[tuple[str, JsonObject, list[tuple[str, str]]]] = [
    ("no containers", {"containers": []}, [("Required", "spec.containers")]),
    ("an unknown restart policy", {"restartPolicy": "Maybe"}, [("NotSupported", "spec.restartPolicy")]),
    ("an unknown DNS policy", {"dnsPolicy": "Mine"}, [("NotSupported", "spec.dnsPolicy")]),
    ("DNS without servers", {"dnsPolicy": "None"}, [("Required", "spec.dnsConfig")]),
    ("a deadline of zero", {"activeDeadlineSeconds": 0}, [("Invalid", "spec.activeDeadlineSeconds")]),
    ("a host name with dots", {"hostname": "a.b"}, [("Invalid", "spec.hostname")]),
    ("a selector that is no label", {"nodeSelector": {"a b": "c"}}, [("Invalid", "spec.nodeSelector")]),
    (
        "two volumes of one name",
        {"volumes": [{"name": "v"}, {"name": "v"}]},
        [("Duplicate", "spec.volumes[1].name")],
    ),
    (
        "a volume of two kinds",
        {"volumes": [{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}]},
        [("Forbidden", "spec.volumes[0].secret")],
    ),
    (
        "a path that leaves the host's folder",
        {"volumes": [{"name": "v", "hostPath": {"path": "/a/../b"}}]},
        [("Invalid", "spec.volumes[0].hostPath.path")],
    ),
    (
        "a SCSI unit out of range",
        {"volumes": [{"name": "v", "iscsi": {"targetPortal": "p", "iqn": "eui.0123456789abcdef", "lun": 256}}]},
        [("Invalid", "spec.volumes[0].iscsi.lun")],
    ),
    (
        "a token for five minutes",
        {"volumes": [{"name": "v", "projected": {"sources": [
            {"serviceAccountToken": {"path": "t", "expirationSeconds": 300}}]}}]},
        [("Invalid", "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds")],
    ),
    (
        "a toleration of nothing",
        {"tolerations": [{"value": "x"}]},
        [("Invalid", "spec.tolerations[0].operator")],
    ),
    (
        "seconds for NoSchedule",
        {"tolerations": [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]},
        [("Invalid", "spec.tolerations[0].effect")],
    ),
    (
        "comparing tolerations, an alpha feature",
        {"tolerations": [{"key": "a", "operator": "Lt", "value": "5"}]},
        [("NotSupported", "spec.tolerations[0].operator")],
    ),
    (
        "affinity to no term",
        {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}},
        [("Required", f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms")],
    ),
    (
        "pod affinity without topology",
        {"affinity": {"podAffinity": {REQUIRED: [{"topologyKey": ""}]}}},
        [
            ("Invalid", f"spec.affinity.podAffinity.{REQUIRED}[0].topologyKey"),
            ("Invalid", f"spec.affinity.podAffinity.{REQUIRED}[0].topologyKey"),
            ("Required", f"spec.affinity.podAffinity.{REQUIRED}[0].topologyKey"),
        ],
    ),
    (
        "a skew of zero",
        {"topologySpreadConstraints": [{**SPREAD, "maxSkew": 0}]},
        [("Invalid", "spec.topologySpreadConstraints[0].maxSkew")],
    ),
    (
        "one constraint twice",
        {"topologySpreadConstraints": [SPREAD, SPREAD]},
        [("Duplicate", "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}")],
    ),
    (
        "domains for a soft constraint",
        {"topologySpreadConstraints": [{**SPREAD, "whenUnsatisfiable": "ScheduleAnyway", "minDomains": 2}]},
        [("Invalid", "spec.topologySpreadConstraints[0].minDomains")],
    ),
    (
        "a node for a gated pod",
        {"schedulingGates": [{"name": "wait"}], "nodeName": "n1"},
        [("Forbidden", "spec.nodeName")],
    ),
    ("an unknown system", {"os": {"name": "plan9"}}, [("NotSupported", "spec.os")]),
    (
        "a Linux user on Windows",
        {"os": {"name": "windows"}, "securityContext": {"runAsUser": 1}},
        [("Forbidden", "spec.securityContext.runAsUser")],
    ),
    (
        "an init container with a probe",
        {"initContainers": [{"name": "i", "image": "x", "livenessProbe": HTTP}]},
        [("Forbidden", "spec.initContainers[0].livenessProbe")],
    ),
    (
        "an init container of the same name",
        {"initContainers": [{"name": "c", "image": "x"}]},
        [("Duplicate", "spec.initContainers[0].name")],
    ),
    (
        "ephemeral containers from the start",
        {"ephemeralContainers": [{"name": "debug", "image": "x"}]},
        [("Forbidden", "spec.ephemeralContainers")],
    ),
    (
        "less for the pod than for its containers",
        {"resources": {"requests": {"cpu": "1"}},
         "containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "2"}}}]},
        [("Invalid", "spec.resources.requests[cpu]")],
    ),
    (
        "host processes beside ordinary ones",
        {"hostUsers": False, "hostPID": True},
        [("Forbidden", "spec.HostPID")],
    ),
    (
        "a host alias without address",
        {"hostAliases": [{"hostnames": ["a"]}]},
        [("Invalid", "spec.hostAliases[0].ip")],
    ),
    (
        "a claim from nowhere",
        {"resourceClaims": [{"name": "gpu"}]},
        [("Invalid", "spec.resourceClaims[0]")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("container", "fields"), [c[1:] for c in BAD_CONTAINERS], ids=[c[0] for c in BAD_CONTAINERS]
)
def test_a_container_is_refused_with(container: JsonObject, fields: list[tuple[str, str]]) -> None:
    assert create("pods", pod(**container)).fields == fields


@pytest.mark.parametrize(("spec", "fields"), [c[1:] for c in BAD_SPECS], ids=[c[0] for c in BAD_SPECS])
def test_a_pod_is_refused_with(spec: JsonObject, fields: list[tuple[str, str]]) -> None:
    assert create("pods", pod(spec)).fields == fields


def test_the_messages_are_upstreams() -> None:
    outcome = create("pods", pod(resources={"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}))
    message = 'Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi'
    assert outcome.causes == [("FieldValueInvalid", "spec.containers[0].resources.requests", message)]


GOOD_SPECS: list[tuple[str, JsonObject]] = [
    ("a sidecar with a probe", {"initContainers": [
        {"name": "s", "image": "x", "restartPolicy": "Always", "startupProbe": HTTP}]}),
    ("a sleep for the whole grace period", {"containers": [
        {"name": "c", "image": "x", "lifecycle": {"preStop": {"sleep": {"seconds": 30}}}}]}),
    ("a search path with underscores", {"dnsConfig": {"searches": ["a_b.example.com.", "."]}}),
    ("huge pages with cpu", {"containers": [
        {"name": "c", "image": "x", "resources": {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1"}}}]}),
    ("an env file", {"volumes": [{"name": "v"}], "containers": [{"name": "c", "image": "x", "env": [
        {"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "f", "key": "K"}}}]}]}),
    ("unmasked proc in a user namespace", {"hostUsers": False, "containers": [
        {"name": "c", "image": "x", "securityContext": {"procMount": "Unmasked"}}]}),
]  # fmt: skip


@pytest.mark.parametrize("spec", [c[1] for c in GOOD_SPECS], ids=[c[0] for c in GOOD_SPECS])
def test_a_pod_is_accepted_with(spec: JsonObject) -> None:
    assert create("pods", pod(spec)).causes == []


@pytest.mark.parametrize(
    ("annotations", "field"),
    [
        ({"kubernetes.io/config.mirror": "x"}, "metadata.annotations[kubernetes.io/config.mirror]"),
        (
            {"controller.kubernetes.io/pod-deletion-cost": "05"},
            "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]",
        ),
        (
            {"controller.kubernetes.io/pod-deletion-cost": "+5"},
            "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]",
        ),
        (
            {"container.apparmor.security.beta.kubernetes.io/other": "unconfined"},
            "metadata.annotations[container.apparmor.security.beta.kubernetes.io/other]",
        ),
    ],
)
def test_an_annotation_with_a_meaning_must_make_sense(annotations: dict[str, str], field: str) -> None:
    body: dict[str, Any] = pod()
    body["metadata"]["annotations"] = annotations
    assert create("pods", body).fields == [("Invalid", field)]
