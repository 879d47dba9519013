"""Rules for security contexts of pods and containers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.paths import validate_descending
from holokube.kube import names
from holokube.kube.types import JsonObject

SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
APPARMOR_CONTAINER = "container.apparmor.security.beta.kubernetes.io/"
_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_APPARMOR_PATH_MAX = 4095
_SYSCTL_MAX_LENGTH = 253
_SYSCTL_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"^({_SYSCTL_SEGMENT}[\./])*{_SYSCTL_SEGMENT}$"
_sysctl = re.compile(_SYSCTL, re.ASCII).fullmatch
_IPC_SYSCTLS = frozenset({"kernel.sem"})
_IPC_SYSCTL_PREFIXES = ("kernel.shm", "kernel.msg", "fs.mqueue.")
_GMSA_MAX_KIB = 64
_USER_DOMAIN_MAX = 256
_USER_MAX = 104
_net_bios = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}').fullmatch
_DOMAIN_LABEL = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_domain = re.compile(rf"{_DOMAIN_LABEL}(?:\.{_DOMAIN_LABEL})*").fullmatch
_control = re.compile(r"[\x00-\x1f\x7f]").search
_bad_user = re.compile(r'["/\\:;|=,+*?<>@\[\]]').search
_only_dots = re.compile(r"[. ]+").fullmatch
_CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")


def all_containers(spec: JsonObject, path: str) -> Iterator[tuple[JsonObject, str]]:
    """Every container of a pod with its path, in upstream's order: init, regular, ephemeral."""
    for key in _CONTAINER_LISTS:
        for index, container in enumerate(spec.get(key) or ()):
            yield container, f"{path}.{key}[{index}]"


def validate_container_security(
    context: JsonObject, path: str, errors: FieldErrors, *, host_users: bool
) -> None:
    for key in ("runAsUser", "runAsGroup"):
        value = context.get(key)
        if value is not None:
            errors.all_invalid(f"{path}.{key}", value, names.is_user_or_group_id(value))
    mount = context.get("procMount")
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            errors.not_supported(f"{path}.procMount", mount, ("Default", "Unmasked"))
        if host_users and mount == "Unmasked":
            errors.invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    _validate_seccomp(context.get("seccompProfile"), f"{path}.seccompProfile", errors)
    if context.get("allowPrivilegeEscalation") is False:
        start = "cannot set `allowPrivilegeEscalation` to false and"
        if context.get("privileged"):
            errors.invalid(path, context, f"{start} `privileged` to true")
        for capability in (context.get("capabilities") or {}).get("add") or ():
            if capability == "CAP_SYS_ADMIN":
                errors.invalid(path, context, f"{start} `capabilities.Add` CAP_SYS_ADMIN")
    _validate_windows_options(context.get("windowsOptions"), f"{path}.windowsOptions", errors)
    _validate_apparmor(context.get("appArmorProfile"), f"{path}.appArmorProfile", errors)


def validate_pod_security(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    """``spec.securityContext`` and the host namespaces beside it."""
    context: JsonObject = spec.get("securityContext") or {}
    at = f"{path}.securityContext"
    for key in ("fsGroup", "runAsUser", "runAsGroup"):
        value = context.get(key)
        if value is not None:
            errors.all_invalid(f"{at}.{key}", value, names.is_user_or_group_id(value))
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        errors.all_invalid(f"{at}.supplementalGroups[{index}]", group, names.is_user_or_group_id(group))
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.invalid(f"{at}.shareProcessNamespace", True, detail)
    if not context:
        return
    _validate_sysctls(spec, context, f"{at}.sysctls", errors)
    policy = context.get("fsGroupChangePolicy")
    if policy is not None and policy not in ("Always", "OnRootMismatch"):
        errors.not_supported(f"{at}.fsGroupChangePolicy", policy, ("Always", "OnRootMismatch"))
    _validate_seccomp(context.get("seccompProfile"), f"{at}.seccompProfile", errors)
    _validate_windows_options(context.get("windowsOptions"), f"{at}.windowsOptions", errors)
    _validate_apparmor(context.get("appArmorProfile"), f"{at}.appArmorProfile", errors)
    policy = context.get("supplementalGroupsPolicy")
    if policy is not None and policy not in ("Merge", "Strict"):
        errors.not_supported(f"{at}.supplementalGroupsPolicy", policy, ("Merge", "Strict"))
    policy = context.get("seLinuxChangePolicy")
    if policy is not None and policy != "Recursive":
        errors.not_supported(f"{at}.seLinuxChangePolicy", policy, ("Recursive",))


def _validate_sysctls(spec: JsonObject, context: JsonObject, path: str, errors: FieldErrors) -> None:
    seen: set[str] = set()
    for index, sysctl in enumerate(context.get("sysctls") or ()):
        name: str = sysctl.get("name", "")
        at = f"{path}[{index}].name"
        if not name:
            errors.required(at)
        elif len(name) > _SYSCTL_MAX_LENGTH or not _sysctl(name):
            detail = f"must have at most {_SYSCTL_MAX_LENGTH} characters and match regex {_SYSCTL}"
            errors.invalid(at, name, detail)
        elif name in seen:
            errors.duplicate(at, name)
        seen.add(name)
        dotted = _with_dots(name)
        if spec.get("hostNetwork") and dotted.startswith("net."):
            errors.invalid(at, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and (dotted in _IPC_SYSCTLS or dotted.startswith(_IPC_SYSCTL_PREFIXES)):
            errors.invalid(at, name, "may not be specified when 'hostIPC' is true")


def _with_dots(name: str) -> str:
    """Sysctls may be written with slashes; the first separator says which notation it is."""
    slash, dot = name.find("/"), name.find(".")
    if slash < 0 or 0 <= dot < slash:
        return name
    return name.translate(str.maketrans("./", "/."))


def _validate_seccomp(profile: JsonObject | None, path: str, errors: FieldErrors) -> None:
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        errors.required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILE_TYPES:
        errors.not_supported(f"{path}.type", kind, _PROFILE_TYPES)
    if kind == "Localhost":
        if local is None:
            errors.required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
        else:
            validate_descending(local, f"{path}.localhostProfile", errors)
    elif local is not None:
        shown = {"Type": kind, "LocalhostProfile": local}
        errors.invalid(f"{path}.localhostProfile", shown, "can only be set when seccomp type is Localhost")


def _validate_apparmor(profile: JsonObject | None, path: str, errors: FieldErrors) -> None:
    if profile is None:
        return
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    at = f"{path}.localhostProfile"
    if kind == "Localhost":
        if local is None or (not local.strip() and local == local.strip()):
            errors.required(at, "must be set when AppArmor type is Localhost")
        elif local != local.strip():
            errors.invalid(at, local, "must not be padded with whitespace")
        if local is not None and len(local.encode()) > _APPARMOR_PATH_MAX:
            errors.too_long(at, local, _APPARMOR_PATH_MAX)
    elif kind in _PROFILE_TYPES:
        if local is not None:
            errors.invalid(at, local, "can only be set when AppArmor type is Localhost")
    elif not kind:
        errors.required(f"{path}.type", "type is required when appArmorProfile is set")
    else:
        errors.not_supported(f"{path}.type", kind, _PROFILE_TYPES)


def _validate_windows_options(options: JsonObject | None, path: str, errors: FieldErrors) -> None:
    if options is None:
        return
    name = options.get("gmsaCredentialSpecName")
    if name is not None:
        errors.all_invalid(f"{path}.gmsaCredentialSpecName", name, names.is_dns1123_subdomain(name))
    credentials = options.get("gmsaCredentialSpec")
    if credentials is not None:
        at = f"{path}.gmsaCredentialSpec"
        if not credentials:
            errors.invalid(at, credentials, "gmsaCredentialSpec cannot be an empty string")
        elif len(credentials.encode()) > _GMSA_MAX_KIB * 1024:
            errors.invalid(at, credentials, f"gmsaCredentialSpec size must be under {_GMSA_MAX_KIB} KiB")
    user = options.get("runAsUserName")
    if user is not None:
        for problem in _windows_user_problems(user):
            errors.invalid(f"{path}.runAsUserName", user, f"runAsUserName{problem}")


def _windows_user_problems(name: str) -> list[str]:
    if not name:
        return [" cannot be an empty string"]
    if _control(name):
        return [" cannot contain control characters"]
    if name.count("\\") > 1:
        return [" cannot contain more than one backslash"]
    domain, backslash, user = name.rpartition("\\")
    problems = []
    if len(domain) >= _USER_DOMAIN_MAX:
        problems.append(f"'s Domain length must be under {_USER_DOMAIN_MAX} characters")
    if backslash and not _net_bios(domain) and not _domain(domain):
        problems.append("'s Domain doesn't match the NetBios nor the DNS format")
    if not user:
        problems.append("'s User cannot be empty")
    elif len(user) > _USER_MAX:
        problems.append(f"'s User length must not be longer than {_USER_MAX} characters")
    if _only_dots(user):
        problems.append("'s User cannot contain only periods or spaces")
    if _bad_user(user):
        problems.append("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]")
    return problems


def validate_host_process(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    """Windows containers that run on the host do so all together, on the host's network."""
    contexts = [spec.get("securityContext")]
    contexts += [c.get("securityContext") for key in _CONTAINER_LISTS for c in spec.get(key) or ()]
    if not any(context and "windowsOptions" in context for context in contexts):
        return
    pod_value = ((spec.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
    count = on_host = 0
    for container, at in all_containers(spec, path):
        count += 1
        options = (container.get("securityContext") or {}).get("windowsOptions") or {}
        own = options.get("hostProcess")
        if pod_value is not None and own is not None and pod_value != own:
            shown = "true" if pod_value else "false"
            detail = f"pod hostProcess value must be identical if both are specified, was {shown}"
            errors.invalid(f"{at}.securityContext.windowsOptions.hostProcess", own, detail)
        if own or (own is None and pod_value):
            on_host += 1
    if not on_host:
        return
    if on_host != count:
        detail = (
            "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        )
        errors.invalid(path, "", detail)
    if not spec.get("hostNetwork"):
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        errors.invalid(f"{path}.hostNetwork", False, detail)


def validate_host_users(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    """A pod with a user namespace of its own can use no other namespace of the host."""
    if spec.get("hostUsers") is not False:
        return
    detail = "when `hostUsers` is false"
    for key, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if spec.get(key):
            errors.forbidden(f"{path}.{shown}", detail)
    for container, at in all_containers(spec, path):
        if container.get("volumeDevices"):
            errors.forbidden(f"{at}.volumeDevices", detail)


_NOT_ON_WINDOWS = (
    ("appArmorProfile", True), ("seLinuxOptions", True), ("hostUsers", False), ("hostPID", False),
    ("hostIPC", False), ("seccompProfile", True), ("fsGroup", True), ("fsGroupChangePolicy", True),
    ("sysctls", True), ("shareProcessNamespace", False), ("runAsUser", True), ("runAsGroup", True),
    ("supplementalGroups", True), ("supplementalGroupsPolicy", True), ("seLinuxChangePolicy", True),
)  # fmt: skip
_NOT_IN_WINDOWS_CONTAINERS = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem",
    "privileged", "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip


def validate_os(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    """``spec.os`` is known, and nothing is asked for that the other system has."""
    name = spec["os"].get("name")
    if not name:
        errors.required(f"{path}.os.name")
    elif name not in ("linux", "windows"):
        errors.not_supported(f"{path}.os", name, ("linux", "windows"))
    elif name == "linux":
        _validate_linux(spec, path, errors)
    else:
        _validate_windows(spec, path, errors)


def _validate_linux(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    detail = "windows options cannot be set for a linux pod"
    if "windowsOptions" in (spec.get("securityContext") or {}):
        errors.forbidden(f"{path}.securityContext.windowsOptions", detail)
    for container, at in all_containers(spec, path):
        if "windowsOptions" in (container.get("securityContext") or {}):
            errors.forbidden(f"{at}.securityContext.windowsOptions", detail)


def _validate_windows(spec: JsonObject, path: str, errors: FieldErrors) -> None:
    detail = "cannot be set for a windows pod"
    context = spec.get("securityContext") or {}
    for key, in_context in _NOT_ON_WINDOWS:
        if in_context and key in context:
            errors.forbidden(f"{path}.securityContext.{key}", detail)
        elif not in_context and key in spec:
            errors.forbidden(f"{path}.{key}", detail)
    for container, at in all_containers(spec, path):
        own = container.get("securityContext") or {}
        for key in _NOT_IN_WINDOWS_CONTAINERS:
            if key in own:
                errors.forbidden(f"{at}.securityContext.{key}", detail)
