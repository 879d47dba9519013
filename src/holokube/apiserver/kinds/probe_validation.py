"""Rules for probes and lifecycle hooks."""

from __future__ import annotations

from typing import Any

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.checks import NOT_NEGATIVE
from holokube.kube import names
from holokube.kube.types import JsonObject

_COUNTS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def validate_probes_and_hooks(
    container: JsonObject, grace_s: int | None, path: str, errors: FieldErrors
) -> None:
    """What starts, watches and stops a container that keeps running."""
    lifecycle = container.get("lifecycle")
    if lifecycle is not None:
        for key in ("postStart", "preStop"):
            hook = lifecycle.get(key)
            if hook is not None:
                _validate_handler(hook, _HOOK_HANDLERS, grace_s, f"{path}.lifecycle.{key}", errors)
    for key in _PROBES:
        if key in container:
            _validate_probe(container[key], key, grace_s, f"{path}.{key}", errors)


def _validate_probe(
    probe: JsonObject, kind: str, grace_s: int | None, path: str, errors: FieldErrors
) -> None:
    _validate_handler(probe, _PROBE_HANDLERS, grace_s, path, errors)
    for key in _COUNTS:
        if probe.get(key, 0) < 0:
            errors.invalid(f"{path}.{key}", probe[key], NOT_NEGATIVE)
    own_grace_s = probe.get("terminationGracePeriodSeconds")
    if own_grace_s is not None and own_grace_s <= 0:
        errors.invalid(f"{path}.terminationGracePeriodSeconds", own_grace_s, "must be greater than 0")
    if kind == "readinessProbe":
        if own_grace_s is not None:
            detail = "must not be set for readinessProbes"
            errors.invalid(f"{path}.terminationGracePeriodSeconds", own_grace_s, detail)
    elif probe.get("successThreshold", 0) != 1:
        errors.invalid(f"{path}.successThreshold", probe.get("successThreshold", 0), "must be 1")


def _validate_handler(
    handler: JsonObject, kinds: tuple[str, ...], grace_s: int | None, path: str, errors: FieldErrors
) -> None:
    found = [kind for kind in kinds if kind in handler]
    if not found:
        errors.required(path, "must specify a handler type")
        return
    for kind in found[1:]:
        errors.forbidden(f"{path}.{kind}", "may not specify more than 1 handler type")
    kind = found[0]
    action: JsonObject = handler[kind]
    at = f"{path}.{kind}"
    if kind == "exec":
        if not action.get("command"):
            errors.required(f"{at}.command")
    elif kind == "httpGet":
        _validate_http(action, at, errors)
    elif kind == "sleep":
        seconds = action.get("seconds", 0)
        if grace_s is not None and not 0 <= seconds <= grace_s:
            detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_s})"
            errors.invalid(at, seconds, detail)
    else:
        validate_port(action.get("port", 0), f"{at}.port", errors)


def _validate_http(action: JsonObject, path: str, errors: FieldErrors) -> None:
    if not action.get("path"):
        errors.required(f"{path}.path")
    validate_port(action.get("port", 0), f"{path}.port", errors)
    scheme = action.get("scheme", "")
    if scheme not in ("HTTP", "HTTPS"):
        errors.not_supported(f"{path}.scheme", scheme, ["HTTP", "HTTPS"])
    for header in action.get("httpHeaders") or ():
        name = header.get("name", "")
        errors.all_invalid(f"{path}.httpHeaders", name, names.is_http_header_name(name))


def validate_port(port: Any, path: str, errors: FieldErrors) -> None:
    """A port by number or by name."""
    problems = names.is_port_name(port) if isinstance(port, str) else names.is_port_number(port)
    if problems:
        errors.all_invalid(path, port, problems)
