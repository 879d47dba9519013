"""Rules for pod specs and pod templates."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.annotation_validation import (
    MIRROR,
    validate_pod_annotations,
    validate_profiles_agree,
)
from holokube.apiserver.kinds.container_validation import (
    PodContext,
    validate_containers,
    validate_ephemeral,
    validate_image_spaces,
    validate_init_containers,
)
from holokube.apiserver.kinds.pod_resources import validate_container_resources, validate_pod_level
from holokube.apiserver.kinds.scheduling_validation import (
    validate_affinity,
    validate_scheduling_gates,
    validate_tolerations,
    validate_topology_spread,
)
from holokube.apiserver.kinds.security_validation import (
    validate_host_process,
    validate_host_users,
    validate_os,
    validate_pod_security,
)
from holokube.apiserver.kinds.volume_validation import validate_volumes
from holokube.apiserver.metadata import validate_annotations, validate_labels
from holokube.kube import names
from holokube.kube.addresses import is_legacy_ip
from holokube.kube.types import JsonObject

RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_MAX_NAMESERVERS = 3
_MAX_SEARCHES = 32
_MAX_SEARCH_CHARS = 2048
_MAX_INT32 = 2**31 - 1
_HOSTNAME_OVERRIDE_MAX = 64
_VALID_SPECS_KEPT = 1024
_SUBDOMAIN_FIELDS = ("serviceAccountName", "nodeName")
_LABEL_FIELDS = ("hostname", "subdomain")
# What few pods have; a pod without any of these skips the rules for them in one step.
_RARE = frozenset(
    {
        "affinity", "topologySpreadConstraints", "schedulingGates", "readinessGates", "dnsConfig",
        "hostUsers", "hostnameOverride", "activeDeadlineSeconds", "hostAliases", "priorityClassName",
        "runtimeClassName", "preemptionPolicy", "overhead", "os", "schedulingGroup", "hostNetwork",
        "shareProcessNamespace", "hostname", "subdomain", "resources", "resourceClaims",
        "ephemeralContainers", "imagePullSecrets",
    }
)  # fmt: skip


def validate_pod(pod: JsonObject, errors: FieldErrors) -> None:
    """Rules for a pod that hold at creation and after every change. Metadata is checked by the caller."""
    meta, spec = pod["metadata"], pod["spec"]
    annotations = meta.get("annotations")
    if annotations:
        validate_pod_annotations(annotations, spec, "metadata.annotations", errors)
    validate_pod_spec(spec, "spec", errors, meta=meta)
    if not spec.get("serviceAccountName"):
        _validate_no_tokens(spec, errors)
    for key in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            validate_image_spaces(container, f"spec.{key}[{index}]", errors)


def _validate_no_tokens(spec: JsonObject, errors: FieldErrors) -> None:
    for index, volume in enumerate(spec.get("volumes") or ()):
        for number, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
            if "serviceAccountToken" in source:
                at = f"spec.volumes[{index}].projected.sources[{number}].serviceAccountToken"
                errors.forbidden(at, "must not be specified when serviceAccountName is not set")


def validate_new_pod(pod: JsonObject, errors: FieldErrors) -> None:
    """Rules for creation only."""
    validate_pod(pod, errors)
    spec = pod["spec"]
    if spec.get("ephemeralContainers"):
        errors.forbidden("spec.ephemeralContainers", "cannot be set on create")
    if spec.get("schedulingGates") and spec.get("nodeName"):
        errors.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared")
    annotations = pod["metadata"].get("annotations")
    if annotations:
        validate_profiles_agree(annotations, spec, "spec", errors)


def validate_template(template: JsonObject, path: str, errors: FieldErrors) -> None:
    """Upstream's ValidatePodTemplateSpec; the paths of labels and annotations lack ``metadata`` there too."""
    meta: JsonObject = template.get("metadata") or {}
    spec: JsonObject = template.get("spec") or {}
    annotations = meta.get("annotations")
    validate_labels(meta.get("labels"), f"{path}.labels", errors)
    if annotations:
        validate_annotations(annotations, f"{path}.annotations", errors)
        validate_pod_annotations(annotations, spec, f"{path}.annotations", errors)
    text = orjson.dumps(spec)
    if text not in _VALID_SPECS:
        known = len(errors.causes)
        validate_pod_spec(spec, f"{path}.spec", errors)
        if len(errors.causes) == known:
            _remember(text)
    if annotations:
        validate_profiles_agree(annotations, spec, f"{path}.spec", errors)
    if spec.get("ephemeralContainers"):
        errors.forbidden(
            f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"
        )


# Workloads are written far more often than their templates change, and jobs are made from one template in numbers.
_VALID_SPECS: dict[bytes, None] = {}


def _remember(text: bytes) -> None:
    if len(_VALID_SPECS) >= _VALID_SPECS_KEPT:
        _VALID_SPECS.clear()
    _VALID_SPECS[text] = None


def validate_pod_spec(
    spec: JsonObject, path: str, errors: FieldErrors, *, meta: JsonObject | None = None
) -> None:
    """Upstream's ValidatePodSpec. ``meta`` is given for pods, not for templates."""
    get = spec.get
    pod_name = meta.get("name", "") if meta else ""
    volumes = validate_volumes(get("volumes"), pod_name, f"{path}.volumes", errors, is_pod=meta is not None)
    claims = _validate_resource_claims(spec, meta, path, errors) if "resourceClaims" in spec else frozenset()
    host_users = get("hostUsers") is not False
    pod = PodContext(
        volumes, claims, get("terminationGracePeriodSeconds"), get("restartPolicy", ""), host_users
    )
    containers, inits = get("containers"), get("initContainers")
    validate_containers(containers, pod, f"{path}.containers", errors)
    if inits:
        validate_init_containers(inits, containers or (), pod, f"{path}.initContainers", errors)
    rare = not _RARE.isdisjoint(spec)
    if rare:
        _validate_placement(spec, pod, path, errors, is_pod=meta is not None)
    policy = pod.restart_policy
    if policy not in RESTART_POLICIES:
        errors.not_supported(f"{path}.restartPolicy", policy, RESTART_POLICIES)
    policy = get("dnsPolicy", "")
    if policy not in _DNS_POLICIES:
        errors.not_supported(f"{path}.dnsPolicy", policy, _DNS_POLICIES)
    selector = get("nodeSelector")
    if selector:
        validate_labels(selector, f"{path}.nodeSelector", errors)
    if get("securityContext") or rare:
        validate_pod_security(spec, path, errors)
    validate_dns_config(get("dnsConfig"), policy, f"{path}.dnsConfig", errors)
    for key in _SUBDOMAIN_FIELDS:
        value = get(key)
        if value:
            problems = names.is_dns1123_subdomain(value)
            if problems:
                errors.all_invalid(f"{path}.{key}", value, problems)
    tolerations = get("tolerations")
    if tolerations:
        validate_tolerations(tolerations, f"{path}.tolerations", errors)
    if rare:
        _validate_rare(spec, path, errors)
    validate_host_process(spec, path, errors)
    _validate_file_variables(spec, path, errors)


def _validate_placement(
    spec: JsonObject, pod: PodContext, path: str, errors: FieldErrors, *, is_pod: bool
) -> None:
    """Rules that upstream applies right after the containers."""
    if spec.get("ephemeralContainers"):
        validate_ephemeral(spec, pod, f"{path}.ephemeralContainers", errors)
    if spec.get("resources") is not None:
        validate_pod_level(spec, pod.claims, path, errors)
    if spec.get("hostNetwork"):
        _validate_host_network_ports(spec, path, errors, is_pod=is_pod)


def _validate_host_network_ports(spec: JsonObject, path: str, errors: FieldErrors, *, is_pod: bool) -> None:
    for index, container in enumerate(spec.get("containers") or ()):
        for number, port in enumerate(container.get("ports") or ()):
            host = port.get("hostPort", 0)
            if (is_pod or host) and host != port.get("containerPort", 0):
                at = f"{path}.containers[{index}].ports[{number}].hostPort"
                errors.invalid(at, host, "must match `containerPort` when `hostNetwork` is true")


def _validate_rare(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    get = spec.get
    if get("affinity"):
        validate_affinity(spec["affinity"], f"{path}.affinity", errors)
    for index, gate in enumerate(get("readinessGates") or ()):
        kind = gate.get("conditionType", "")
        at = f"{path}.readinessGates[{index}].conditionType"
        errors.all_invalid(at, kind, names.is_qualified_name(kind))
    validate_scheduling_gates(get("schedulingGates") or (), f"{path}.schedulingGates", errors)
    validate_topology_spread(
        get("topologySpreadConstraints") or [], f"{path}.topologySpreadConstraints", errors
    )
    validate_host_users(spec, path, errors)
    _validate_hostname_override(spec, path, errors)
    deadline_s = get("activeDeadlineSeconds")
    if deadline_s is not None and not 1 <= deadline_s <= _MAX_INT32:
        detail = names.inclusive_range_error(1, _MAX_INT32)
        errors.invalid(f"{path}.activeDeadlineSeconds", deadline_s, detail)
    for key in _LABEL_FIELDS:
        value = get(key)
        if value:
            errors.all_invalid(f"{path}.{key}", value, names.is_dns1123_label(value))
    _validate_host_aliases(get("hostAliases") or (), f"{path}.hostAliases", errors)
    for key in ("priorityClassName", "runtimeClassName"):
        value = get(key)
        if value or (key == "runtimeClassName" and value is not None):
            errors.all_invalid(f"{path}.{key}", value, names.is_dns1123_subdomain(value))
    preemption = get("preemptionPolicy")
    if preemption is not None and preemption not in _PREEMPTION_POLICIES:
        if preemption:
            errors.not_supported(f"{path}.preemptionPolicy", preemption, _PREEMPTION_POLICIES)
        else:
            errors.required(f"{path}.preemptionPolicy")
    if get("overhead"):
        validate_container_resources({"limits": spec["overhead"]}, (), f"{path}.overhead", errors)
    if get("os") is not None:
        validate_os(spec, path, errors)


def _validate_hostname_override(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    name = spec.get("hostnameOverride")
    if name is None:
        return
    at = f"{path}.hostnameOverride"
    if spec.get("setHostnameAsFQDN"):
        errors.forbidden(at, "may not be specified when setHostnameAsFQDN is true")
    if spec.get("hostNetwork"):
        errors.forbidden(at, "may not be specified when hostNetwork is true")
    if len(name) > _HOSTNAME_OVERRIDE_MAX:
        errors.too_long(at, name, _HOSTNAME_OVERRIDE_MAX)
    errors.all_invalid(at, name, names.is_dns1123_subdomain(name))


def _validate_host_aliases(aliases: Iterable[JsonObject], path: str, errors: FieldErrors) -> None:
    for index, alias in enumerate(aliases):
        address = alias.get("ip", "")
        errors.all_invalid(f"{path}[{index}].ip", address, is_legacy_ip(address))
        for number, host in enumerate(alias.get("hostnames") or ()):
            at = f"{path}[{index}].hostnames[{number}]"
            errors.all_invalid(at, host, names.is_dns1123_subdomain(host))


def validate_dns_config(config: JsonObject | None, policy: str, path: str, errors: FieldErrors) -> None:
    if config is None:
        if policy == "None":
            errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
        return
    servers: list[str] = config.get("nameservers") or []
    searches: list[str] = config.get("searches") or []
    if policy == "None" and not servers:
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        errors.required(f"{path}.nameservers", detail)
        return
    if len(servers) > _MAX_NAMESERVERS:
        errors.invalid(
            f"{path}.nameservers", servers, f"must not have more than {_MAX_NAMESERVERS} nameservers"
        )
    for index, server in enumerate(servers):
        errors.all_invalid(f"{path}.nameservers[{index}]", server, is_legacy_ip(server))
    if len(searches) > _MAX_SEARCHES:
        errors.invalid(f"{path}.searches", searches, f"must not have more than {_MAX_SEARCHES} search paths")
    if len(" ".join(searches)) > _MAX_SEARCH_CHARS:
        detail = (
            f"must not have more than {_MAX_SEARCH_CHARS} characters (including spaces) in the search list"
        )
        errors.invalid(f"{path}.searches", searches, detail)
    for index, search in enumerate(searches):
        if search != ".":
            domain = search.removesuffix(".")
            problems = names.is_dns1123_subdomain_with_underscore(domain)
            errors.all_invalid(f"{path}.searches[{index}]", domain, problems)
    for index, option in enumerate(config.get("options") or ()):
        if not option.get("name"):
            errors.required(f"{path}.options[{index}]", "must not be empty")


def _validate_resource_claims(
    spec: JsonObject, meta: JsonObject | None, path: str, errors: FieldErrors
) -> frozenset[str]:
    """``spec.resourceClaims``; returns the names that containers may refer to."""
    claims = spec.get("resourceClaims") or []
    is_static = meta is not None and MIRROR in (meta.get("annotations") or {})
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        at = f"{path}.resourceClaims[{index}]"
        if is_static:
            errors.forbidden("", "static pods do not support resource claims")
            continue
        name = claim.get("name", "")
        if not name:
            errors.required(f"{at}.name")
        elif name in seen:
            errors.duplicate(f"{at}.name", name)
        else:
            errors.all_invalid(f"{at}.name", name, names.is_dns1123_label(name))
            seen.add(name)
        existing, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        shown = {"Name": name, "ResourceClaimName": existing, "ResourceClaimTemplateName": template}
        if existing is not None and template is not None:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            errors.invalid(at, shown, detail)
        if existing is None and template is None:
            errors.invalid(at, shown, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for key, value in (("resourceClaimName", existing), ("resourceClaimTemplateName", template)):
            if value is not None:
                errors.all_invalid(f"{at}.{key}", value, names.is_dns1123_subdomain(value))
    return frozenset(claim["name"] for claim in claims if claim.get("name"))


def _validate_file_variables(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    """Variables read from a file come from an ``emptyDir`` of the pod."""
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            for number, variable in enumerate(container.get("env") or ()):
                if "valueFrom" not in variable:
                    continue
                reference = variable["valueFrom"].get("fileKeyRef")
                if reference is None:
                    continue
                name = reference.get("volumeName", "")
                at = f"{path}.{key}[{index}].env[{number}].valueFrom.fileKeyRef.volumeName"
                source = next((v for v in spec.get("volumes") or () if v.get("name") == name), None)
                if source is None:
                    errors.not_found(at, name)
                elif "emptyDir" not in source:
                    errors.invalid(at, name, "referenced volume must be of type emptyDir")
