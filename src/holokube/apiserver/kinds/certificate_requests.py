"""CertificateSigningRequests."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.base import WriteContext
from holokube.apiserver.kinds.certificates import ca_bundle_problem, certificate_request_problem
from holokube.apiserver.kinds.checks import go_diff
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.kube import names, timeformat
from holokube.kube.types import JsonObject

_USAGES: Final = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_DECISIONS: Final = ("Approved", "Denied")
_FINAL: Final = ("Approved", "Denied", "Failed")
_STATUSES: Final = ("False", "True", "Unknown")
_LEGACY_SIGNER: Final = "kubernetes.io/legacy-unknown"
_LEAST_EXPIRATION_S: Final = 600


class CertificateSigningRequest(GoKind):
    go_type = "certificates.v1.CertificateSigningRequest"
    field_labels = frozenset({"metadata.name", "spec.signerName"})

    def name_problems(self, name: str, *, prefix: bool) -> list[str]:
        return names.is_path_segment_prefix(name) if prefix else names.is_path_segment_name(name)

    def prepare_create(self, new: JsonObject, context: WriteContext) -> None:
        spec = new["spec"]
        for field in ("username", "uid", "groups", "extra"):
            spec.pop(field, None)
        if context.user:
            spec["username"] = context.user
        if context.user_uid:
            spec["uid"] = context.user_uid
        if context.user_groups:
            spec["groups"] = list(context.user_groups)
        new["status"] = {}

    def prepare_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        new["spec"] = old["spec"]

    def prepare_status_update(self, new: JsonObject, old: JsonObject, context: WriteContext) -> None:
        """Approval is decided elsewhere: those conditions stay as they were, unless some came or went."""
        status = new["status"]
        conditions: list[JsonObject] = list(status.get("conditions") or ())
        known: list[JsonObject] = (old.get("status") or {}).get("conditions") or []
        for kind in _DECISIONS:
            now = [index for index, c in enumerate(conditions) if c["type"] == kind]
            was = [c for c in known if c["type"] == kind]
            if len(now) == len(was):
                for index, condition in zip(now, was, strict=True):
                    conditions[index] = condition
        if conditions:
            status["conditions"] = with_times(conditions, known, timeformat.format_time(context.now))

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        spec = new["spec"]
        request = spec["request"]
        problem = certificate_request_problem(base64.b64decode(request or ""))
        if problem:
            errors.invalid("spec.request", request, problem)
        usages = spec.get("usages") or []
        if not usages:
            errors.required("spec.usages")
        for index, usage in enumerate(usages):
            if usage not in _USAGES:
                errors.not_supported(f"spec.usages[{index}]", usage, _USAGES)
        for index, usage in enumerate(usages):
            if usage in usages[:index]:
                errors.duplicate(f"spec.usages[{index}]", usage)
        signer = spec["signerName"]
        if signer == _LEGACY_SIGNER:
            errors.invalid("spec.signerName", signer, "the legacy signerName is not allowed via this API version")
        else:
            _check_signer(signer, "spec.signerName", errors)
        expires_s = spec.get("expirationSeconds")
        if expires_s is not None and expires_s < _LEAST_EXPIRATION_S:
            message = "may not specify a duration less than 600 seconds (10 minutes)"
            errors.invalid("spec.expirationSeconds", expires_s, message)
        self.check_status(new, errors)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        """Nothing but metadata can change here."""

    def validate_status_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        self.check_status(new, errors)
        check_kept_conditions(new, old, errors)
        for kind in _DECISIONS:
            now, was = _of_type(new, kind), _of_type(old, kind)
            if len(now) > len(was):
                errors.forbidden("status.conditions", f'updates may not add a condition of type "{kind}"')
            elif len(now) == len(was) and now != was:
                message = f'updates may not modify a condition of type "{kind}"\n{go_diff(was, now)}'
                errors.forbidden("status.conditions", message)
        before, after = ((o.get("status") or {}).get("certificate") for o in (old, new))
        if before and before != after:
            errors.forbidden("status.certificate", "updates may not modify existing certificate content")

    def check_status(self, new: JsonObject, errors: FieldErrors) -> None:
        """Conditions and certificate, whichever door they came through."""
        status = new.get("status") or {}
        seen: list[str] = []
        for index, condition in enumerate(status.get("conditions") or ()):
            path, kind = f"status.conditions[{index}]", condition["type"]
            if not kind:
                errors.required(f"{path}.type")
            allowed = ("True",) if kind in _FINAL else _STATUSES
            if not condition["status"]:
                errors.required(f"{path}.status")
            elif condition["status"] not in allowed:
                errors.not_supported(f"{path}.status", condition["status"], allowed)
            if kind in _DECISIONS and any(other in _DECISIONS and other != kind for other in seen):
                errors.invalid("status.conditions", kind, "Approved and Denied conditions are mutually exclusive")
            if kind in seen:
                errors.duplicate(f"{path}.type", kind)
            seen.append(kind)
        certificate = status.get("certificate")
        if certificate:
            problem = ca_bundle_problem(base64.b64decode(certificate))
            if problem:
                message = "must contain at least one CERTIFICATE PEM block" if "unable to parse" in problem else problem
                errors.invalid("status.certificate", "<certificate data>", message)

    def field_values(self, obj: JsonObject) -> Mapping[str, str]:
        return {"spec.signerName": obj["spec"].get("signerName", "")}


def _of_type(csr: JsonObject, kind: str) -> list[JsonObject]:
    return [c for c in (csr.get("status") or {}).get("conditions") or () if c["type"] == kind]


def check_kept_conditions(new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
    """A decision cannot be taken back, not through approval either."""
    for kind in _FINAL:
        if len(_of_type(new, kind)) < len(_of_type(old, kind)):
            errors.forbidden("status.conditions", f'updates may not remove a condition of type "{kind}"')


def with_times(conditions: list[JsonObject], known: list[JsonObject], now: str) -> list[JsonObject]:
    """Conditions whose times were left out get them; one that did not change keeps its own."""
    out = []
    for condition in conditions:
        filled = dict(condition)
        filled["lastUpdateTime"] = condition.get("lastUpdateTime") or now
        if not condition.get("lastTransitionTime"):
            same = [k for k in known if (k["type"], k["status"]) == (condition["type"], condition["status"])]
            times = [k["lastTransitionTime"] for k in same if k.get("lastTransitionTime")]
            filled["lastTransitionTime"] = times[0] if times else now
        out.append(filled)
    return out


def _check_signer(signer: str, path: str, errors: FieldErrors) -> None:
    if not signer:
        errors.required(path)
        return
    if signer.count("/") != 1:
        message = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        errors.invalid(path, signer, message)
        return
    domain, _, rest = signer.partition("/")
    if len(domain) > names.DNS1123_SUBDOMAIN_MAX_LENGTH:
        errors.too_long(path, "", names.DNS1123_SUBDOMAIN_MAX_LENGTH)
    for text, rule in ((domain, names.is_dns1123_label), (rest, names.is_dns1123_subdomain)):
        for label in text.split("."):
            problems = rule(label)
            if problems:
                for problem in problems:
                    errors.invalid(path, text, f'validating label "{label}": {problem}')
                break
        if text is domain and "." not in domain:
            errors.invalid(path, domain, "should be a domain with at least two segments separated by dots")
