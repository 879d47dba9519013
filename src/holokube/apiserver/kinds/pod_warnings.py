"""What ``kubectl`` shows as ``Warning:`` when a pod or a pod template is written."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from holokube.apiserver.kinds.annotation_validation import apparmor_profile
from holokube.apiserver.kinds.security_validation import (
    APPARMOR_CONTAINER,
    SECCOMP_CONTAINER,
    SECCOMP_POD,
    all_containers,
)
from holokube.kube import names, quantity
from holokube.kube.quoting import go_quote
from holokube.kube.types import JsonObject

_RENAMED = 'deprecated since v1.{}; use "{}" instead'
DEPRECATED_NODE_LABELS = {
    "beta.kubernetes.io/arch": _RENAMED.format(14, "kubernetes.io/arch"),
    "beta.kubernetes.io/os": _RENAMED.format(14, "kubernetes.io/os"),
    "failure-domain.beta.kubernetes.io/region": _RENAMED.format(17, "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": _RENAMED.format(17, "topology.kubernetes.io/zone"),
    "beta.kubernetes.io/instance-type": _RENAMED.format(17, "node.kubernetes.io/instance-type"),
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "deprecated since v1.22; use Taints and Tolerations instead"
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_DEPRECATED_ANNOTATIONS = (
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        'non-functional in v1.16+; use the "priorityClassName" field instead',
    ),
    ("security.alpha.kubernetes.io/sysctls", 'non-functional in v1.11+; use the "sysctls" field instead'),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        'non-functional in v1.11+; use the "sysctls" field instead',
    ),
)
_DEPRECATED_VOLUMES = (
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_NULL_SELECTOR = "a null labelSelector results in matching no pod"
_USE_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_USE_APPARMOR = 'deprecated since v1.30; use the "appArmorProfile" field instead'


def template_warnings(template: JsonObject, path: str) -> list[str]:
    """Warnings about a pod template at ``path``."""
    return pod_warnings(template.get("spec") or {}, template.get("metadata") or {}, path)


def pod_warnings(spec: JsonObject, meta: JsonObject, path: str) -> list[str]:
    """Warnings about a pod (``path`` empty) or a template, in upstream's order."""
    at = f"{path}.spec" if path else "spec"
    found: list[str] = []
    if spec.get("nodeSelector"):
        deprecated = [key for key in spec["nodeSelector"] if key in DEPRECATED_NODE_LABELS]
        found += [f"{at}.nodeSelector[{key}]: {DEPRECATED_NODE_LABELS[key]}" for key in deprecated]
    affinity = spec.get("affinity")
    if affinity:
        found += _node_affinity_warnings(affinity.get("nodeAffinity") or {}, f"{at}.affinity.nodeAffinity")
    if spec.get("topologySpreadConstraints"):
        found += _spread_warnings(spec["topologySpreadConstraints"], f"{at}.topologySpreadConstraints")
    annotations = meta.get("annotations")
    where = f"{path}.metadata.annotations" if path else "metadata.annotations"
    if annotations:
        for key, message in _DEPRECATED_ANNOTATIONS:
            if key in annotations:
                found.append(f"{where}[{key}]: {message}")
    if spec.get("volumes"):
        found += _volume_warnings(spec["volumes"], f"{at}.volumes")
    found += _reference_warnings(spec, at)
    if spec.get("overhead"):
        found += _fraction_warnings(spec["overhead"], f"{at}.overhead")
    if annotations:
        found += _profile_warnings(spec, annotations, where, is_template=bool(path))
    found += _container_warnings(spec, at)
    grace_s = spec.get("terminationGracePeriodSeconds")
    if grace_s is not None and grace_s < 0:
        detail = "must be >= 0; negative values are invalid and will be treated as 1"
        found.append(f"{at}.terminationGracePeriodSeconds: {detail}")
    if affinity:
        found += _pod_affinity_warnings(affinity, f"{at}.affinity")
    return list(dict.fromkeys(found)) if found else found


def _node_affinity_warnings(affinity: JsonObject, path: str) -> list[str]:
    found = []
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        found += _node_term_warnings(
            term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{index}]", check_values=False
        )
    for index, preferred in enumerate(affinity.get(_PREFERRED) or ()):
        term = preferred.get("preference") or {}
        found += _node_term_warnings(term, f"{path}.{_PREFERRED}[{index}].preference", check_values=True)
    return found


def _node_term_warnings(term: JsonObject, path: str, *, check_values: bool) -> list[str]:
    found = []
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        key = expression.get("key", "")
        at = f"{path}.matchExpressions[{index}]"
        if key in DEPRECATED_NODE_LABELS:
            found.append(f"{at}.key: {key} is {DEPRECATED_NODE_LABELS[key]}")
        if check_values:
            for number, value in enumerate(expression.get("values") or ()):
                found += [
                    f"{at}.values[{number}]: {value} is invalid, {m}" for m in names.is_label_value(value)
                ]
    return found


def _spread_warnings(constraints: Iterable[JsonObject], path: str) -> list[str]:
    found = []
    for index, constraint in enumerate(constraints):
        key = constraint.get("topologyKey", "")
        if key in DEPRECATED_NODE_LABELS:
            found.append(f"{path}[{index}].topologyKey: {key} is {DEPRECATED_NODE_LABELS[key]}")
        if constraint.get("labelSelector") is None:
            found.append(f"{path}[{index}].labelSelector: {_NULL_SELECTOR}")
    return found


def _pod_affinity_warnings(affinity: JsonObject, path: str) -> list[str]:
    found = []
    for key in ("podAffinity", "podAntiAffinity"):
        pods = affinity.get(key) or {}
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                found.append(f"{path}.{key}.{_REQUIRED}[{index}].labelSelector: {_NULL_SELECTOR}")
        for index, weighted in enumerate(pods.get(_PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                at = f"{path}.{key}.{_PREFERRED}[{index}].podAffinityTerm"
                found.append(f"{at}.labelSelector: {_NULL_SELECTOR}")
    return found


def _volume_warnings(volumes: Iterable[JsonObject], path: str) -> list[str]:
    found = []
    overlaps = []
    for index, volume in enumerate(volumes):
        for key, shown, message in _DEPRECATED_VOLUMES:
            if key in volume:
                found.append(f"{path}[{index}].{shown}: {message}")
        template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if template:
            at = f"{path}[{index}].ephemeral.volumeClaimTemplate.spec"
            found += claim_warnings(template.get("spec") or {}, at)
        overlaps += _overlap_warnings(volume)
    return found + overlaps


def claim_warnings(spec: JsonObject, path: str) -> list[str]:
    """Warnings about the spec of a persistent volume claim."""
    found = []
    for part in ("requests", "limits"):
        text = ((spec.get("resources") or {}).get(part) or {}).get("storage")
        if text is not None:
            found += _fraction_warnings({"storage": text}, f"{path}.resources.{part}", ("storage",))
    return found


def _fraction_warnings(
    amounts: JsonObject, path: str, resources: tuple[str, ...] = ("memory", "ephemeral-storage")
) -> list[str]:
    found = []
    for name in resources:
        text = amounts.get(name)
        if text is not None and quantity.milli_of(text) % 1000:
            found.append(f'{path}[{name}]: fractional byte value "{text}" is invalid, must be an integer')
    return found


def _overlap_warnings(volume: JsonObject) -> list[str]:
    """Files of one volume that would be written over each other."""
    name = volume.get("name", "")
    for key, shown, field in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        source = volume.get(key)
        if source and source.get("items"):
            title = f"{shown} {go_quote(source.get(field, ''))}"
            return _overlaps(name, title, [(item.get("path", ""), "") for item in source["items"]])
    downward = volume.get("downwardAPI")
    if downward and downward.get("items"):
        return _overlaps(name, "DownwardAPI", [(item.get("path", ""), "") for item in downward["items"]])
    projected = volume.get("projected")
    if not projected:
        return []
    found, files = [], []
    for source in projected.get("sources") or ():
        if not source:
            found.append(f"volume {go_quote(name)} (Projected) has no sources provided")
        files += _projected_files(source)
    return found + _overlaps(name, "Projected", files)


def _projected_files(source: JsonObject) -> list[tuple[str, str]]:
    for key, shown in (("configMap", "ConfigMap"), ("secret", "Secret")):
        content = source.get(key)
        if content and content.get("items"):
            title = f"{shown} {go_quote(content.get('name', ''))}"
            return [(item.get("path", ""), title) for item in content["items"]]
    downward = source.get("downwardAPI")
    if downward and downward.get("items"):
        return [(item.get("path", ""), "DownwardAPI") for item in downward["items"]]
    if "serviceAccountToken" in source:
        return [(source["serviceAccountToken"].get("path", ""), "ServiceAccountToken")]
    return []


def _overlaps(volume: str, title: str, files: Iterable[tuple[str, str]]) -> list[str]:
    found = []
    known: list[tuple[str, str]] = []
    for raw, source in files:
        file_path = raw.rstrip("/")
        for other, other_source in known:
            below = f"{file_path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{file_path}/")
            if file_path and other and below:
                body = f"{_shown_file(file_path, source)} with {_shown_file(other, other_source)}"
                found.append(f"volume {go_quote(volume)} ({title}): overlapping paths: {body}")
        known.append((file_path, source))
    return found


def _shown_file(file_path: str, source: str) -> str:
    return f"{go_quote(file_path)} ({source})" if source else go_quote(file_path)


def _reference_warnings(spec: JsonObject, path: str) -> list[str]:
    found = []
    for key, field in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for index, item in enumerate(spec.get(key) or ()):
            value = item.get(field, "")
            if value in seen:
                found.append(f"{path}.{key}[{index}].{field}: duplicate {field} {go_quote(value)}")
            seen.add(value)
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            found.append(f'{path}.imagePullSecrets[{index}].name: invalid empty name ""')
    return found


def _profile_warnings(
    spec: JsonObject, annotations: JsonObject, path: str, *, is_template: bool
) -> list[str]:
    found = []
    pod_context = spec.get("securityContext") or {}
    if SECCOMP_POD in annotations and not pod_context.get("seccompProfile"):
        found.append(f"{path}[{SECCOMP_POD}]: {_USE_SECCOMP}")
    for container, _ in all_containers(spec, ""):
        context = container.get("securityContext") or {}
        key = SECCOMP_CONTAINER + container.get("name", "")
        if key in annotations and not context.get("seccompProfile"):
            found.append(f"{path}[{key}]: {_USE_SECCOMP}")
        key = APPARMOR_CONTAINER + container.get("name", "")
        if key not in annotations:
            continue
        profile = apparmor_profile(annotations[key])
        pod_profile = pod_context.get("appArmorProfile")
        if is_template:
            if "appArmorProfile" not in context and (pod_profile is None or profile != pod_profile):
                found.append(f"{path}[{key}]: {_USE_APPARMOR}")
        elif profile is None or (profile != pod_profile and context.get("appArmorProfile") == profile):
            # By now the annotation of a pod has been copied into the field.
            found.append(f"{path}[{key}]: {_USE_APPARMOR}")
    return found


def _container_warnings(spec: JsonObject, path: str) -> list[str]:
    found: list[str] = []
    ports: list[tuple[JsonObject, str]] = []
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            resources = container.get("resources")
            if resources:
                at = f"{path}.{key}[{index}].resources"
                for name in ("memory", "ephemeral-storage"):
                    for part in ("limits", "requests"):
                        amounts = resources.get(part)
                        if amounts and name in amounts:
                            found += _fraction_warnings(amounts, f"{at}.{part}", (name,))
            env = container.get("env")
            if env and len(env) > 1:
                found += _hidden_variables(env, f"{path}.{key}[{index}].env")
            for number, port in enumerate(container.get("ports") or ()):
                ports.append((port, f"{path}.{key}[{index}].ports[{number}]"))
    return found + (_port_warnings(ports) if ports else [])


def _hidden_variables(env: Iterable[JsonObject], path: str) -> list[str]:
    found = []
    seen: set[str] = set()
    for index, variable in enumerate(env):
        name = variable.get("name", "")
        if name in seen:
            reference, value = f"$({name})", variable.get("value", "")
            # Building on the previous value is a known habit and fine.
            if "valueFrom" in variable or value == reference or reference not in value:
                detail = (
                    f"hides previous definition of {go_quote(name)}, which may be dropped when using apply"
                )
                found.append(f"{path}[{index}]: {detail}")
        seen.add(name)
    return found


def _port_warnings(ports: list[tuple[JsonObject, str]]) -> list[str]:
    found = []
    by_number: dict[Any, list[tuple[JsonObject, str]]] = {}
    for port, at in ports:
        address, host = port.get("hostIP", ""), port.get("hostPort", 0)
        if address and not host:
            shown = (
                f"{{Name:{port.get('name', '')} HostPort:0 ContainerPort:{port.get('containerPort', 0)} "
                f"Protocol:{port.get('protocol', '')} HostIP:{address}}}"
            )
            found.append(f"{at}: hostIP set without hostPort: {shown}")
        others = by_number.setdefault((port.get("containerPort"), port.get("protocol")), [])
        for other, where in others:
            other_address, other_host = other.get("hostIP", ""), other.get("hostPort", 0)
            if address == other_address and host == other_host:
                found.append(f"{at}: duplicate port definition with {where}")
            elif not host or not other_host:
                found.append(f"{at}: overlapping port definition with {where}")
            elif host == other_host and bool(address) != bool(other_address):
                found.append(f"{at}: dangerously ambiguous port definition with {where}")
        others.append((port, at))
    first: dict[str, str] = {}
    for port, at in ports:
        name = port.get("name")
        if name and name in first:
            found.append(
                f"{at}: duplicate port name {go_quote(name)} with {first[name]}, services and probes that "
                f"select ports by name will use {first[name]}"
            )
        elif name:
            first[name] = at
    return found
