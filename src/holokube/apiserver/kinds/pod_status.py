"""The status of pods: what belongs together in it, and what may change."""

from __future__ import annotations

from typing import Any

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.annotation_validation import (
    validate_annotation_changes,
    validate_pod_annotations,
)
from holokube.kube import names
from holokube.kube.addresses import is_legacy_ip
from holokube.kube.types import JsonObject

_SYSTEM_CONDITIONS = frozenset({"PodScheduled", "Ready", "Initialized"})


def share_addresses(status: JsonObject) -> None:
    """``podIP`` is the first of ``podIPs``; if they differ, the single one is what an old kubelet meant."""
    single, several = status.get("podIP"), status.get("podIPs")
    if single:
        if not several or several[0].get("ip") != single:
            status["podIPs"] = [{"ip": single}]
    elif several:
        status["podIP"] = several[0].get("ip", "")


def carry_status(new: JsonObject, old: JsonObject) -> None:
    """What a writer of status may leave out without meaning to remove it."""
    after, before = new.setdefault("status", {}), old.get("status") or {}
    if not after.get("qosClass") and before.get("qosClass"):
        after["qosClass"] = before["qosClass"]
    if not after.get("observedGeneration") and before.get("observedGeneration"):
        after["observedGeneration"] = before["observedGeneration"]
    known: dict[str, list[int]] = {}
    for condition in before.get("conditions") or ():
        generation = condition.get("observedGeneration")
        known.setdefault(condition.get("type", ""), []).append(generation or 0)
    for condition in after.get("conditions") or ():
        generations = known.get(condition.get("type", ""))
        generation = generations.pop(0) if generations else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def validate_pod_status(new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
    """Upstream's ValidatePodStatusUpdate."""
    annotations = new["metadata"].get("annotations") or {}
    known = old["metadata"].get("annotations") or {}
    if annotations is not known and (annotations or known):
        validate_annotation_changes(annotations, known, "metadata.annotations", errors)
        validate_pod_annotations(annotations, new["spec"], "metadata.annotations", errors)
    after: JsonObject = new.get("status") or {}
    before: JsonObject = old.get("status") or {}
    spec: JsonObject = old["spec"]
    _validate_conditions(after, errors)
    _validate_nomination(after, before, spec, errors)
    if after.get("observedGeneration", 0) < 0:
        detail = "must be a non-negative integer"
        errors.invalid("status.observedGeneration", after["observedGeneration"], detail)
    if after.get("qosClass", "") != before.get("qosClass", ""):
        errors.invalid("status.qosClass", after.get("qosClass", ""), "field is immutable")
    _validate_restarts(after, before, spec, errors)
    _validate_ended(after, before, "ephemeralContainerStatuses", errors)
    _validate_claim_statuses(after, spec, errors)
    _validate_addresses(after, before, errors)


def _validate_conditions(status: JsonObject, errors: FieldErrors) -> None:
    for index, condition in enumerate(status.get("conditions") or ()):
        at = f"status.conditions[{index}]"
        if condition.get("observedGeneration", 0) < 0:
            detail = "must be a non-negative integer"
            errors.invalid(f"{at}.observedGeneration", condition["observedGeneration"], detail)
        kind = condition.get("type", "")
        if kind not in _SYSTEM_CONDITIONS:
            errors.all_invalid(f"{at}.Type", kind, names.is_qualified_name(kind))


def _validate_nomination(
    after: JsonObject, before: JsonObject, spec: JsonObject, errors: FieldErrors
) -> None:
    node = after.get("nominatedNodeName")
    if not node or node == before.get("nominatedNodeName"):
        return
    errors.all_invalid("status.nominatedNodeName", node, names.is_dns1123_subdomain(node))
    if spec.get("nodeName"):
        errors.forbidden(
            "status.nominatedNodeName", "may not be set on pods that are already bound to a node"
        )


def _validate_restarts(after: JsonObject, before: JsonObject, spec: JsonObject, errors: FieldErrors) -> None:
    """A container that has ended for good does not come back to life."""
    for key, containers in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
        ended = _ended(after, before, key)
        if not ended or _all_may_restart(spec):
            continue
        for index, known in ended:
            name, code = known.get("name"), known["state"]["terminated"].get("exitCode", 0)
            container = next((c for c in spec.get(containers) or () if c.get("name") == name), None)
            if container is None or not _restarts(container, spec, code):
                detail = "may not be transitioned to non-terminated state"
                errors.forbidden(f"status.{key}[{index}].state", detail)


def _validate_ended(after: JsonObject, before: JsonObject, key: str, errors: FieldErrors) -> None:
    for index, _ in _ended(after, before, key):
        errors.forbidden(f"status.{key}[{index}].state", "may not be transitioned to non-terminated state")


def _ended(after: JsonObject, before: JsonObject, key: str) -> list[tuple[int, JsonObject]]:
    """Containers that had ended and now have not, with their old place."""
    old = before.get(key)
    if not old:
        return []
    alive = {s.get("name") for s in after.get(key) or () if "terminated" not in (s.get("state") or {})}
    return [
        (index, status)
        for index, status in enumerate(old)
        if "terminated" in (status.get("state") or {}) and status.get("name") in alive
    ]


def _all_may_restart(spec: JsonObject) -> bool:
    return any(
        rule.get("action") == "RestartAllContainers"
        for key in ("containers", "initContainers")
        for container in spec.get(key) or ()
        for rule in container.get("restartPolicyRules") or ()
    )


def _restarts(container: JsonObject, spec: JsonObject, exit_code: int) -> bool:
    """Whether a container starts again after it ended with this code: rules first, then policies."""
    policy = container.get("restartPolicy")
    if policy is not None:
        for rule in container.get("restartPolicyRules") or ():
            codes = rule.get("exitCodes") or {}
            listed = exit_code in (codes.get("values") or ())
            if rule.get("action") == "Restart" and listed == (codes.get("operator") == "In"):
                return True
    policy = policy or spec.get("restartPolicy", "")
    return bool(policy == "Always" or (policy == "OnFailure" and exit_code != 0))


def _validate_claim_statuses(status: JsonObject, spec: JsonObject, errors: FieldErrors) -> None:
    known = {claim.get("name") for claim in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for index, claim in enumerate(status.get("resourceClaimStatuses") or ()):
        at = f"status.resourceClaimStatuses[{index}]"
        name = claim.get("name", "")
        if name not in known:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            errors.invalid(f"{at}.name", name, detail)
        if name in seen:
            errors.duplicate(f"{at}.name", name)
        seen.add(name)
        target = claim.get("resourceClaimName")
        if target is not None:
            errors.all_invalid(f"{at}.resourceClaimName", target, names.is_dns1123_subdomain(target))


def _validate_addresses(after: JsonObject, before: JsonObject, errors: FieldErrors) -> None:
    for key, single in (("podIPs", ""), ("hostIPs", "hostIP")):
        addresses: list[Any] = after.get(key) or []
        if not addresses or (addresses == before.get(key) and not single):
            continue
        path = f"status.{key}"
        texts = [item.get("ip", "") for item in addresses]
        if single and after.get(single, "") != texts[0]:
            errors.invalid(f"{path}[0].ip", texts[0], f"must be equal to `{single}`")
        trusted = {item.get("ip") for item in before.get(key) or ()}
        for index, text in enumerate(texts):
            if text not in trusted:
                errors.all_invalid(f"{path}[{index}]", text, is_legacy_ip(text))
        if len(texts) > 1 and (len(texts) > 2 or len({":" in text for text in texts}) == 1):
            errors.invalid(path, addresses, "may specify no more than one IP for each IP family")
