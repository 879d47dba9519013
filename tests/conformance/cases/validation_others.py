"""What services, nodes, volumes, policies, roles, webhooks and definitions may not be."""

from __future__ import annotations

from typing import Any

from tests.conformance.causes import DUPLICATE, FORBIDDEN, INVALID, REQUIRED, UNSUPPORTED
from tests.conformance.model import Cases, post
from tests.conformance.objects import (
    claim,
    config_map,
    crd,
    ingress,
    lease,
    namespace,
    network_policy,
    node,
    priority_class,
    role,
    role_binding,
    secret,
    service,
    storage_class,
    thing,
    volume,
)

cases = Cases()


def refused(name: str, path: str, body: dict[str, Any], *causes: tuple[str, str]) -> None:
    cases(f"validation/{name}", post(path, body, 422, "Invalid", *causes))


refused("service-without-ports", "services", service(ports=[]), (REQUIRED, "spec.ports"))
refused(
    "service-port-zero",
    "services",
    service(ports=[{"port": 0}]),
    (INVALID, "spec.ports[0].port"),
    (INVALID, "spec.ports[0].targetPort"),
)
refused(
    "service-port-too-big",
    "services",
    service(ports=[{"port": 70000}]),
    (INVALID, "spec.ports[0].port"),
    (INVALID, "spec.ports[0].targetPort"),
)
refused(
    "service-ports-need-names",
    "services",
    service(ports=[{"port": 1}, {"port": 2}]),
    (REQUIRED, "spec.ports[0].name"),
    (REQUIRED, "spec.ports[1].name"),
)
refused(
    "service-port-name-twice",
    "services",
    service(ports=[{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]),
    (DUPLICATE, "spec.ports[1].name"),
)
refused(
    "service-port-twice",
    "services",
    service(ports=[{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]),
    (DUPLICATE, "spec.ports[1]"),
)
refused(
    "service-protocol",
    "services",
    service(ports=[{"port": 1, "protocol": "X"}]),
    (UNSUPPORTED, "spec.ports[0].protocol"),
)
refused(
    "service-target-port-name",
    "services",
    service(ports=[{"port": 1, "targetPort": "Bad_Name"}]),
    (INVALID, "spec.ports[0].targetPort"),
)
refused("service-type", "services", service(type="X"), (UNSUPPORTED, "spec.type"))
refused(
    "service-session-affinity",
    "services",
    service(sessionAffinity="X"),
    (UNSUPPORTED, "spec.sessionAffinity"),
)
refused(
    "service-node-port-on-cluster-ip",
    "services",
    service(ports=[{"port": 1, "nodePort": 30001}]),
    (FORBIDDEN, "spec.ports[0].nodePort"),
)
refused(
    "service-node-port-out-of-range",
    "services",
    service(type="NodePort", ports=[{"port": 1, "nodePort": 80}]),
    (INVALID, "spec.ports[0].nodePort"),
)
refused("service-selector", "services", service(selector={"a": "b c"}), (INVALID, "spec.selector"))
refused(
    "service-external-name-missing", "services", service(type="ExternalName"), (REQUIRED, "spec.externalName")
)
refused("service-cluster-ip-bad", "services", service(clusterIP="x"))
refused("service-cluster-ip-out-of-range", "services", service(clusterIP="1.2.3.4"))
refused("service-external-ips", "services", service(externalIPs=["x"]), (INVALID, "spec.externalIPs[0]"))
refused(
    "service-internal-traffic-policy",
    "services",
    service(internalTrafficPolicy="X"),
    (UNSUPPORTED, "spec.internalTrafficPolicy"),
)
refused(
    "service-external-traffic-policy-on-cluster-ip",
    "services",
    service(externalTrafficPolicy="Local"),
    (INVALID, "spec.externalTrafficPolicy"),
)

refused(
    "node-taint-twice",
    "nodes",
    node(spec={"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}),
    (DUPLICATE, "metadata.taints[1]"),
)
refused(
    "node-taint-effect",
    "nodes",
    node(spec={"taints": [{"key": "a", "effect": "X"}]}),
    (UNSUPPORTED, "metadata.taints[0].effect"),
)
refused(
    "node-taint-without-effect",
    "nodes",
    node(spec={"taints": [{"key": "a"}]}),
    (REQUIRED, "metadata.taints[0].effect"),
)
refused(
    "node-taint-key",
    "nodes",
    node(spec={"taints": [{"key": "a b", "effect": "NoSchedule"}]}),
    (INVALID, "metadata.taints[0].key"),
)
refused(
    "node-taint-value",
    "nodes",
    node(spec={"taints": [{"key": "a", "value": "b c", "effect": "NoSchedule"}]}),
    (INVALID, "metadata.taints[0].value"),
)
refused("node-pod-cidr", "nodes", node(spec={"podCIDR": "x", "podCIDRs": ["x"]}))
refused("node-bad-label", "nodes", node("{u}", {"labels": {"a": "b c"}}), (INVALID, "metadata.labels"))
refused("namespace-name", "namespaces", namespace("{u}_A"), (INVALID, "metadata.name"))
refused("namespace-bad-finalizer", "namespaces", namespace(spec={"finalizers": ["no good"]}))
refused("configmap-bad-key", "configmaps", {**config_map(), "data": {"a/b": "x"}}, (INVALID, "data[a/b]"))
refused(
    "configmap-key-twice",
    "configmaps",
    {**config_map(), "data": {"a": "x"}, "binaryData": {"a": "eA=="}},
    (INVALID, "data[a]"),
)
refused("secret-bad-key", "secrets", secret(data={"a b": "eA=="}), (INVALID, "data[a b]"))
refused(
    "secret-tls-without-key",
    "secrets",
    secret(type="kubernetes.io/tls", data={"tls.crt": ""}),
    (REQUIRED, "data[tls.key]"),
)
refused(
    "secret-docker-config-bad",
    "secrets",
    secret(type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": "eA=="}),
    (INVALID, "data[.dockerconfigjson]"),
)
refused(
    "secret-service-account-token-without-annotation",
    "secrets",
    secret(type="kubernetes.io/service-account-token"),
)
refused("secret-basic-auth-empty", "secrets", secret(type="kubernetes.io/basic-auth"))

refused(
    "claim-without-access-modes",
    "persistentvolumeclaims",
    claim(accessModes=[]),
    (REQUIRED, "spec.accessModes"),
)
refused(
    "claim-access-mode", "persistentvolumeclaims", claim(accessModes=["X"]), (UNSUPPORTED, "spec.accessModes")
)
refused(
    "claim-without-storage",
    "persistentvolumeclaims",
    claim(resources={}),
    (REQUIRED, "spec.resources[storage]"),
)
refused("claim-storage-zero", "persistentvolumeclaims", claim(resources={"requests": {"storage": "0"}}))
refused(
    "claim-volume-mode", "persistentvolumeclaims", claim(volumeMode="X"), (UNSUPPORTED, "spec.volumeMode")
)
refused(
    "claim-pod-mode-with-others",
    "persistentvolumeclaims",
    claim(accessModes=["ReadWriteOncePod", "ReadWriteOnce"]),
    (FORBIDDEN, "spec.accessModes"),
)
refused("volume-without-source", "persistentvolumes", volume(hostPath=None), (REQUIRED, "spec"))
refused("volume-two-sources", "persistentvolumes", volume(nfs={"server": "x", "path": "/y"}))
refused("volume-without-capacity", "persistentvolumes", volume(capacity={}))
refused(
    "volume-reclaim-policy",
    "persistentvolumes",
    volume(persistentVolumeReclaimPolicy="X"),
    (UNSUPPORTED, "spec.persistentVolumeReclaimPolicy"),
)
refused(
    "volume-local-without-affinity",
    "persistentvolumes",
    volume(hostPath=None, local={"path": "/x"}),
    (REQUIRED, "spec.nodeAffinity"),
)
refused(
    "storageclass-without-provisioner",
    "storageclasses",
    storage_class(provisioner=""),
    (REQUIRED, "provisioner"),
)
refused(
    "storageclass-binding-mode",
    "storageclasses",
    storage_class(volumeBindingMode="X"),
    (UNSUPPORTED, "volumeBindingMode"),
)
refused(
    "storageclass-reclaim-policy",
    "storageclasses",
    storage_class(reclaimPolicy="X"),
    (UNSUPPORTED, "reclaimPolicy"),
)
refused("priorityclass-too-high", "priorityclasses", priority_class(value=2_000_000_000))
refused(
    "priorityclass-preemption",
    "priorityclasses",
    priority_class(preemptionPolicy="X"),
    (UNSUPPORTED, "preemptionPolicy"),
)
refused("lease-duration", "leases", lease(leaseDurationSeconds=0), (INVALID, "spec.leaseDurationSeconds"))
refused("lease-transitions", "leases", lease(leaseTransitions=-1), (INVALID, "spec.leaseTransitions"))
cases("validation/lease-holder-may-be-empty", post("leases", lease(holderIdentity=""), take=["spec"]))
refused(
    "quota-bad-resource", "resourcequotas", thing("v1", "ResourceQuota", "q", spec={"hard": {"frob": "1"}})
)
refused(
    "quota-negative",
    "resourcequotas",
    thing("v1", "ResourceQuota", "q", spec={"hard": {"pods": "-1"}}),
    (INVALID, "spec.hard[pods]"),
)
refused(
    "quota-fraction",
    "resourcequotas",
    thing("v1", "ResourceQuota", "q", spec={"hard": {"pods": "500m"}}),
    (INVALID, "spec.hard[pods]"),
)
refused(
    "quota-scope",
    "resourcequotas",
    thing("v1", "ResourceQuota", "q", spec={"hard": {"pods": "1"}, "scopes": ["X"]}),
)
refused(
    "limitrange-min-over-max",
    "limitranges",
    thing(
        "v1",
        "LimitRange",
        "l",
        spec={"limits": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}]},
    ),
)
refused(
    "limitrange-default-on-pod",
    "limitranges",
    thing("v1", "LimitRange", "l", spec={"limits": [{"type": "Pod", "default": {"cpu": "2"}}]}),
)
refused(
    "limitrange-type-twice",
    "limitranges",
    thing("v1", "LimitRange", "l", spec={"limits": [{"type": "Container"}, {"type": "Container"}]}),
    (DUPLICATE, "spec.limits[1].type"),
)
refused("ingress-without-anything", "ingresses", ingress(defaultBackend=None), (INVALID, "spec"))
RULE = {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}


def ruled(**more: Any) -> dict[str, Any]:
    return ingress(rules=[{"http": {"paths": [{**RULE, **more}]}}])


P0 = "spec.rules[0].http.paths[0]"
refused("ingress-path-type-missing", "ingresses", ruled(pathType=None), (REQUIRED, f"{P0}.pathType"))
refused("ingress-path-type", "ingresses", ruled(pathType="X"), (UNSUPPORTED, f"{P0}.pathType"))
refused("ingress-path-relative", "ingresses", ruled(path="x"), (INVALID, f"{P0}.path"))
refused("ingress-backend-empty", "ingresses", ruled(backend={}))
refused("ingress-host", "ingresses", ingress(rules=[{"host": "1.2.3.4"}]))
refused("ingress-wildcard-host", "ingresses", ingress(rules=[{"host": "*.*.example.com"}]))
refused(
    "networkpolicy-type",
    "networkpolicies",
    network_policy(policyTypes=["X"]),
    (UNSUPPORTED, "spec.policyTypes[0]"),
)
refused(
    "networkpolicy-cidr", "networkpolicies", network_policy(ingress=[{"from": [{"ipBlock": {"cidr": "x"}}]}])
)
refused("networkpolicy-peer-empty", "networkpolicies", network_policy(ingress=[{"from": [{}]}]))
refused("networkpolicy-port", "networkpolicies", network_policy(ingress=[{"ports": [{"port": 70000}]}]))
refused(
    "role-rule-without-verbs",
    "roles",
    role(rules=[{"apiGroups": [""], "resources": ["pods"]}]),
    (REQUIRED, "rules[0].verbs"),
)
refused(
    "role-rule-without-groups",
    "roles",
    role(rules=[{"resources": ["pods"], "verbs": ["get"]}]),
    (REQUIRED, "rules[0].apiGroups"),
)
refused("role-with-urls", "roles", role(rules=[{"nonResourceURLs": ["/x"], "verbs": ["get"]}]))
refused(
    "rolebinding-ref-kind",
    "rolebindings",
    role_binding(roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "X", "name": "r"}),
    (UNSUPPORTED, "roleRef.kind"),
)
refused(
    "rolebinding-subject-kind",
    "rolebindings",
    role_binding(subjects=[{"kind": "X", "name": "y"}]),
    (UNSUPPORTED, "subjects[0].kind"),
)
cases(
    "validation/rolebinding-account-namespace-is-filled-in",
    post("rolebindings", role_binding(subjects=[{"kind": "ServiceAccount", "name": "y"}]), take=["subjects"]),
)
refused(
    "endpointslice-address-type",
    "endpointslices",
    thing("discovery.k8s.io/v1", "EndpointSlice", "e", addressType="X", endpoints=[]),
)
refused(
    "endpointslice-address",
    "endpointslices",
    thing("discovery.k8s.io/v1", "EndpointSlice", "e", addressType="IPv4", endpoints=[{"addresses": ["x"]}]),
    (INVALID, "endpoints[0].addresses[0]"),
)
refused(
    "runtimeclass-handler",
    "runtimeclasses",
    thing("node.k8s.io/v1", "RuntimeClass", "{u}", handler="Bad_Name"),
    (INVALID, "handler"),
)
refused(
    "csinode-driver-without-node-id",
    "csinodes",
    thing("storage.k8s.io/v1", "CSINode", "{u}", spec={"drivers": [{"name": "x", "nodeID": ""}]}),
)
refused(
    "event-namespace-mismatch",
    "events",
    thing("v1", "Event", "e", involvedObject={"kind": "Pod", "namespace": "other"}),
)

HOOK: dict[str, Any] = {
    "name": "x.example.com",
    "clientConfig": {"url": "https://127.0.0.1:1/x"},
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "rules": [
        {
            "apiGroups": ["none.example.com"],
            "apiVersions": ["v1"],
            "operations": ["CREATE"],
            "resources": ["things"],
        }
    ],
}


def hook(**more: Any) -> dict[str, Any]:
    return thing(
        "admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "{u}", webhooks=[{**HOOK, **more}]
    )


MWC = "mutatingwebhookconfigurations"
refused("webhook-name-not-qualified", MWC, hook(name="x"), (INVALID, "webhooks[0].name"))
refused("webhook-side-effects-missing", MWC, hook(sideEffects=None), (REQUIRED, "webhooks[0].sideEffects"))
refused("webhook-side-effects-some", MWC, hook(sideEffects="Some"), (UNSUPPORTED, "webhooks[0].sideEffects"))
refused(
    "webhook-review-versions-missing",
    MWC,
    hook(admissionReviewVersions=[]),
    (REQUIRED, "webhooks[0].admissionReviewVersions"),
)
refused(
    "webhook-review-versions-unknown",
    MWC,
    hook(admissionReviewVersions=["v9"]),
    (INVALID, "webhooks[0].admissionReviewVersions"),
)
refused("webhook-without-client", MWC, hook(clientConfig={}), (REQUIRED, "webhooks[0].clientConfig"))
refused(
    "webhook-plain-http",
    MWC,
    hook(clientConfig={"url": "http://x.example.com"}),
    (INVALID, "webhooks[0].clientConfig.url"),
)
refused("webhook-timeout", MWC, hook(timeoutSeconds=31), (INVALID, "webhooks[0].timeoutSeconds"))
refused("webhook-failure-policy", MWC, hook(failurePolicy="X"), (UNSUPPORTED, "webhooks[0].failurePolicy"))
refused(
    "webhook-operation",
    MWC,
    hook(rules=[{**HOOK["rules"][0], "operations": ["X"]}]),
    (UNSUPPORTED, "webhooks[0].rules[0].operations[0]"),
)
refused(
    "webhook-names-twice",
    MWC,
    thing("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "{u}", webhooks=[HOOK, HOOK]),
    (DUPLICATE, "webhooks[1].name"),
)
refused("webhook-match-condition", MWC, hook(matchConditions=[{"name": "a", "expression": "frob("}]))

CRDS = "customresourcedefinitions"
refused(
    "crd-name-unlike-spec",
    CRDS,
    {**crd(), "metadata": {"name": "x.{u}.example.com"}},
    (INVALID, "metadata.name"),
)
refused(
    "crd-without-schema",
    CRDS,
    crd(version={"schema": None}),
    (REQUIRED, "spec.versions[0].schema.openAPIV3Schema"),
)
refused("crd-no-storage-version", CRDS, crd(version={"storage": False}))
refused("crd-scope", CRDS, crd(scope="X"), (UNSUPPORTED, "spec.scope"))
refused("crd-without-kind", CRDS, crd(names={"plural": "widgets"}))
refused("crd-bad-version-name", CRDS, crd(version={"name": "V1"}))
refused("crd-schema-not-an-object", CRDS, crd({"type": "string"}))
refused("crd-property-without-type", CRDS, crd({"type": "object", "properties": {"a": {}}}))
refused("crd-array-without-items", CRDS, crd({"type": "object", "properties": {"a": {"type": "array"}}}))
refused("crd-unknown-type", CRDS, crd({"type": "object", "properties": {"a": {"type": "frob"}}}))
refused(
    "crd-default-unlike-type",
    CRDS,
    crd({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}),
)
refused(
    "crd-bad-pattern", CRDS, crd({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}})
)
refused(
    "crd-bad-cel-rule", CRDS, crd({"type": "object", "x-kubernetes-validations": [{"rule": "self.frob >"}]})
)
refused(
    "crd-printer-column-without-path",
    CRDS,
    crd(version={"additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ""}]}),
)
refused(
    "crd-printer-column-type",
    CRDS,
    crd(version={"additionalPrinterColumns": [{"name": "A", "type": "frob", "jsonPath": ".a"}]}),
)
refused(
    "crd-scale-path",
    CRDS,
    crd(version={"subresources": {"scale": {"specReplicasPath": "x", "statusReplicasPath": ".status.r"}}}),
)
refused(
    "crd-versions-twice",
    CRDS,
    crd(
        versions=[
            {"name": "v1", "served": True, "storage": s, "schema": {"openAPIV3Schema": {"type": "object"}}}
            for s in (True, False)
        ]
    ),
)
refused("crd-preserve-unknown-fields", CRDS, crd(preserveUnknownFields=True))
