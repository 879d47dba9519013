"""MutatingWebhookConfigurations and ValidatingWebhookConfigurations."""

from __future__ import annotations

from typing import ClassVar, Final
from urllib.parse import urlsplit

from holokube.apiserver.expressions import syntax_problem
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.checks import check_selector
from holokube.apiserver.kinds.go_shapes import GoKind
from holokube.kube import names
from holokube.kube.types import JsonObject

FAILURE_POLICIES: Final = ("Fail", "Ignore")
MATCH_POLICIES: Final = ("Equivalent", "Exact")
REINVOCATION_POLICIES: Final = ("IfNeeded", "Never")
_NO_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun")
_SIDE_EFFECTS: Final = ("None", "NoneOnDryRun", "Some", "Unknown")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_REVIEW_VERSIONS: Final = ("v1", "v1beta1")
_CONDITIONS_MAX: Final = 64
_URL_FORM: Final = "; desired format: https://host[/path]"


class ValidatingWebhookConfiguration(GoKind):
    go_type = "admissionregistration.v1.ValidatingWebhookConfiguration"
    tracks_generation = True
    allow_unconditional_update = False
    mutates: ClassVar[bool] = False

    def set_defaults(self, obj: JsonObject) -> None:
        for hook in obj.get("webhooks") or ():
            hook.setdefault("failurePolicy", "Fail")
            hook.setdefault("matchPolicy", "Equivalent")
            hook.setdefault("namespaceSelector", {})
            hook.setdefault("objectSelector", {})
            hook.setdefault("timeoutSeconds", 10)
            if self.mutates:
                hook.setdefault("reinvocationPolicy", "Never")
            default_rules(hook.get("rules") or [])
            service = hook["clientConfig"].get("service")
            if service is not None:
                service.setdefault("port", 443)

    def validate(self, new: JsonObject, errors: FieldErrors) -> None:
        self._check(new, errors, strict=True)

    def validate_update(self, new: JsonObject, old: JsonObject, errors: FieldErrors) -> None:
        # A configuration that was stored under older rules may be changed without meeting the newer ones.
        hooks = old.get("webhooks") or []
        strict = all(hook.get("sideEffects") in _NO_SIDE_EFFECTS for hook in hooks)
        self._check(new, errors, strict=strict)

    def _check(self, new: JsonObject, errors: FieldErrors, *, strict: bool) -> None:
        seen: set[str] = set()
        for index, hook in enumerate(new.get("webhooks") or ()):
            path = f"webhooks[{index}]"
            self._check_hook(hook, path, errors, strict=strict)
            _check_review_versions(hook["admissionReviewVersions"] or [], f"{path}.admissionReviewVersions", errors)
            name = hook["name"]
            if name and name in seen:
                errors.duplicate(f"{path}.name", name)
            seen.add(name)

    def _check_hook(self, hook: JsonObject, path: str, errors: FieldErrors, *, strict: bool) -> None:
        _check_hook_name(hook["name"], f"{path}.name", errors)
        for index, rule in enumerate(hook.get("rules") or ()):
            check_rule(rule, f"{path}.rules[{index}]", errors)
        if hook["failurePolicy"] not in FAILURE_POLICIES:
            errors.not_supported(f"{path}.failurePolicy", hook["failurePolicy"], FAILURE_POLICIES)
        if hook["matchPolicy"] not in MATCH_POLICIES:
            errors.not_supported(f"{path}.matchPolicy", hook["matchPolicy"], MATCH_POLICIES)
        allowed = _NO_SIDE_EFFECTS if strict else _SIDE_EFFECTS
        effects = hook["sideEffects"]
        if effects is None:
            errors.required(f"{path}.sideEffects", f"must specify one of {', '.join(allowed)}")
        elif effects not in allowed:
            errors.not_supported(f"{path}.sideEffects", effects, allowed)
        timeout_s = hook["timeoutSeconds"]
        if not 1 <= timeout_s <= 30:
            message = "the timeout value must be between 1 and 30 seconds"
            errors.invalid(f"{path}.timeoutSeconds", timeout_s, message)
        check_selector(hook["namespaceSelector"], f"{path}.namespaceSelector", errors)
        check_selector(hook["objectSelector"], f"{path}.objectSelector", errors)
        if self.mutates and hook["reinvocationPolicy"] not in REINVOCATION_POLICIES:
            errors.not_supported(f"{path}.reinvocationPolicy", hook["reinvocationPolicy"], REINVOCATION_POLICIES)
        _check_client(hook["clientConfig"], f"{path}.clientConfig", errors)
        check_match_conditions(hook.get("matchConditions") or [], f"{path}.matchConditions", errors)


class MutatingWebhookConfiguration(ValidatingWebhookConfiguration):
    go_type = "admissionregistration.v1.MutatingWebhookConfiguration"
    mutates = True


def default_rules(rules: list[JsonObject]) -> None:
    for rule in rules:
        rule.setdefault("scope", "*")


def _check_hook_name(name: str, path: str, errors: FieldErrors) -> None:
    if not name:
        errors.required(path)
        return
    problems = names.is_dns1123_subdomain(name)
    if problems:
        errors.invalid(path, name, ",".join(problems))
    elif name.count(".") < 2:
        errors.invalid(path, name, "should be a domain with at least three segments separated by dots")


def check_rule(rule: JsonObject, path: str, errors: FieldErrors) -> None:
    """Which operations on which resources: rules of webhooks and of admission policies."""
    operations = rule.get("operations") or []
    if not operations:
        errors.required(f"{path}.operations")
    if len(operations) > 1 and "*" in operations:
        errors.invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            errors.not_supported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    groups, versions = rule.get("apiGroups") or [], rule.get("apiVersions") or []
    if not groups:
        errors.required(f"{path}.apiGroups")
    if len(groups) > 1 and "*" in groups:
        errors.invalid(f"{path}.apiGroups", groups, "if '*' is present, must not specify other API groups")
    if not versions:
        errors.required(f"{path}.apiVersions")
    if len(versions) > 1 and "*" in versions:
        errors.invalid(f"{path}.apiVersions", versions, "if '*' is present, must not specify other API versions")
    for index, version in enumerate(versions):
        if not version:
            errors.required(f"{path}.apiVersions[{index}]")
    _check_resources(rule.get("resources") or [], f"{path}.resources", errors)
    if rule["scope"] not in _SCOPES:
        errors.not_supported(f"{path}.scope", rule["scope"], _SCOPES)


def _check_resources(resources: list[str], path: str, errors: FieldErrors) -> None:
    if not resources:
        errors.required(path)
    all_subresources: set[str] = set()
    of_all_resources: set[str] = set()
    has_plain = False
    for index, text in enumerate(resources):
        if not text:
            errors.required(f"{path}[{index}]")
            continue
        resource, slash, subresource = text.partition("/")
        if not slash:
            has_plain = text != "*"
            continue
        if resource in all_subresources:
            errors.invalid(f"{path}[{index}]", text, f"if '{resource}/*' is present, must not specify {text}")
        if subresource in of_all_resources:
            errors.invalid(f"{path}[{index}]", text, f"if '*/{subresource}' is present, must not specify {text}")
        if subresource == "*":
            all_subresources.add(resource)
        if resource == "*":
            of_all_resources.add(subresource)
    if len(resources) > 1 and "*/*" in resources:
        errors.invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and has_plain:
        message = "if '*' is present, must not specify other resources without subresources"
        errors.invalid(path, resources, message)


def _check_review_versions(versions: list[str], path: str, errors: FieldErrors) -> None:
    if not versions:
        errors.required(path, f"must specify one of {', '.join(_REVIEW_VERSIONS)}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            errors.invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        errors.all_invalid(f"{path}[{index}]", version, names.is_dns1035_label(version))
    if not any(version in _REVIEW_VERSIONS for version in versions):
        errors.invalid(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")


def _check_client(config: JsonObject, path: str, errors: FieldErrors) -> None:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        errors.required(path, "exactly one of url or service is required")
    elif url is not None:
        _check_url(url, f"{path}.url", errors)
    elif service is not None:
        check_service_reference(service, f"{path}.service", errors)


def _check_url(text: str, path: str, errors: FieldErrors) -> None:
    try:
        url = urlsplit(text)
    except ValueError as problem:
        errors.required(path, f"url must be a valid URL: {problem}{_URL_FORM}")
        return
    if url.scheme != "https":
        errors.invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_URL_FORM}")
    host = url.netloc.rpartition("@")[2]
    if not host:
        errors.invalid(path, "", f"host must be specified{_URL_FORM}")
    if "@" in url.netloc:
        user = url.netloc.rpartition("@")[0]
        errors.invalid(path, user, "user information is not permitted in the URL")
    if url.fragment:
        errors.invalid(path, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        errors.invalid(path, url.query, "query parameters are not permitted in the URL")


def check_service_reference(service: JsonObject, path: str, errors: FieldErrors) -> None:
    """The Service behind a webhook."""
    # Upstream confuses the two names here, which shows in the path.
    for field, other in (("name", "namespace"), ("namespace", "name")):
        if not service.get(other):
            errors.required(f"{path}.{field}")
    problems = names.is_port_number(service["port"])
    if problems:
        errors.invalid(f"{path}.port", service["port"], f"port is not valid: {', '.join(problems)}")
    text = service.get("path")
    if text in (None, "", "/"):
        return
    if text == "//":
        errors.invalid(f"{path}.path", text, "segment[0] may not be empty")
        return
    if not text.startswith("/"):
        errors.invalid(f"{path}.path", text, "must start with a '/'")
    for index, segment in enumerate(text[1:].removesuffix("/").split("/")):
        if not segment:
            errors.invalid(f"{path}.path", text, f"segment[{index}] may not be empty")
            continue
        for problem in names.is_dns1123_subdomain(segment):
            errors.invalid(f"{path}.path", text, f"segment[{index}]: {problem}")


def check_match_conditions(conditions: list[JsonObject], path: str, errors: FieldErrors) -> None:
    """Names, presence and, where CEL is installed, syntax; what an expression means shows when it is evaluated."""
    if len(conditions) > _CONDITIONS_MAX:
        errors.too_many(path, len(conditions), _CONDITIONS_MAX)
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        at, name = f"{path}[{index}]", condition["name"]
        expression = condition["expression"]
        if not expression.strip():
            errors.required(f"{at}.expression")
        elif problem := syntax_problem(expression):
            errors.invalid(f"{at}.expression", expression, f"compilation failed: {problem}")
        if not name:
            errors.required(f"{at}.name")
        else:
            errors.all_invalid(f"{at}.name", name, names.is_qualified_name(name))
            if name in seen:
                errors.duplicate(f"{at}.name", name)
            seen.add(name)
