"""PodSecurity: the Pod Security Standards, as far as labels of the namespace ask for them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from holokube.apiserver.admission.base import (
    CREATE_OR_UPDATE,
    NAMESPACES,
    PODS,
    Attributes,
    GroupResource,
    Operation,
    Plugin,
    refuse,
)
from holokube.apiserver.admission.pod_security_checks import BASELINE, LATEST_MINOR, RESTRICTED, Violation
from holokube.apiserver.kinds.base import Lookup
from holokube.kube.errors import Cause, invalid
from holokube.kube.types import JsonObject

_PREFIX: Final = "pod-security.kubernetes.io/"
_LEVELS: Final = ("privileged", "baseline", "restricted")
_MODES: Final = ("enforce", "audit", "warn")
_MODE_LABELS: Final = frozenset(_PREFIX + mode for mode in _MODES)
_VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]*)", re.ASCII)
_UNCHECKED_DOORS: Final = frozenset(
    {"exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"}
)
_PODS_CHECKED_MAX: Final = 3000
_TEMPLATES: Final = {
    ("", "replicationcontrollers"): ("spec", "template"),
    ("", "podtemplates"): ("template",),
    ("apps", "replicasets"): ("spec", "template"),
    ("apps", "deployments"): ("spec", "template"),
    ("apps", "statefulsets"): ("spec", "template"),
    ("apps", "daemonsets"): ("spec", "template"),
    ("batch", "jobs"): ("spec", "template"),
    ("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}


class Standard(NamedTuple):
    """A level in one of its versions."""

    level: str = "privileged"
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    def violations(self, meta: JsonObject, spec: JsonObject) -> list[Violation]:
        if self.level == "privileged":
            return []
        minor = LATEST_MINOR if self.version == "latest" else min(int(self.version[3:]), LATEST_MINOR)
        checks = BASELINE if self.level == "baseline" else RESTRICTED
        found = (check(meta, spec, minor) for check in checks)
        return [one for one in found if one is not None]


class PodSecurity(Plugin):
    """Pods are refused, templates of pods only warned about."""

    resources = frozenset({PODS, NAMESPACES, *_TEMPLATES})
    operations = CREATE_OR_UPDATE
    subresources = None
    looks_at = frozenset({"namespaces"})
    heeds = looks_at
    goes_by_spec = True

    def wants(self, resource: GroupResource, operation: Operation, subresource: str) -> bool:
        if subresource and (resource != PODS or subresource in _UNCHECKED_DOORS):
            return False
        return super().wants(resource, operation, subresource)

    def has_no_say(self, lookup: Lookup, operation: Operation, namespace: str) -> bool:  # noqa: ARG002 - a hook
        # Namespaces themselves are in none.
        return bool(namespace) and _MODE_LABELS.isdisjoint(_labels_of(lookup, namespace))

    def looked_at(self, attributes: Attributes) -> frozenset[str] | None:
        resource = (attributes.served.type.group, attributes.served.type.plural)
        return None if resource == NAMESPACES else self.looks_at

    def validate(self, attributes: Attributes) -> None:
        obj = attributes.obj
        resource = (attributes.served.type.group, attributes.served.type.plural)
        if obj is None:
            return
        if resource == NAMESPACES:
            self._validate_namespace(attributes, obj)
            return
        labels = _labels_of(attributes.lookup, attributes.namespace)
        if _MODE_LABELS.isdisjoint(labels):
            return
        policy, _ = _policy(labels)
        if resource != PODS:
            template = obj
            for step in _TEMPLATES[resource]:
                template = template.get(step) or {}
            if template:
                self._warn(attributes, policy["warn"], template)
        elif attributes.operation == "CREATE" or _is_significant(obj, attributes.old or {}):
            found = policy["enforce"].violations(obj["metadata"], obj.get("spec") or {})
            if found:
                raise refuse(attributes, f'violates PodSecurity "{policy["enforce"]}": {_in_words(found)}')
            self._warn(attributes, policy["warn"], obj)

    @staticmethod
    def _warn(attributes: Attributes, standard: Standard, pod: JsonObject) -> None:
        found = standard.violations(pod.get("metadata") or {}, pod.get("spec") or {})
        if found:
            attributes.warnings.append(f'would violate PodSecurity "{standard}": {_in_words(found)}')

    def _validate_namespace(self, attributes: Attributes, new: JsonObject) -> None:
        """Labels must make sense; pods that are there already and break the new rules are warned about."""
        meta = new["metadata"]
        policy, causes = _policy(meta.get("labels") or {})
        old_policy, old_causes = _policy((attributes.old or {}).get("metadata", {}).get("labels") or {})
        if causes and (attributes.operation == "CREATE" or causes != old_causes):
            raise invalid("", "Namespace", attributes.name, causes)
        enforce, before = policy["enforce"], old_policy["enforce"]
        if attributes.operation == "CREATE" or enforce == before or enforce.level == "privileged":
            return
        if enforce.version == before.version and _LEVELS.index(enforce.level) <= _LEVELS.index(before.level):
            return
        attributes.warnings.extend(self._pods_in_breach(attributes, meta["name"], enforce))

    @staticmethod
    def _pods_in_breach(attributes: Attributes, namespace: str, standard: Standard) -> list[str]:
        pods = _prioritized(attributes.lookup.objects("", "pods", namespace))
        by_reason: dict[str, list[str]] = {}
        for pod in pods[:_PODS_CHECKED_MAX]:
            found = standard.violations(pod["metadata"], pod.get("spec") or {})
            if found:
                by_reason.setdefault(", ".join(reason for reason, _ in found), []).append(
                    pod["metadata"]["name"]
                )
        warnings = []
        if len(pods) > _PODS_CHECKED_MAX:
            warnings.append(
                f"new PodSecurity enforce level only checked against the first {_PODS_CHECKED_MAX} of "
                f"{len(pods)} existing pods"
            )
        if by_reason:
            warnings.append(
                f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level '
                f'"{standard}"'
            )
        lines = []
        for reason, names in by_reason.items():
            others = len(names) - 1
            more = f" (and {others} other {'pod' if others == 1 else 'pods'})" if others else ""
            lines.append(f"{min(names)}{more}: {reason}")
        return warnings + sorted(lines)


def _labels_of(lookup: Lookup, namespace: str) -> Mapping[str, str]:
    found = lookup.find("", "namespaces", "", namespace)
    return (found or {}).get("metadata", {}).get("labels") or {}


def _prioritized(pods: Sequence[JsonObject]) -> list[JsonObject]:
    """One pod of each controller first, so that a large one does not hide the others."""
    first: list[JsonObject] = []
    rest: list[JsonObject] = []
    seen: set[str] = set()
    for pod in pods:
        owners = pod["metadata"].get("ownerReferences") or ()
        controller = next((owner.get("uid", "") for owner in owners if owner.get("controller")), "")
        (rest if controller in seen else first).append(pod)
        if controller:
            seen.add(controller)
    return first + rest


def _policy(labels: Mapping[str, str]) -> tuple[dict[str, Standard], list[Cause]]:
    """What the labels of a namespace ask for, and what is wrong with them."""
    policy: dict[str, Standard] = {}
    causes: list[Cause] = []
    valid_enforce = False
    for mode in _MODES:
        level, version = "privileged", "latest"
        key = _PREFIX + mode
        if key in labels:
            level = labels[key]
            if level not in _LEVELS:
                causes.append(_bad_label(key, level, f"must be one of {', '.join(_LEVELS)}"))
                # What is enforced fails closed, what only informs fails open.
                level = "restricted" if mode == "enforce" else "privileged"
            elif mode == "enforce":
                valid_enforce = True
        key += "-version"
        if key in labels:
            version = labels[key]
            if version != "latest" and not _VERSION.fullmatch(version):
                causes.append(_bad_label(key, version, 'must be "latest" or "v1.x"'))
                version = "latest"
        policy[mode] = Standard(level, version)
    enforce, warn = policy["enforce"], policy["warn"]
    # Whoever enforces a level without saying anything about warnings wants to be warned of the same.
    if (
        valid_enforce
        and _PREFIX + "warn" not in labels
        and _LEVELS.index(enforce.level) > _LEVELS.index(warn.level)
    ):
        kept = warn.version if _PREFIX + "warn-version" in labels else enforce.version
        policy["warn"] = Standard(enforce.level, kept)
    return policy, causes


def _bad_label(key: str, value: str, why: str) -> Cause:
    return Cause("FieldValueInvalid", f'Invalid value: "{value}": {why}', f"metadata.labels[{key}]")


def _in_words(violations: list[Violation]) -> str:
    return ", ".join(f"{reason} ({detail})" if detail else reason for reason, detail in violations)


def _is_significant(new: JsonObject, old: JsonObject) -> bool:
    """Whether an update brings a new image or a new container."""
    now, before = new.get("spec") or {}, old.get("spec") or {}
    for key in ("containers", "initContainers"):
        images = [one.get("image") for one in now.get(key) or ()]
        if images != [one.get("image") for one in before.get(key) or ()]:
            return True
    known = {one.get("name"): one.get("image") for one in before.get("ephemeralContainers") or ()}
    return any(
        one.get("name") not in known or known[one.get("name")] != one.get("image")
        for one in now.get("ephemeralContainers") or ()
    )
