"""APIServices (apiregistration.k8s.io)."""

from __future__ import annotations

import base64
from typing import Final

from holokube.apiserver.field_errors import FieldErrors, show
from holokube.apiserver.kinds.base import Kind, WriteContext
from holokube.kube import names, timeformat
from holokube.kube.types import JsonObject

_STATUSES: Final = ("True", "False", "Unknown")


class APIService(Kind):
    tracks_generation = False

    def name_problems(self, name: str, *, prefix: bool) -> list[str]:
        return names.is_path_segment_name(name)

    def default(self, obj: JsonObject) -> None:
        spec: JsonObject = obj.setdefault("spec", {})
        obj.setdefault("status", {})
        for field in ("group", "version", "caBundle"):
            if not spec.get(field):
                spec.pop(field, None)
        if not spec.get("insecureSkipTLSVerify"):
            spec.pop("insecureSkipTLSVerify", None)
        spec.setdefault("groupPriorityMinimum", 0)
        spec.setdefault("versionPriority", 0)
        service = spec.get("service")
        if service is not None:
            service.setdefault("port", 443)

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        new["status"] = {}
        if new["spec"].get("service") is None:
            new["status"]["conditions"] = [
                {
                    "type": "Available",
                    "status": "True",
                    "lastTransitionTime": timeformat.format_time(context.now),
                    "reason": "Local",
                    "message": "Local APIServices are always available",
                }
            ]

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec, name = new["spec"], new["metadata"].get("name", "")
        group, version = spec.get("group", ""), spec.get("version", "")
        wanted = f"{version}.{group}"
        if name and name != wanted and not names.is_path_segment_name(name):
            errors.invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: {show(wanted)}')
        if not group and version != "v1":
            errors.required("spec.group", "only v1 may have an empty group and it better be legacy kube")
        if group:
            errors.all_invalid("spec.group", group, names.is_dns1123_subdomain(group))
        errors.all_invalid("spec.version", version, names.is_dns1035_label(version))
        minimum, priority = spec["groupPriorityMinimum"], spec["versionPriority"]
        if not 0 < minimum <= 20000:
            errors.invalid("spec.groupPriorityMinimum", minimum, "must be positive and less than 20000")
        if not 0 < priority <= 1000:
            errors.invalid("spec.versionPriority", priority, "must be positive and less than 1000")
        self._check_service(spec, errors)

    def _check_service(self, spec: JsonObject, errors: FieldErrors) -> None:
        service, bundle = spec.get("service"), spec.get("caBundle")
        insecure = bool(spec.get("insecureSkipTLSVerify"))
        if service is None:
            if bundle:
                size = f"{len(base64.b64decode(bundle))} bytes"
                errors.invalid("spec.caBundle", size, "local APIServices may not have a caBundle")
            if insecure:
                message = "local APIServices may not have insecureSkipTLSVerify"
                errors.invalid("spec.insecureSkipTLSVerify", True, message)
            return
        for field in ("namespace", "name"):
            if not service.get(field):
                errors.required(f"spec.service.{field}")
        problems = names.is_port_number(service["port"])
        if problems:
            errors.invalid("spec.service.port", service["port"], f"port is not valid: {', '.join(problems)}")
        if insecure and bundle:
            errors.invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present")

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        for index, condition in enumerate((new.get("status") or {}).get("conditions") or ()):
            status = condition.get("status", "")
            if status not in _STATUSES:
                errors.not_supported(f"status.conditions[{index}].status", status, _STATUSES)
