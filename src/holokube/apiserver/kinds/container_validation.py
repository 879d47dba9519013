"""Rules for containers, init containers and ephemeral containers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.env_validation import validate_env, validate_env_from
from holokube.apiserver.kinds.paths import has_backstep, validate_descending
from holokube.apiserver.kinds.pod_resources import validate_container_resources
from holokube.apiserver.kinds.probe_validation import validate_probes_and_hooks
from holokube.apiserver.kinds.security_validation import validate_container_security
from holokube.kube import names
from holokube.kube.types import JsonObject

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RESTART_ACTIONS = ("Restart", "RestartAllContainers")
_MAX_RESTART_RULES = 20
_MAX_EXIT_CODES = 255
_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_READ_ONLY_MODES = ("Disabled", "Enabled", "IfPossible")
_NOT_FOR_EPHEMERAL = (
    "ports", "resources", "resizePolicy", "restartPolicy", "restartPolicyRules", "livenessProbe",
    "readinessProbe", "startupProbe", "lifecycle",
)  # fmt: skip
_NEEDS_POLICY = "must specify restartPolicy when restart rules are used"
_NEEDS_RESTART = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")


@dataclass(frozen=True, slots=True)
class PodContext:
    """What the rules for a container need to know about its pod."""

    volumes: Mapping[str, JsonObject]
    claims: Collection[str]
    grace_s: int | None
    restart_policy: str
    host_users: bool


def validate_containers(
    containers: list[JsonObject] | None, pod: PodContext, path: str, errors: FieldErrors
) -> None:
    if not containers:
        errors.required(path)
        return
    seen: set[str] = set()
    host_ports: set[str] = set()
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        _validate_common(container, pod, at, errors)
        name = container.get("name", "")
        if name in seen:
            errors.duplicate(f"{at}.name", name)
        seen.add(name)
        validate_probes_and_hooks(container, pod.grace_s, at, errors)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            _validate_restart_policy(container, at, errors)
    for index, container in enumerate(containers):
        if "ports" in container:
            _validate_host_ports(container, host_ports, f"{path}[{index}]", errors)


def validate_init_containers(
    inits: Iterable[JsonObject],
    regular: Iterable[JsonObject],
    pod: PodContext,
    path: str,
    errors: FieldErrors,
) -> None:
    seen = {container.get("name", "") for container in regular}
    for index, container in enumerate(inits):
        at = f"{path}[{index}]"
        _validate_common(container, pod, at, errors)
        if "restartPolicy" in container:
            _validate_restart_policy(container, at, errors)
        elif "restartPolicyRules" in container:
            errors.required(f"{at}.restartPolicy", _NEEDS_POLICY)
        is_sidecar = container.get("restartPolicy") == "Always"
        name = container.get("name", "")
        if name in seen:
            errors.duplicate(f"{at}.name", name)
        elif name:
            seen.add(name)
        # Upstream counts from zero here, for it looks at one init container at a time.
        _validate_host_ports(container, set(), f"{path}[0]", errors)
        if is_sidecar:
            validate_probes_and_hooks(container, pod.grace_s, at, errors)
            continue
        for key in _NEEDS_RESTART:
            if key in container:
                detail = "may not be set for init containers without restartPolicy=Always"
                errors.forbidden(f"{at}.{key}", detail)
        for number, policy in enumerate(container.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                errors.invalid(
                    f"{at}.resizePolicy[{number}].restartPolicy", "RestartContainer",
                    "must not be set to 'RestartContainer' for non-sidecar initContainers",
                )  # fmt: skip


def validate_ephemeral(spec: JsonObject, pod: PodContext, path: str, errors: FieldErrors) -> None:
    """Containers that are added to a running pod for debugging."""
    others = {c.get("name", "") for key in ("containers", "initContainers") for c in spec.get(key) or ()}
    seen = set(others)
    for index, container in enumerate(spec["ephemeralContainers"]):
        at = f"{path}[{index}]"
        _validate_common(container, pod, at, errors)
        validate_image_spaces(container, at, errors)
        name = container.get("name", "")
        if name in seen:
            errors.duplicate(f"{at}.name", name)
        seen.add(name)
        target = container.get("targetContainerName")
        if target and target not in others:
            errors.not_found(f"{at}.targetContainerName", target)
        for key in _NOT_FOR_EPHEMERAL:
            if container.get(key) or (key in _NEEDS_RESTART and key in container):
                errors.forbidden(f"{at}.{key}", "cannot be set for an Ephemeral Container")
        for number, mount in enumerate(container.get("volumeMounts") or ()):
            for key in ("subPath", "subPathExpr"):
                if mount.get(key):
                    detail = "cannot be set for an Ephemeral Container"
                    errors.forbidden(f"{at}.volumeMounts[{number}].{key}", detail)


def validate_image_spaces(container: JsonObject, path: str, errors: FieldErrors) -> None:
    """Spaces around an image name pass in a template, but not in a pod."""
    image: str = container.get("image", "")
    if image != image.strip():
        errors.invalid(f"{path}.image", image, "must not have leading or trailing whitespace")


def _validate_common(container: JsonObject, pod: PodContext, path: str, errors: FieldErrors) -> None:
    get = container.get
    name = get("name")
    if not name:
        errors.required(f"{path}.name")
    else:
        problems = names.is_dns1123_label(name)
        if problems:
            errors.all_invalid(f"{path}.name", name, problems)
    if not get("image"):
        errors.required(f"{path}.image")
    policy = get("terminationMessagePolicy", "")
    if policy not in _MESSAGE_POLICIES:
        errors.not_supported(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    ports = get("ports")
    if ports:
        _validate_ports(ports, f"{path}.ports", errors)
    env = get("env")
    if env:
        validate_env(env, f"{path}.env", errors)
    env_from = get("envFrom")
    if env_from:
        validate_env_from(env_from, f"{path}.envFrom", errors)
    mounts, devices = get("volumeMounts"), get("volumeDevices")
    if mounts:
        _validate_mounts(container, mounts, devices or [], pod, f"{path}.volumeMounts", errors)
    if devices:
        _validate_devices(devices, mounts or [], pod, f"{path}.volumeDevices", errors)
    validate_pull_policy(get("imagePullPolicy", ""), f"{path}.imagePullPolicy", errors)
    resources = get("resources")
    if resources:
        validate_container_resources(resources, pod.claims, f"{path}.resources", errors)
    resize = get("resizePolicy")
    if resize:
        _validate_resize_policy(resize, pod.restart_policy, f"{path}.resizePolicy", errors)
    security = get("securityContext")
    if security:
        validate_container_security(security, f"{path}.securityContext", errors, host_users=pod.host_users)


def validate_pull_policy(policy: str, path: str, errors: FieldErrors) -> None:
    if policy not in _PULL_POLICIES:
        if policy:
            errors.not_supported(path, policy, _PULL_POLICIES)
        else:
            errors.required(path)


def _validate_ports(ports: Iterable[JsonObject], path: str, errors: FieldErrors) -> None:
    seen: set[str] = set()
    for index, port in enumerate(ports):
        name = port.get("name")
        if name:
            problems = names.is_port_name(name)
            if problems:
                errors.all_invalid(f"{path}[{index}].name", name, problems)
            elif name in seen:
                errors.duplicate(f"{path}[{index}].name", name)
            seen.add(name)
        number = port.get("containerPort", 0)
        if number == 0:
            errors.required(f"{path}[{index}].containerPort")
        elif not 1 <= number <= 65535:
            errors.all_invalid(f"{path}[{index}].containerPort", number, names.is_port_number(number))
        host = port.get("hostPort", 0)
        if host and not 1 <= host <= 65535:
            errors.all_invalid(f"{path}[{index}].hostPort", host, names.is_port_number(host))
        protocol = port.get("protocol", "")
        if protocol not in _PROTOCOLS:
            errors.not_supported(f"{path}[{index}].protocol", protocol, _PROTOCOLS)


def _validate_host_ports(container: JsonObject, taken: set[str], path: str, errors: FieldErrors) -> None:
    """No two containers can use one port of the node."""
    for index, port in enumerate(container.get("ports") or ()):
        number = port.get("hostPort")
        if number:
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{number}"
            if key in taken:
                errors.duplicate(f"{path}.ports[{index}].hostPort", key)
            taken.add(key)


def _validate_mounts(
    container: JsonObject,
    mounts: list[JsonObject],
    devices: list[JsonObject],
    pod: PodContext,
    path: str,
    errors: FieldErrors,
) -> None:
    device_paths = {device.get("name", ""): device.get("devicePath", "") for device in devices}
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        name, where = mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.required(f"{path}[{index}].name")
        if name not in pod.volumes:
            errors.not_found(f"{path}[{index}].name", name)
        if not where:
            errors.required(f"{path}[{index}].mountPath")
        if where in seen:
            errors.invalid(f"{path}[{index}].mountPath", where, "must be unique")
        seen.add(where)
        if device_paths:
            if name in device_paths:
                errors.invalid(f"{path}[{index}].name", name, "must not already exist in volumeDevices")
            if where in device_paths.values():
                detail = "must not already exist as a path in volumeDevices"
                errors.invalid(f"{path}[{index}].mountPath", where, detail)
        if len(mount) > 2:
            _validate_mount_options(container, mount, path, f"{path}[{index}]", errors)


def _validate_mount_options(
    container: JsonObject, mount: JsonObject, path: str, at: str, errors: FieldErrors
) -> None:
    """Upstream names most of these without the index of the mount."""
    sub_path, expression = mount.get("subPath"), mount.get("subPathExpr")
    if sub_path:
        validate_descending(sub_path, f"{path}.subPath", errors)
    if expression:
        if sub_path:
            errors.invalid(f"{at}.subPathExpr", expression, "subPathExpr and subPath are mutually exclusive")
        validate_descending(expression, f"{path}.subPathExpr", errors)
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        if propagation not in _PROPAGATIONS:
            errors.not_supported(f"{path}.mountPropagation", propagation, _PROPAGATIONS)
        privileged = (container.get("securityContext") or {}).get("privileged")
        if propagation == "Bidirectional" and not privileged:
            detail = "Bidirectional mount propagation is available only to privileged containers"
            errors.forbidden(f"{path}.mountPropagation", detail)
    mode = mount.get("recursiveReadOnly")
    if mode in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            errors.forbidden(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true")
        if propagation not in (None, "None"):
            detail = "may only be specified when mountPropagation is None or not specified"
            errors.forbidden(f"{path}.recursiveReadOnly", detail)
    elif mode not in (None, "Disabled"):
        errors.not_supported(f"{path}.recursiveReadOnly", mode, _READ_ONLY_MODES)


def _validate_devices(
    devices: list[JsonObject], mounts: list[JsonObject], pod: PodContext, path: str, errors: FieldErrors
) -> None:
    mount_paths = {mount.get("name", ""): mount.get("mountPath", "") for mount in mounts}
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for index, device in enumerate(devices):
        at = f"{path}[{index}]"
        name, where = device.get("name", ""), device.get("devicePath", "")
        source: Mapping[str, Any] | None = pod.volumes.get(name)
        if not name:
            errors.required(f"{at}.name")
        if name in seen_names:
            errors.invalid(f"{at}.name", name, "must be unique")
        if source is None:
            errors.not_found(f"{at}.name", name)
        elif "persistentVolumeClaim" not in source and "ephemeral" not in source:
            detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.invalid(f"{at}.name", name, detail)
        if not where:
            errors.required(f"{at}.devicePath")
        if where in seen_paths:
            errors.invalid(f"{at}.devicePath", where, "must be unique")
        if where and has_backstep(where):
            errors.invalid(f"{at}.devicePath", where, "can not contain backsteps ('..')")
        else:
            seen_paths.add(where)
        if name in mount_paths:
            errors.invalid(f"{at}.name", name, "must not already exist in volumeMounts")
        if where in mount_paths.values():
            errors.invalid(f"{at}.devicePath", where, "must not already exist as a path in volumeMounts")
        if name:
            seen_names.add(name)


def _validate_resize_policy(
    policies: Iterable[JsonObject], restart_policy: str, path: str, errors: FieldErrors
) -> None:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            errors.duplicate(f"{path}[{index}]", resource)
        seen.add(resource)
        for value, supported in (
            (resource, ("cpu", "memory")),
            (restart, ("NotRequired", "RestartContainer")),
        ):
            if not value:
                errors.required(path)
            elif value not in supported:
                errors.not_supported(path, value, supported)
        if restart_policy == "Never" and restart != "NotRequired":
            errors.invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


def _validate_restart_policy(container: JsonObject, path: str, errors: FieldErrors) -> None:
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is None:
        if not rules:
            return
        errors.required(f"{path}.restartPolicy", _NEEDS_POLICY)
    elif policy not in _RESTART_POLICIES:
        errors.not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    if len(rules) > _MAX_RESTART_RULES:
        errors.too_many(f"{path}.restartPolicyRules", len(rules), _MAX_RESTART_RULES)
    for index, rule in enumerate(rules):
        at = f"{path}.restartPolicyRules[{index}]"
        action = rule.get("action", "")
        if action not in _RESTART_ACTIONS:
            errors.not_supported(f"{at}.action", action, _RESTART_ACTIONS)
        codes = rule.get("exitCodes")
        if codes is None:
            errors.required(f"{at}.exitCodes", "must be specified")
            continue
        operator, values = codes.get("operator", ""), codes.get("values") or []
        if operator not in ("In", "NotIn"):
            errors.not_supported(f"{at}.exitCodes.operator", operator, ("In", "NotIn"))
        if len(values) > _MAX_EXIT_CODES:
            errors.too_many(f"{at}.exitCodes.values", len(values), _MAX_EXIT_CODES)
