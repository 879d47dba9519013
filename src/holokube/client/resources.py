"""Names of resources: which URL a kind of object lives under, and the built-in ones as constants."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind of object at one version, as the API server serves it."""

    group: str
    """Empty for the core group."""
    version: str
    plural: str
    kind: str
    namespaced: bool

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified_name(self) -> str:
        """``deployments.apps``, or just ``pods`` for the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path; an empty namespace means the whole cluster, an empty name the collection."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{_segment(namespace)}")
        parts.append(self.plural)
        if name:
            parts.append(_segment(name))
        if subresource:
            # A subresource such as `proxy/healthz` carries a path of its own.
            parts.append(quote(subresource, safe="/"))
        return "/".join(parts)

    def __str__(self) -> str:
        return f"{self.plural}.{self.version}.{self.group}" if self.group else f"{self.plural}.{self.version}"


def _segment(text: str) -> str:
    """One path segment; RBAC names hold colons (``system:node``), which a path may carry as they are."""
    return quote(text, safe=":@!$&'()*+,;=")


def _core(plural: str, kind: str, *, namespaced: bool = True) -> Resource:
    return Resource("", "v1", plural, kind, namespaced)


BINDINGS = _core("bindings", "Binding")
CONFIG_MAPS = _core("configmaps", "ConfigMap")
ENDPOINTS = _core("endpoints", "Endpoints")
EVENTS = _core("events", "Event")
LIMIT_RANGES = _core("limitranges", "LimitRange")
NAMESPACES = _core("namespaces", "Namespace", namespaced=False)
NODES = _core("nodes", "Node", namespaced=False)
PERSISTENT_VOLUME_CLAIMS = _core("persistentvolumeclaims", "PersistentVolumeClaim")
PERSISTENT_VOLUMES = _core("persistentvolumes", "PersistentVolume", namespaced=False)
PODS = _core("pods", "Pod")
POD_TEMPLATES = _core("podtemplates", "PodTemplate")
REPLICATION_CONTROLLERS = _core("replicationcontrollers", "ReplicationController")
RESOURCE_QUOTAS = _core("resourcequotas", "ResourceQuota")
SECRETS = _core("secrets", "Secret")
SERVICE_ACCOUNTS = _core("serviceaccounts", "ServiceAccount")
SERVICES = _core("services", "Service")

CONTROLLER_REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision", True)
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet", True)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", True)
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet", True)
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet", True)

CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob", True)
JOBS = Resource("batch", "v1", "jobs", "Job", True)

HORIZONTAL_POD_AUTOSCALERS = Resource(
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", True
)

LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", True)
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", True)
EVENTS_V1 = Resource("events.k8s.io", "v1", "events", "Event", True)
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", False)
RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", False)

CSI_DRIVERS = Resource("storage.k8s.io", "v1", "csidrivers", "CSIDriver", False)
CSI_NODES = Resource("storage.k8s.io", "v1", "csinodes", "CSINode", False)
CSI_STORAGE_CAPACITIES = Resource("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity", True)
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", "StorageClass", False)
VOLUME_ATTACHMENTS = Resource("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", False)

INGRESS_CLASSES = Resource("networking.k8s.io", "v1", "ingressclasses", "IngressClass", False)
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress", True)
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True)

CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False
)
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False)
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role", True)

MUTATING_WEBHOOK_CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration", False,
)  # fmt: skip
VALIDATING_WEBHOOK_CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration", False,
)  # fmt: skip
VALIDATING_ADMISSION_POLICIES = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", False
)
VALIDATING_ADMISSION_POLICY_BINDINGS = Resource(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding", False,
)  # fmt: skip

CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", False
)
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", False)
CERTIFICATE_SIGNING_REQUESTS = Resource(
    "certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", False
)
FLOW_SCHEMAS = Resource("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", False)
PRIORITY_LEVEL_CONFIGURATIONS = Resource(
    "flowcontrol.apiserver.k8s.io", "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration", False
)

DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", False)
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", True)
RESOURCE_CLAIM_TEMPLATES = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate", True
)
RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", False)

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False)
SELF_SUBJECT_REVIEWS = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False
)
LOCAL_SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", True
)
SELF_SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False
)
SELF_SUBJECT_RULES_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", False
)
SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False
)

BUILT_IN: tuple[Resource, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Resource)
)

_BY_KIND: Mapping[tuple[str, str], Resource] = {(r.api_version, r.kind): r for r in BUILT_IN}


def built_in_for(obj: Mapping[str, Any]) -> Resource | None:
    """The built-in resource an object belongs to, or None: then ask ``Discovery.for_object``."""
    return _BY_KIND.get((str(obj.get("apiVersion", "")), str(obj.get("kind", ""))))
