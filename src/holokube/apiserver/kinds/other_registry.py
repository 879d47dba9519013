"""Which class has the rules of which resource: everything but pods and workloads."""

from __future__ import annotations

from collections.abc import Mapping

from holokube.apiserver.kinds import (
    admission_policies,
    api_services,
    autoscaling,
    certificate_requests,
    configuration,
    customresourcedefinitions,
    dynamic_resources,
    endpoints,
    events,
    flow_control,
    leases,
    namespaces,
    networking,
    nodes,
    policy,
    quotas,
    rbac,
    runtime_classes,
    services,
    storage,
    volumes,
    webhook_configurations,
)
from holokube.apiserver.kinds.base import Kind

OTHER_KINDS: Mapping[tuple[str, str], type[Kind]] = {
    ("", "configmaps"): configuration.ConfigMap,
    ("", "endpoints"): endpoints.Endpoints,
    ("", "events"): events.Event,
    ("", "limitranges"): quotas.LimitRange,
    ("", "namespaces"): namespaces.Namespace,
    ("", "nodes"): nodes.Node,
    ("", "persistentvolumeclaims"): volumes.PersistentVolumeClaim,
    ("", "persistentvolumes"): volumes.PersistentVolume,
    ("", "resourcequotas"): quotas.ResourceQuota,
    ("", "secrets"): configuration.Secret,
    ("", "serviceaccounts"): configuration.ServiceAccount,
    ("", "services"): services.Service,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"): admission_policies.MutatingAdmissionPolicy,
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): (
        admission_policies.MutatingAdmissionPolicyBinding
    ),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"): (
        webhook_configurations.MutatingWebhookConfiguration
    ),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): admission_policies.ValidatingAdmissionPolicy,
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): (
        admission_policies.ValidatingAdmissionPolicyBinding
    ),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"): (
        webhook_configurations.ValidatingWebhookConfiguration
    ),
    ("apiextensions.k8s.io", "customresourcedefinitions"): customresourcedefinitions.CustomResourceDefinition,
    ("apiregistration.k8s.io", "apiservices"): api_services.APIService,
    ("autoscaling", "horizontalpodautoscalers"): autoscaling.HorizontalPodAutoscaler,
    ("certificates.k8s.io", "certificatesigningrequests"): certificate_requests.CertificateSigningRequest,
    ("coordination.k8s.io", "leases"): leases.Lease,
    ("discovery.k8s.io", "endpointslices"): endpoints.EndpointSlice,
    ("events.k8s.io", "events"): events.EventsEvent,
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): flow_control.FlowSchema,
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): flow_control.PriorityLevelConfiguration,
    ("networking.k8s.io", "ingressclasses"): networking.IngressClass,
    ("networking.k8s.io", "ingresses"): networking.Ingress,
    ("networking.k8s.io", "ipaddresses"): networking.IPAddress,
    ("networking.k8s.io", "networkpolicies"): networking.NetworkPolicy,
    ("networking.k8s.io", "servicecidrs"): networking.ServiceCIDR,
    ("node.k8s.io", "runtimeclasses"): runtime_classes.RuntimeClass,
    ("policy", "poddisruptionbudgets"): policy.PodDisruptionBudget,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): rbac.ClusterRoleBinding,
    ("rbac.authorization.k8s.io", "clusterroles"): rbac.ClusterRole,
    ("rbac.authorization.k8s.io", "rolebindings"): rbac.RoleBinding,
    ("rbac.authorization.k8s.io", "roles"): rbac.Role,
    ("resource.k8s.io", "deviceclasses"): dynamic_resources.DeviceClass,
    ("resource.k8s.io", "resourceclaims"): dynamic_resources.ResourceClaim,
    ("resource.k8s.io", "resourceclaimtemplates"): dynamic_resources.ResourceClaimTemplate,
    ("resource.k8s.io", "resourceslices"): dynamic_resources.ResourceSlice,
    ("scheduling.k8s.io", "priorityclasses"): policy.PriorityClass,
    ("storage.k8s.io", "csidrivers"): storage.CSIDriver,
    ("storage.k8s.io", "csinodes"): storage.CSINode,
    ("storage.k8s.io", "csistoragecapacities"): storage.CSIStorageCapacity,
    ("storage.k8s.io", "storageclasses"): storage.StorageClass,
    ("storage.k8s.io", "volumeattachments"): storage.VolumeAttachment,
    ("storage.k8s.io", "volumeattributesclasses"): storage.VolumeAttributesClass,
}
