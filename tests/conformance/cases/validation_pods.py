"""What a pod may not be: every cause's reason and field."""

from __future__ import annotations

from typing import Any

from tests.conformance.causes import DUPLICATE, FORBIDDEN, INVALID, REQUIRED, UNSUPPORTED
from tests.conformance.model import Cases, post
from tests.conformance.objects import container, plain_pod, pod, selector

cases = Cases()


def refused(name: str, body: dict[str, Any], *causes: tuple[str, str]) -> None:
    cases(f"validation/pod-{name}", post("pods", body, 422, "Invalid", *causes))


def one(**fields: Any) -> dict[str, Any]:
    """A pod with one container with these fields."""
    return plain_pod(containers=[container(**fields)])


C = "spec.containers[0]"
refused("no-containers", pod(containers=[]), (REQUIRED, "spec.containers"))
refused(
    "no-spec", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, (REQUIRED, "spec.containers")
)
refused("container-without-name", pod(containers=[{"image": "x"}]), (REQUIRED, f"{C}.name"))
refused("container-without-image", pod(containers=[{"name": "c"}]), (REQUIRED, f"{C}.image"))
refused("container-empty", pod(containers=[{}]), (REQUIRED, f"{C}.name"), (REQUIRED, f"{C}.image"))
refused("container-bad-name", pod(containers=[container("Bad_Name")]), (INVALID, f"{C}.name"))
refused("container-name-too-long", pod(containers=[container("c" * 64)]), (INVALID, f"{C}.name"))
refused(
    "duplicate-container-names",
    pod(containers=[container(), container()]),
    (DUPLICATE, "spec.containers[1].name"),
)
refused(
    "duplicate-name-of-init-container",
    pod(initContainers=[container("c")]),
    (DUPLICATE, "spec.initContainers[0].name"),
)
refused(
    "init-container-without-image",
    pod(initContainers=[{"name": "i"}]),
    (REQUIRED, "spec.initContainers[0].image"),
)
refused("image-with-blank", one(image=" x"), (INVALID, f"{C}.image"))
refused("pull-policy", one(imagePullPolicy="Sometimes"), (UNSUPPORTED, f"{C}.imagePullPolicy"))
refused(
    "termination-message-policy",
    one(terminationMessagePolicy="X"),
    (UNSUPPORTED, f"{C}.terminationMessagePolicy"),
)
refused("port-zero", one(ports=[{"containerPort": 0}]), (REQUIRED, f"{C}.ports[0].containerPort"))
refused("port-too-big", one(ports=[{"containerPort": 65536}]), (INVALID, f"{C}.ports[0].containerPort"))
refused(
    "port-protocol",
    one(ports=[{"containerPort": 1, "protocol": "X"}]),
    (UNSUPPORTED, f"{C}.ports[0].protocol"),
)
refused("port-name", one(ports=[{"containerPort": 1, "name": "Bad_Name"}]), (INVALID, f"{C}.ports[0].name"))
refused(
    "port-name-too-long", one(ports=[{"containerPort": 1, "name": "a" * 16}]), (INVALID, f"{C}.ports[0].name")
)
refused(
    "port-name-twice",
    one(ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]),
    (DUPLICATE, f"{C}.ports[1].name"),
)
refused(
    "host-port-twice",
    one(ports=[{"containerPort": 1, "hostPort": 9}, {"containerPort": 2, "hostPort": 9}]),
    (DUPLICATE, f"{C}.ports[1].hostPort"),
)
refused(
    "host-port-with-host-network",
    plain_pod(hostNetwork=True, containers=[container(ports=[{"containerPort": 1, "hostPort": 9}])]),
    (INVALID, f"{C}.ports[0].hostPort"),
)
refused("env-without-name", one(env=[{"value": "x"}]), (REQUIRED, f"{C}.env[0].name"))
refused("env-bad-name", one(env=[{"name": "a=b"}]), (INVALID, f"{C}.env[0].name"))
refused(
    "env-value-and-source",
    one(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
    (INVALID, f"{C}.env[0].valueFrom"),
)
refused("env-empty-source", one(env=[{"name": "A", "valueFrom": {}}]), (INVALID, f"{C}.env[0].valueFrom"))
refused(
    "env-two-sources",
    one(
        env=[
            {
                "name": "A",
                "valueFrom": {
                    "fieldRef": {"fieldPath": "metadata.name"},
                    "configMapKeyRef": {"name": "x", "key": "y"},
                },
            }
        ]
    ),
    (INVALID, f"{C}.env[0].valueFrom"),
)
refused(
    "env-unknown-field-path",
    one(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.frob"}}}]),
    (INVALID, f"{C}.env[0].valueFrom.fieldRef.fieldPath"),
)
refused(
    "env-unsupported-field-path",
    one(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.generation"}}}]),
    (INVALID, f"{C}.env[0].valueFrom.fieldRef.fieldPath"),
)
refused(
    "env-resource-field",
    one(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.frob"}}}]),
    (UNSUPPORTED, f"{C}.env[0].valueFrom.resourceFieldRef.resource"),
)
refused(
    "env-key-ref-without-key",
    one(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "x", "key": ""}}}]),
    (REQUIRED, f"{C}.env[0].valueFrom.secretKeyRef.key"),
)
refused("env-from-without-source", one(envFrom=[{}]), (INVALID, f"{C}.envFrom"))
refused(
    "requests-over-limits",
    one(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
    (INVALID, f"{C}.resources.requests"),
)
refused(
    "negative-request", one(resources={"requests": {"cpu": "-1"}}), (INVALID, f"{C}.resources.requests[cpu]")
)
refused(
    "unknown-resource", one(resources={"requests": {"frob": "1"}}), (INVALID, f"{C}.resources.requests[frob]")
)
refused(
    "fractional-extended-resource",
    one(resources={"limits": {"example.com/x": "500m"}}),
    (INVALID, f"{C}.resources.limits[example.com/x]"),
    (INVALID, f"{C}.resources.requests[example.com/x]"),
)
refused(
    "extended-request-unlike-limit",
    one(resources={"requests": {"example.com/x": "1"}, "limits": {"example.com/x": "2"}}),
    (INVALID, f"{C}.resources.requests"),
)
refused(
    "extended-request-without-limit",
    one(resources={"requests": {"example.com/x": "1"}}),
    (REQUIRED, f"{C}.resources.limits"),
)
refused(
    "hugepages-without-cpu-or-memory",
    one(resources={"limits": {"hugepages-2Mi": "2Mi"}}),
    (FORBIDDEN, f"{C}.resources"),
)
refused("bad-resource-name", one(resources={"requests": {"a b": "1"}}))
VOLUME = {"name": "v", "emptyDir": {}}
refused("volume-without-name", pod(volumes=[{"emptyDir": {}}]), (REQUIRED, "spec.volumes[0].name"))
refused("volume-names-twice", pod(volumes=[VOLUME, VOLUME]), (DUPLICATE, "spec.volumes[1].name"))
refused(
    "volume-two-sources",
    pod(volumes=[{**VOLUME, "hostPath": {"path": "/x"}}]),
    (FORBIDDEN, "spec.volumes[0].hostPath"),
)
refused("volume-bad-name", pod(volumes=[{"name": "V_", "emptyDir": {}}]), (INVALID, "spec.volumes[0].name"))
refused(
    "volume-host-path-empty",
    pod(volumes=[{"name": "v", "hostPath": {"path": ""}}]),
    (REQUIRED, "spec.volumes[0].hostPath.path"),
)
refused(
    "volume-host-path-with-dots",
    pod(volumes=[{"name": "v", "hostPath": {"path": "/a/../b"}}]),
    (INVALID, "spec.volumes[0].hostPath.path"),
)
refused(
    "volume-claim-without-name",
    pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": ""}}]),
    (REQUIRED, "spec.volumes[0].persistentVolumeClaim.claimName"),
)
refused(
    "volume-config-map-without-name",
    pod(volumes=[{"name": "v", "configMap": {}}]),
    (REQUIRED, "spec.volumes[0].configMap.name"),
)
refused(
    "volume-secret-without-name",
    pod(volumes=[{"name": "v", "secret": {}}]),
    (REQUIRED, "spec.volumes[0].secret.secretName"),
)
refused(
    "volume-mode-out-of-range",
    pod(volumes=[{"name": "v", "configMap": {"name": "x", "defaultMode": 1000}}]),
    (INVALID, "spec.volumes[0].configMap.defaultMode"),
)
refused(
    "mount-of-missing-volume",
    one(volumeMounts=[{"name": "x", "mountPath": "/x"}]),
    ("FieldValueNotFound", f"{C}.volumeMounts[0].name"),
)
refused(
    "mount-without-path",
    plain_pod(volumes=[VOLUME], containers=[container(volumeMounts=[{"name": "v", "mountPath": ""}])]),
    (REQUIRED, f"{C}.volumeMounts[0].mountPath"),
)
refused(
    "mount-path-twice",
    plain_pod(
        volumes=[VOLUME],
        containers=[
            container(volumeMounts=[{"name": "v", "mountPath": "/x"}, {"name": "v", "mountPath": "/x"}])
        ],
    ),
    (INVALID, f"{C}.volumeMounts[1].mountPath"),
)
refused(
    "mount-sub-path-with-dots",
    plain_pod(
        volumes=[VOLUME],
        containers=[container(volumeMounts=[{"name": "v", "mountPath": "/x", "subPath": "../y"}])],
    ),
    (INVALID, f"{C}.volumeMounts.subPath"),
)
refused("restart-policy", pod(restartPolicy="Sometimes"), (UNSUPPORTED, "spec.restartPolicy"))
refused("dns-policy", pod(dnsPolicy="X"), (UNSUPPORTED, "spec.dnsPolicy"))
refused("dns-none-without-config", pod(dnsPolicy="None"), (REQUIRED, "spec.dnsConfig"))
refused("active-deadline-zero", pod(activeDeadlineSeconds=0), (INVALID, "spec.activeDeadlineSeconds"))
refused("node-selector-value", pod(nodeSelector={"a": "not ok"}), (INVALID, "spec.nodeSelector"))
refused("node-name", pod(nodeName="Bad_Name"), (INVALID, "spec.nodeName"))
refused("hostname", pod(hostname="Bad_Name"), (INVALID, "spec.hostname"))
refused("subdomain", pod(subdomain="a.b"), (INVALID, "spec.subdomain"))
refused(
    "readiness-gate",
    pod(readinessGates=[{"conditionType": "a b"}]),
    (INVALID, "spec.readinessGates[0].conditionType"),
)
refused(
    "scheduling-gate-twice",
    pod(schedulingGates=[{"name": "example.com/a"}, {"name": "example.com/a"}]),
    (DUPLICATE, "spec.schedulingGates[1]"),
)
refused(
    "scheduling-gate-with-node",
    pod(schedulingGates=[{"name": "example.com/a"}], nodeName="n"),
    (FORBIDDEN, "spec.nodeName"),
)
refused(
    "toleration-without-key-must-exist",
    pod(tolerations=[{"operator": "Equal", "value": "x"}]),
    (INVALID, "spec.tolerations[0].operator"),
)
refused(
    "toleration-exists-with-value",
    pod(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
    (INVALID, "spec.tolerations[0].operator"),
)
refused(
    "toleration-operator",
    pod(tolerations=[{"key": "a", "operator": "X"}]),
    (UNSUPPORTED, "spec.tolerations[0].operator"),
)
refused(
    "toleration-effect",
    pod(tolerations=[{"key": "a", "effect": "X"}]),
    (UNSUPPORTED, "spec.tolerations[0].effect"),
)
refused(
    "toleration-seconds-without-no-execute",
    pod(tolerations=[{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]),
    (INVALID, "spec.tolerations[0].effect"),
)
refused(
    "toleration-key",
    pod(tolerations=[{"key": "a b", "operator": "Exists"}]),
    (INVALID, "spec.tolerations[0].key"),
)
TERM = {"topologyKey": "zone", "labelSelector": selector()}
REQ = "requiredDuringSchedulingIgnoredDuringExecution"
PREF = "preferredDuringSchedulingIgnoredDuringExecution"
refused(
    "affinity-without-topology-key",
    pod(affinity={"podAffinity": {REQ: [{"labelSelector": selector()}]}}),
    (REQUIRED, f"spec.affinity.podAffinity.{REQ}[0].topologyKey"),
    (INVALID, f"spec.affinity.podAffinity.{REQ}[0].topologyKey"),
)
refused(
    "affinity-weight",
    pod(affinity={"podAntiAffinity": {PREF: [{"weight": 101, "podAffinityTerm": TERM}]}}),
    (INVALID, f"spec.affinity.podAntiAffinity.{PREF}[0].weight"),
)
refused(
    "affinity-bad-operator",
    pod(
        affinity={
            "podAffinity": {
                REQ: [
                    {
                        "topologyKey": "z",
                        "labelSelector": {"matchExpressions": [{"key": "a", "operator": "X"}]},
                    }
                ]
            }
        }
    ),
    (INVALID, f"spec.affinity.podAffinity.{REQ}[0].labelSelector.matchExpressions[0].operator"),
)
refused(
    "node-affinity-empty-terms",
    pod(affinity={"nodeAffinity": {REQ: {"nodeSelectorTerms": []}}}),
    (REQUIRED, f"spec.affinity.nodeAffinity.{REQ}.nodeSelectorTerms"),
)
BASE = f"spec.affinity.nodeAffinity.{REQ}.nodeSelectorTerms[0].matchExpressions[0]"


def node_affinity(**expression: Any) -> dict[str, Any]:
    return pod(affinity={"nodeAffinity": {REQ: {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}})


refused("node-affinity-operator", node_affinity(key="a", operator="X"), (INVALID, f"{BASE}.operator"))
refused(
    "node-affinity-in-without-values", node_affinity(key="a", operator="In"), (REQUIRED, f"{BASE}.values")
)
refused(
    "node-affinity-exists-with-values",
    node_affinity(key="a", operator="Exists", values=["x"]),
    (FORBIDDEN, f"{BASE}.values"),
)
refused(
    "node-affinity-gt-two-values",
    node_affinity(key="a", operator="Gt", values=["1", "2"]),
    (REQUIRED, f"{BASE}.values"),
)
refused(
    "node-affinity-match-fields",
    pod(
        affinity={
            "nodeAffinity": {
                REQ: {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["x"]}]}
                    ]
                }
            }
        }
    ),
    (INVALID, f"spec.affinity.nodeAffinity.{REQ}.nodeSelectorTerms[0].matchFields[0].key"),
)
refused(
    "node-affinity-preferred-weight",
    pod(affinity={"nodeAffinity": {PREF: [{"weight": 0, "preference": {}}]}}),
    (INVALID, f"spec.affinity.nodeAffinity.{PREF}[0].weight"),
)
SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
T = "spec.topologySpreadConstraints[0]"


def spread(**more: Any) -> dict[str, Any]:
    return pod(topologySpreadConstraints=[{**SPREAD, **more}])


refused("spread-max-skew-zero", spread(maxSkew=0), (INVALID, f"{T}.maxSkew"))
refused("spread-without-key", spread(topologyKey=""), (REQUIRED, f"{T}.topologyKey"))
refused("spread-action", spread(whenUnsatisfiable="X"), (UNSUPPORTED, f"{T}.whenUnsatisfiable"))
refused(
    "spread-twice",
    pod(topologySpreadConstraints=[SPREAD, SPREAD]),
    (DUPLICATE, "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}"),
)
refused("spread-min-domains-zero", spread(minDomains=0), (INVALID, f"{T}.minDomains"))
refused(
    "spread-min-domains-with-schedule-anyway",
    spread(minDomains=2, whenUnsatisfiable="ScheduleAnyway"),
    (INVALID, f"{T}.minDomains"),
)
refused("spread-node-policy", spread(nodeTaintsPolicy="X"), (UNSUPPORTED, f"{T}.nodeTaintsPolicy"))
refused(
    "spread-match-keys-without-selector", spread(matchLabelKeys=["a"]), (FORBIDDEN, f"{T}.matchLabelKeys")
)
refused("probe-without-handler", one(livenessProbe={}), (REQUIRED, f"{C}.livenessProbe"))
refused(
    "probe-two-handlers",
    one(livenessProbe={"httpGet": {"port": 1}, "tcpSocket": {"port": 1}}),
    (FORBIDDEN, f"{C}.livenessProbe.tcpSocket"),
)
refused(
    "probe-port", one(livenessProbe={"httpGet": {"port": 0}}), (INVALID, f"{C}.livenessProbe.httpGet.port")
)
refused(
    "probe-scheme",
    one(readinessProbe={"httpGet": {"port": 1, "scheme": "FTP"}}),
    (UNSUPPORTED, f"{C}.readinessProbe.httpGet.scheme"),
)
refused(
    "probe-negative-numbers",
    one(
        livenessProbe={
            "tcpSocket": {"port": 1},
            "periodSeconds": -1,
            "timeoutSeconds": -1,
            "initialDelaySeconds": -1,
            "failureThreshold": -1,
        }
    ),
    *(
        (INVALID, f"{C}.livenessProbe.{f}")
        for f in ("periodSeconds", "timeoutSeconds", "initialDelaySeconds", "failureThreshold")
    ),
)
refused(
    "liveness-success-threshold",
    one(livenessProbe={"tcpSocket": {"port": 1}, "successThreshold": 2}),
    (INVALID, f"{C}.livenessProbe.successThreshold"),
)
refused(
    "init-container-probe",
    plain_pod(initContainers=[container("i", livenessProbe={"tcpSocket": {"port": 1}})]),
    (FORBIDDEN, "spec.initContainers[0].livenessProbe"),
)
refused(
    "exec-without-command", one(livenessProbe={"exec": {}}), (REQUIRED, f"{C}.livenessProbe.exec.command")
)
refused(
    "host-alias-ip", pod(hostAliases=[{"ip": "x", "hostnames": ["a"]}]), (INVALID, "spec.hostAliases[0].ip")
)
refused(
    "run-as-user-negative",
    one(securityContext={"runAsUser": -1}),
    (INVALID, f"{C}.securityContext.runAsUser"),
)
refused(
    "privileged-without-escalation",
    one(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
    (INVALID, f"{C}.securityContext"),
)
refused("os-name", pod(os={"name": "plan9"}), (UNSUPPORTED, "spec.os"))
refused(
    "many-at-once",
    plain_pod(restartPolicy="X", containers=[container("A_", imagePullPolicy="Y"), {"name": "d"}]),
    (UNSUPPORTED, "spec.restartPolicy"),
    (INVALID, "spec.containers[0].name"),
    (UNSUPPORTED, "spec.containers[0].imagePullPolicy"),
    (REQUIRED, "spec.containers[1].image"),
)
refused("bad-labels", pod("p", {"labels": {"a": "b c", "-": "d"}}), (INVALID, "metadata.labels"))

cases(
    "validation/pod-negative-grace-becomes-one",
    post("pods", pod(terminationGracePeriodSeconds=-5), has={"spec.terminationGracePeriodSeconds": 1}),
)
cases(
    "validation/pod-preemption-policy-unlike-its-class",
    post("pods", pod(preemptionPolicy="X"), 403, "Forbidden"),
)
cases(
    "validation/pod-node-affinity-gt-text-is-let-through",
    post("pods", node_affinity(key="a", operator="Gt", values=["x"])),
)
