"""What a CustomResourceDefinition must say, with upstream's causes.

Upstream first moves what all versions have in common (schema, subresources, columns, selectable fields) to the top of
the spec, and reports problems there: a CRD with one version has its schema at ``spec.validation``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from holokube.apiserver.crds import formats
from holokube.apiserver.crds.default_checks import check_defaults
from holokube.apiserver.crds.field_paths import FieldPathError, field_path
from holokube.apiserver.crds.rule_checks import check_rules
from holokube.apiserver.crds.rules import NOT_INSTALLED, is_installed
from holokube.apiserver.crds.schema_checks import check_schema, schemas_in
from holokube.apiserver.crds.structural import structural
from holokube.apiserver.crds.structural_checks import can_be_structural, check_structural
from holokube.apiserver.field_errors import FieldErrors
from holokube.kube import conditions, names
from holokube.kube.quoting import go_quote
from holokube.kube.types import JsonObject

_APPROVED: Final = "api-approved.kubernetes.io"
_APPROVAL_HELP: Final = "see https://github.com/kubernetes/enhancements/pull/1111"
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MAX_SELECTABLE_FIELDS: Final = 8
_MAX_DEPRECATION_WARNING: Final = 256
_SHARED: Final = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
# The only keywords that a schema with a status subresource may have at its root, by upstream's names.
_ROOT_KEYWORDS: Final = {
    "description": "Description", "type": "Type", "format": "Format", "title": "Title", "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum", "minimum": "Minimum", "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength", "minLength": "MinLength", "pattern": "Pattern", "maxItems": "MaxItems",
    "minItems": "MinItems", "uniqueItems": "UniqueItems", "multipleOf": "MultipleOf", "required": "Required",
    "items": "Items", "properties": "Properties", "externalDocs": "ExternalDocs", "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields", "x-kubernetes-validations": "XValidations",
}  # fmt: skip


def check_definition(crd: JsonObject, errors: FieldErrors) -> None:
    """Rules for a new CRD."""
    spec: JsonObject = crd.get("spec") or {}
    wanted = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    name = crd["metadata"].get("name") or ""
    if name and name != wanted:
        errors.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')
    _check_spec(spec, errors)
    _check_stored_versions(crd, errors)
    _check_approval(crd, None, errors)
    if spec.get("preserveUnknownFields"):
        _forbid_preserving(errors)


def check_definition_update(new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
    """Rules for a change: what places objects in the store stays as it is."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    _check_spec(spec, errors)
    after_names, before_names = spec.get("names") or {}, before.get("names") or {}
    pairs: list[tuple[str, Any, Any]] = []
    if conditions.is_true(old, "Established"):
        pairs.append(("spec.scope", spec.get("scope"), before.get("scope")))
        pairs.append(("spec.names.kind", after_names.get("kind"), before_names.get("kind")))
    pairs.append(("spec.group", spec.get("group"), before.get("group")))
    pairs.append(("spec.names.plural", after_names.get("plural"), before_names.get("plural")))
    for path, value, known in pairs:
        if value != known:
            errors.invalid(path, value or "", "field is immutable")
    _check_stored_versions(new, errors)
    _check_approval(new, old, errors)
    if spec.get("preserveUnknownFields") and not before.get("preserveUnknownFields"):
        _forbid_preserving(errors)


def check_definition_status_update(new: JsonObject, errors: FieldErrors) -> None:
    """Rules for the status."""
    _check_names((new.get("status") or {}).get("acceptedNames") or {}, "status.acceptedNames", errors)


def definition_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    """What will not be checked: rules without an evaluator, and formats that nobody knows and that are new."""
    known = _unknown_formats(old) if old is not None else []
    found = [] if is_installed() or not _has_any_rules(new) else [NOT_INSTALLED]
    return found + [
        f"unrecognized format {go_quote(name)}" for name in _unknown_formats(new) if name not in known
    ]


def _has_any_rules(crd: JsonObject) -> bool:
    sources = _distinct(_schema(version) for version in crd["spec"].get("versions") or ())
    return any(part.get("x-kubernetes-validations") for source in sources for part in schemas_in(source))


def _unknown_formats(crd: JsonObject) -> list[str]:
    found: list[str] = []
    for source in _distinct(_schema(version) for version in crd["spec"].get("versions") or ()):
        for part in schemas_in(source):
            name, own_type = part.get("format") or "", part.get("type") or ""
            if name and not formats.effective_format(own_type, name):
                found.append(name)
    return found


def _distinct(schemas: Any) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for schema in schemas:
        if schema is not None and schema not in found:
            found.append(schema)
    return found


def _schema(version: JsonObject) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return found


def _forbid_preserving(errors: FieldErrors) -> None:
    errors.invalid(
        "spec.preserveUnknownFields", True,
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
    )  # fmt: skip


def _check_spec(spec: JsonObject, errors: FieldErrors) -> None:
    _check_group(spec.get("group") or "", errors)
    scope = spec.get("scope") or ""
    if not scope:
        errors.required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        errors.not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    versions: list[JsonObject] = spec.get("versions") or []
    for index, version in enumerate(versions):
        if _schema(version) is None:
            errors.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    shared = {key for key in _SHARED if all(v.get(key) == versions[0].get(key) for v in versions)}
    for index, version in enumerate(versions):
        _check_version(version, f"spec.versions[{index}]", shared, errors)
    if spec.get("preserveUnknownFields") and any(_has_defaults(version) for version in versions):
        errors.invalid(
            "spec.preserveUnknownFields", True, "must be false in order to use defaults in the schema"
        )
    _check_version_list(spec, shared, errors)
    own_names: JsonObject = spec.get("names") or {}
    for key in ("plural", "singular", "kind", "listKind"):
        if not own_names.get(key):
            errors.required(f"spec.names.{key}")
    _check_names(own_names, "spec.names", errors)
    if versions:
        top = {_SHARED[key]: versions[0].get(key) for key in shared}
        has_status = any((v.get("subresources") or {}).get("status") is not None for v in versions)
        _check_parts(top, versions[0], "spec", errors, schema_key="validation", has_status=has_status)
    _check_conversion(spec.get("conversion") or {}, errors)


def _check_group(group: str, errors: FieldErrors) -> None:
    if not group:
        errors.required("spec.group")
        return
    problems = names.is_dns1123_subdomain(group)
    if problems:
        errors.invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        errors.invalid("spec.group", group, "should be a domain with at least one dot")


def _check_version(version: JsonObject, path: str, shared: set[str], errors: FieldErrors) -> None:
    name = version.get("name") or ""
    problems = names.is_dns1035_label(name)
    if problems:
        errors.invalid(f"{path}.name", name, ",".join(problems))
    warning = version.get("deprecationWarning")
    if warning is not None:
        for text in _deprecation_problems(warning, deprecated=bool(version.get("deprecated"))):
            errors.invalid(f"{path}.deprecationWarning", warning, text)
    own = {key: version.get(key) for key in _SHARED if key not in shared}
    has_status = (version.get("subresources") or {}).get("status") is not None
    _check_parts(own, version, path, errors, schema_key="schema", has_status=has_status)


def _deprecation_problems(warning: str, *, deprecated: bool) -> list[str]:
    if not deprecated:
        return ["can only be set for deprecated versions"]
    found: list[str] = []
    if len(warning.encode("utf-8", "surrogatepass")) > _MAX_DEPRECATION_WARNING:
        found.append(f"must be <= {_MAX_DEPRECATION_WARNING} characters long")
    if not warning:
        found.append("must not be an empty string")
    for index, char in enumerate(warning):
        if not char.isprintable():
            position = len(warning[:index].encode("utf-8", "surrogatepass"))
            lead = "must only contain printable UTF-8 characters; non-printable character found at index"
            found.append(f"{lead} {position}")
            break
    return found


def _has_defaults(version: JsonObject) -> bool:
    source = _schema(version)
    return source is not None and structural(source).has_defaults


def _check_version_list(spec: JsonObject, shared: set[str], errors: FieldErrors) -> None:
    versions: list[JsonObject] = spec.get("versions") or []
    shown = [_as_go(version, shared) for version in versions] if "versions" in spec else None
    version_names = [version.get("name") for version in versions]
    if len(set(version_names)) != len(version_names):
        errors.invalid("spec.versions", shown, "must contain unique version names")
    if sum(1 for version in versions if version.get("storage")) != 1:
        errors.invalid("spec.versions", shown, "must have exactly one version marked as storage version")
    first = versions[0].get("name") or "" if versions else ""
    problems = names.is_dns1035_label(first) if first else []
    if problems:
        errors.invalid("spec.version", first, ",".join(problems))


def _as_go(version: JsonObject, shared: set[str]) -> JsonObject:
    """A version as upstream prints it: its own type, without what was moved to the top."""
    own = {key: None if key in shared else version.get(key) for key in _SHARED}
    return {
        "Name": version.get("name") or "",
        "Served": bool(version.get("served")),
        "Storage": bool(version.get("storage")),
        "Deprecated": bool(version.get("deprecated")),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": own["schema"],
        "Subresources": own["subresources"],
        "AdditionalPrinterColumns": own["additionalPrinterColumns"],
        "SelectableFields": own["selectableFields"],
    }


def _check_names(own: JsonObject, path: str, errors: FieldErrors) -> None:
    for key in ("plural", "singular", "kind", "listKind"):
        value = own.get(key) or ""
        mixed = key in ("kind", "listKind")
        problems = names.is_dns1035_label(value.lower() if mixed else value) if value else []
        if problems:
            lead = "may have mixed case, but should otherwise match: " if mixed else ""
            errors.invalid(f"{path}.{key}", value, lead + ",".join(problems))
    for key in ("shortNames", "categories"):
        for index, value in enumerate(own.get(key) or ()):
            problems = names.is_dns1035_label(value)
            if problems:
                errors.invalid(f"{path}.{key}[{index}]", value, ",".join(problems))
    if own.get("kind") and own.get("kind") == own.get("listKind"):
        errors.invalid(f"{path}.listKind", own["listKind"], "kind and listKind may not be the same")


def _check_parts(
    own: Mapping[str, Any],
    version: JsonObject,
    path: str,
    errors: FieldErrors,
    *,
    schema_key: str,
    has_status: bool,
) -> None:
    """Schema, subresources, columns and selectable fields, of one version or of all."""
    source = (own.get(schema_key) or {}).get("openAPIV3Schema")
    if source is not None:
        _check_openapi(source, f"{path}.{schema_key}", errors, has_status=has_status)
    scale = (own.get("subresources") or {}).get("scale")
    if scale is not None:
        _check_scale(scale, f"{path}.subresources", errors)
    for index, column in enumerate(own.get("additionalPrinterColumns") or ()):
        _check_column(column, f"{path}.additionalPrinterColumns[{index}]", errors)
    fields = own.get("selectableFields")
    if fields and _schema(version) is None:
        wanted = "`version.schema.openAPIV3Schema` is not included"
        text = wanted if schema_key == "schema" else "validations.schema is included"
        errors.invalid(f"{path}.selectableFields", "", f"may only be set when {text}")
    elif fields:
        _check_selectable(fields, _schema(version), f"{path}.selectableFields", errors)


def _check_openapi(source: Mapping[str, Any], path: str, errors: FieldErrors, *, has_status: bool) -> None:
    at = f"{path}.openAPIV3Schema"
    if has_status:
        _check_root_keywords(source, at, errors)
    if source.get("nullable"):
        errors.forbidden(f"{at}.nullable", "nullable cannot be true at the root")
    sound = False
    if can_be_structural(source):
        before = len(errors.causes)
        check_structural(source, at, errors)
        if len(errors.causes) == before:
            check_defaults(structural(source), at, errors)
            sound = len(errors.causes) == before
    before = len(errors.causes)
    check_schema(source, at, errors, root=True)
    if sound and len(errors.causes) == before:
        # Rules of a schema that is wrong itself would only produce confusing messages.
        check_rules(structural(source), at, errors)


def _check_root_keywords(source: Mapping[str, Any], path: str, errors: FieldErrors) -> None:
    if source.get("type") not in (None, "", "object"):
        text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        errors.invalid(f"{path}.type", source["type"], text)
        return
    if any(
        value not in (None, False, "", [], {}) and key not in _ROOT_KEYWORDS for key, value in source.items()
    ):
        listed = " ".join(_ROOT_KEYWORDS.values())
        text = f"only [{listed}] fields are allowed at the root of the schema if the status subresource is enabled"
        errors.invalid(path, source, text)


def _check_scale(scale: JsonObject, path: str, errors: FieldErrors) -> None:
    for key, roots in (
        ("specReplicasPath", (".spec.",)), ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):  # fmt: skip
        value, at = scale.get(key) or "", f"{path}.scale.{key}"
        if not value:
            if key != "labelSelectorPath":
                errors.required(at)
        elif not value.startswith("."):
            errors.invalid(at, value, "must be a simple json path starting with .")
        elif not value.startswith(roots):
            under = "either .spec or .status" if len(roots) == 2 else roots[0].rstrip(".")
            errors.invalid(at, value, f"should be a json path under {under}")


def _check_column(column: JsonObject, path: str, errors: FieldErrors) -> None:
    if not column.get("name"):
        errors.required(f"{path}.name")
    kind, text = column.get("type") or "", f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        errors.required(f"{path}.type", text)
    elif kind not in _COLUMN_TYPES:
        errors.invalid(f"{path}.type", kind, text)
    if column.get("format") and column["format"] not in _COLUMN_FORMATS:
        errors.invalid(f"{path}.format", column["format"], f"must be one of {','.join(_COLUMN_FORMATS)}")
    json_path = column.get("jsonPath") or ""
    if not json_path:
        errors.required(f"{path}.JSONPath")
    elif not json_path.startswith("."):
        errors.invalid(f"{path}.JSONPath", json_path, "must be a simple json path starting with .")


def _check_selectable(
    fields: Sequence[JsonObject], source: Mapping[str, Any] | None, path: str, errors: FieldErrors
) -> None:
    node = structural(source or {})
    seen: set[str] = set()
    for index, field in enumerate(fields):
        at, text = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not text:
            errors.required(at)
            continue
        try:
            shown, found = field_path(text, node, brackets=False)
        except FieldPathError as problem:
            errors.invalid(at, text, f"is an invalid path: {problem}")
            continue
        if shown.partition(".")[0] == "metadata":
            errors.invalid(at, text, "must not point to fields in metadata")
        if found is None or found.type not in ("string", "boolean", "integer"):
            errors.invalid(
                at, text,
                "must point to a field of type string, boolean or integer. Enum string fields and strings with "
                "formats are allowed.",
            )  # fmt: skip
        if shown in seen:
            errors.duplicate(at, text)
        seen.add(shown)
    if len(seen) > _MAX_SELECTABLE_FIELDS:
        errors.too_many(path, len(seen), _MAX_SELECTABLE_FIELDS)


def _check_conversion(conversion: JsonObject, errors: FieldErrors) -> None:
    strategy = conversion.get("strategy") or ""
    if not strategy:
        errors.required("spec.conversion.strategy")
    elif strategy not in ("None", "Webhook"):
        errors.not_supported("spec.conversion.strategy", strategy, ("None", "Webhook"))
    webhook: JsonObject = conversion.get("webhook") or {}
    client: JsonObject | None = webhook.get("clientConfig")
    review: list[str] = webhook.get("conversionReviewVersions") or []
    at = "spec.conversion.webhookClientConfig"
    if strategy != "Webhook":
        text = "should not be set when strategy is not set to Webhook"
        if client is not None:
            errors.forbidden(at, text)
        if review:
            errors.forbidden("spec.conversion.conversionReviewVersions", text)
        return
    if client is None:
        errors.required(at, "required when strategy is set to Webhook")
    elif (client.get("url") is None) == (client.get("service") is None):
        errors.required(at, "exactly one of url or service is required")
    elif client.get("url") is not None:
        _check_webhook_url(client["url"], f"{at}.url", errors)
    else:
        _check_webhook_service(client["service"], f"{at}.service", errors)
    _check_review_versions(review, "spec.conversion.conversionReviewVersions", errors)


def _check_review_versions(versions: list[str], path: str, errors: FieldErrors) -> None:
    if not versions:
        errors.required(path)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.invalid(f"{path}[{index}]", version, "duplicate version")
        else:
            errors.all_invalid(f"{path}[{index}]", version, names.is_dns1035_label(version))
    if not {"v1", "v1beta1"}.intersection(versions):
        errors.invalid(path, versions, "must include at least one of v1, v1beta1")


def _check_webhook_url(url: str, path: str, errors: FieldErrors) -> None:
    form = "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
    except ValueError as problem:
        errors.required(path, f"url must be a valid URL: {problem}{form}")
        return
    if parts.scheme != "https":
        errors.invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{form}")
    host = parts.netloc.rpartition("@")[2]
    if not host:
        errors.invalid(path, host, f"host must be specified{form}")
    if "@" in parts.netloc:
        errors.invalid(path, parts.netloc.rpartition("@")[0], "user information is not permitted in the URL")
    if parts.fragment:
        errors.invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        errors.invalid(path, parts.query, "query parameters are not permitted in the URL")


def _check_webhook_service(service: JsonObject, path: str, errors: FieldErrors) -> None:
    # Upstream hands name and namespace over in the wrong order; a missing name is reported as namespace.
    for key, reported in (("namespace", "name"), ("name", "namespace")):
        if not service.get(key):
            errors.required(f"{path}.{reported}")
    port = service.get("port", 443)
    problems = names.is_port_number(port)
    if problems:
        errors.invalid(f"{path}.port", port, f"port is not valid: {', '.join(problems)}")
    url_path = service.get("path") or ""
    if url_path in ("", "/"):
        return
    if not url_path.startswith("/"):
        errors.invalid(f"{path}.path", url_path, "must start with a '/'")
    for index, step in enumerate(url_path[1:].removesuffix("/").split("/")):
        if not step:
            errors.invalid(f"{path}.path", url_path, f"segment[{index}] may not be empty")
            continue
        for problem in names.is_dns1123_subdomain(step):
            errors.invalid(f"{path}.path", url_path, f"segment[{index}]: {problem}")


def _check_stored_versions(crd: JsonObject, errors: FieldErrors) -> None:
    path = "status.storedVersions"
    stored: list[str] = (crd.get("status") or {}).get("storedVersions") or []
    if not stored:
        errors.invalid(path, None, "must have at least one stored version")
        return
    versions: list[JsonObject] = crd["spec"].get("versions") or []
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            errors.invalid(path, stored, f"must have the storage version {version.get('name')}")
    known = {version.get("name") for version in versions}
    for index, name in enumerate(stored):
        if name not in known:
            errors.invalid(
                f"{path}[{index}]", name,
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions",
            )  # fmt: skip


def _check_approval(new: JsonObject, old: JsonObject | None, errors: FieldErrors) -> None:
    """Groups of the Kubernetes community may not be used without asking, or saying so."""
    group: str = (new.get("spec") or {}).get("group") or ""
    if not any(group == base or group.endswith(f".{base}") for base in ("k8s.io", "kubernetes.io")):
        return
    state = _approval_state(new)
    if old is not None and _approval_state(old) == state:
        return
    path = f"metadata.annotations[{_APPROVED}]"
    lead = f"protected groups must have approval annotation {go_quote(_APPROVED)}"
    if state == "missing":
        errors.required(path, f"{lead}, {_APPROVAL_HELP}")
    elif state == "invalid":
        text = f'{lead} with either a URL or a reason starting with "unapproved", {_APPROVAL_HELP}'
        errors.invalid(path, new["metadata"]["annotations"][_APPROVED], text)


def _approval_state(crd: JsonObject) -> str:
    text = (crd["metadata"].get("annotations") or {}).get(_APPROVED) or ""
    if not text:
        return "missing"
    if text.startswith("unapproved"):
        return "bypassed"
    try:
        parts = urlsplit(text)
    except ValueError:
        return "invalid"
    return "approved" if parts.scheme and parts.netloc else "invalid"
