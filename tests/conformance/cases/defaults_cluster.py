"""Whole stored objects of the kinds that describe a cluster: storage, roles, webhooks, devices, CRDs."""

from __future__ import annotations

from typing import Any

from tests.conformance.model import WHOLE, Cases, get, post
from tests.conformance.objects import (
    crd,
    role,
    role_binding,
    storage_class,
    thing,
)

cases = Cases()


def stored(name: str, path: str, body: dict[str, Any]) -> None:
    cases(f"defaults/{name}", post(path, body, take=WHOLE))


stored("storageclass", "storageclasses", storage_class())
stored(
    "csinode",
    "csinodes",
    thing(
        "storage.k8s.io/v1",
        "CSINode",
        "{u}",
        spec={"drivers": [{"name": "x.example.com", "nodeID": "n", "allocatable": {"count": 3}}]},
    ),
)
stored("csidriver", "csidrivers", thing("storage.k8s.io/v1", "CSIDriver", "{u}", spec={}))
stored(
    "csistoragecapacity",
    "csistoragecapacities",
    thing("storage.k8s.io/v1", "CSIStorageCapacity", "c", storageClassName="x", capacity="1024Mi"),
)
stored(
    "volumeattachment",
    "volumeattachments",
    thing(
        "storage.k8s.io/v1",
        "VolumeAttachment",
        "{u}",
        spec={"attacher": "x.example.com", "nodeName": "n", "source": {"persistentVolumeName": "pv"}},
    ),
)
stored(
    "runtimeclass",
    "runtimeclasses",
    thing("node.k8s.io/v1", "RuntimeClass", "{u}", handler="h", overhead={"podFixed": {"cpu": "250m"}}),
)
stored(
    "ingressclass",
    "ingressclasses",
    thing(
        "networking.k8s.io/v1",
        "IngressClass",
        "{u}",
        spec={
            "controller": "example.com/c",
            "parameters": {"kind": "P", "name": "p", "apiGroup": "x.example.com"},
        },
    ),
)
stored("role", "roles", role())
stored("rolebinding", "rolebindings", role_binding())
stored(
    "clusterrole-aggregated",
    "clusterroles",
    thing(
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        "{u}",
        aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]},
    ),
)
stored(
    "endpointslice",
    "endpointslices",
    thing(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        "es",
        addressType="IPv4",
        endpoints=[{"addresses": ["10.0.0.1"]}],
        ports=[{"port": 80}],
    ),
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
stored(
    "mutatingwebhookconfiguration",
    "mutatingwebhookconfigurations",
    thing("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "{u}", webhooks=[HOOK]),
)
stored(
    "validatingwebhookconfiguration",
    "validatingwebhookconfigurations",
    thing(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        "{u}",
        webhooks=[{**HOOK, "clientConfig": {"service": {"name": "s", "namespace": "n"}}}],
    ),
)
stored(
    "validatingadmissionpolicy",
    "validatingadmissionpolicies",
    thing(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        "{u}",
        spec={
            "matchConstraints": {"resourceRules": [HOOK["rules"][0]]},
            "validations": [{"expression": "true"}],
        },
    ),
)
stored(
    "flowschema",
    "flowschemas",
    thing(
        "flowcontrol.apiserver.k8s.io/v1",
        "FlowSchema",
        "{u}",
        spec={"priorityLevelConfiguration": {"name": "global-default"}},
    ),
)
stored(
    "prioritylevelconfiguration",
    "prioritylevelconfigurations",
    thing(
        "flowcontrol.apiserver.k8s.io/v1",
        "PriorityLevelConfiguration",
        "{u}",
        spec={
            "type": "Limited",
            "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}},
        },
    ),
)
stored(
    "deviceclass",
    "deviceclasses",
    thing(
        "resource.k8s.io/v1",
        "DeviceClass",
        "{u}",
        spec={"selectors": [{"cel": {"expression": "device.driver == 'x.example.com'"}}]},
    ),
)
stored(
    "resourceclaim",
    "resourceclaims",
    thing(
        "resource.k8s.io/v1",
        "ResourceClaim",
        "rc",
        spec={"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}},
    ),
)
stored(
    "resourceclaimtemplate",
    "resourceclaimtemplates",
    thing(
        "resource.k8s.io/v1",
        "ResourceClaimTemplate",
        "t",
        spec={"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d"}}]}}},
    ),
)
stored(
    "resourceslice",
    "resourceslices",
    thing(
        "resource.k8s.io/v1",
        "ResourceSlice",
        "{u}",
        spec={
            "driver": "x.example.com",
            "nodeName": "n",
            "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {"name": "d", "attributes": {"a": {"string": "b"}}, "capacity": {"m": {"value": "1Gi"}}}
            ],
        },
    ),
)
cases(
    "defaults/customresourcedefinition",
    post(
        "customresourcedefinitions",
        crd(version={"additionalPrinterColumns": [{"name": "A", "type": "string", "jsonPath": ".spec.a"}]}),
        take=["spec"],
    ),
    get(
        "customresourcedefinitions/widgets.{u}.example.com",
        poll=True,
        take=["status"],
        has={"status.conditions.*.status": ["True", "True"]},
    ),
)
