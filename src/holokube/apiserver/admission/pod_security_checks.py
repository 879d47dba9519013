"""The Pod Security Standards: what the baseline and the restricted level forbid a pod.

Each check gets a pod's metadata and spec and the minor version of the policy, and answers with a reason and
its detail if the pod breaks the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from holokube.kube.types import JsonObject

Violation = tuple[str, str]
Check = Callable[[JsonObject, JsonObject, int], Violation | None]

LATEST_MINOR: Final = 36
_APP_ARMOR_PREFIX: Final = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_PREFIX: Final = "container.seccomp.security.alpha.kubernetes.io/"
_DEFAULT_CAPABILITIES: Final = frozenset({
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
    "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
})  # fmt: skip
_PROFILES: Final = frozenset({"RuntimeDefault", "Localhost"})
_SAFE_SYSCTLS: Final = {
    "kernel.shm_rmid_forced": 0, "net.ipv4.ip_local_port_range": 0, "net.ipv4.tcp_syncookies": 0,
    "net.ipv4.ping_group_range": 0, "net.ipv4.ip_unprivileged_port_start": 0,
    "net.ipv4.ip_local_reserved_ports": 27, "net.ipv4.tcp_keepalive_time": 29, "net.ipv4.tcp_fin_timeout": 29,
    "net.ipv4.tcp_keepalive_intvl": 29, "net.ipv4.tcp_keepalive_probes": 29, "net.ipv4.tcp_rmem": 32,
    "net.ipv4.tcp_wmem": 32,
}  # fmt: skip
_SELINUX_TYPES: Final = {
    "": 0, "container_t": 0, "container_init_t": 0, "container_kvm_t": 0, "container_engine_t": 31,
}  # fmt: skip
_RESTRICTED_VOLUMES: Final = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "gitRepo", "nfs", "iscsi", "glusterfs", "rbd",
    "flexVolume", "cinder", "cephfs", "flocker", "fc", "azureFile", "vsphereVolume", "quobyte", "azureDisk",
    "photonPersistentDisk", "portworxVolume", "scaleIO", "storageos",
)  # fmt: skip
_HARMLESS_VOLUMES: Final = (
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected",
    "secret",
)  # fmt: skip


def containers_of(spec: JsonObject) -> Iterator[JsonObject]:
    for key in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(key) or ()


def _security(holder: JsonObject) -> JsonObject:
    found: JsonObject = holder.get("securityContext") or {}
    return found


def _quoted(items: Iterable[str]) -> str:
    return ", ".join(f'"{item}"' for item in items)


def _some(word: str, items: Iterable[str], plural: str = "") -> str:
    listed = list(items)
    return f"{_count(word, len(listed), plural)} {_quoted(listed)}"


def _count(word: str, count: int, plural: str = "") -> str:
    return word if count == 1 else plural or f"{word}s"


def _names(spec: JsonObject, breaks: Callable[[JsonObject], Any]) -> list[str]:
    return [one.get("name", "") for one in containers_of(spec) if breaks(one)]


def _setters(spec: JsonObject, breaks: Callable[[JsonObject], Any]) -> str:
    """Who breaks a rule that holds for the security context of the pod and of its containers."""
    found = ["pod"] if breaks(_security(spec)) else []
    names = _names(spec, lambda one: breaks(_security(one)))
    if names:
        found.append(_some("container", names))
    return " and ".join(found)


def _is_windows(spec: JsonObject) -> bool:
    return bool((spec.get("os") or {}).get("name") == "windows")


def _has_own_users(spec: JsonObject, minor: int) -> bool:
    """Since 1.35 root inside a user namespace counts as nobody outside."""
    return minor >= 35 and spec.get("hostUsers") is False


# Baseline


def _app_armor(meta: JsonObject, spec: JsonObject, _: int) -> Violation | None:
    values: set[str] = set()

    def breaks(context: JsonObject) -> bool:
        profile = context.get("appArmorProfile")
        if profile is None or profile.get("type") in _PROFILES:
            return False
        values.add(profile.get("type", ""))
        return True

    setters = [part for part in (_setters(spec, breaks),) if part]
    bad = sorted(values)
    annotations = sorted(
        f'{key}="{value}"'
        for key, value in (meta.get("annotations") or {}).items()
        if key.startswith(_APP_ARMOR_PREFIX)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    if annotations:
        bad += annotations
        setters.append(_count("annotation", len(annotations)))
    if not setters:
        return None
    return (
        _count("forbidden AppArmor profile", len(bad)),
        f"{' and '.join(setters)} must not set AppArmor profile type to {_quoted(bad)}",
    )


def _added(container: JsonObject) -> list[str]:
    return (_security(container).get("capabilities") or {}).get("add") or []


def _capabilities_baseline(_: JsonObject, spec: JsonObject, __: int) -> Violation | None:
    bad = _names(spec, lambda one: set(_added(one)) - _DEFAULT_CAPABILITIES)
    if not bad:
        return None
    extra = sorted({name for one in containers_of(spec) for name in _added(one)} - _DEFAULT_CAPABILITIES)
    return (
        "non-default capabilities",
        f"{_some('container', bad)} must not include {_quoted(extra)} in securityContext.capabilities.add",
    )


def _host_namespaces(_: JsonObject, spec: JsonObject, __: int) -> Violation | None:
    bad = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    return ("host namespaces", ", ".join(bad)) if bad else None


def _host_path_volumes(_: JsonObject, spec: JsonObject, __: int) -> Violation | None:
    bad = [one.get("name", "") for one in spec.get("volumes") or () if "hostPath" in one]
    return ("hostPath volumes", _some("volume", bad)) if bad else None


def _host_ports(_: JsonObject, spec: JsonObject, __: int) -> Violation | None:
    def ports(container: JsonObject) -> list[str]:
        return [str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")]

    bad = _names(spec, ports)
    if not bad:
        return None
    found = sorted({port for one in containers_of(spec) for port in ports(one)})
    uses, word = _count("uses", len(bad), "use"), _count("hostPort", len(found))
    return "hostPort", f"{_some('container', bad)} {uses} {word} {', '.join(found)}"


def _probed_hosts(container: JsonObject) -> list[str]:
    lifecycle = container.get("lifecycle") or {}
    handlers = [container.get(key) for key in ("livenessProbe", "readinessProbe", "startupProbe")]
    handlers += [lifecycle.get(key) for key in ("postStart", "preStop")]
    actions = [(handler or {}).get(kind) for handler in handlers for kind in ("httpGet", "tcpSocket")]
    return [action["host"] for action in actions if action and action.get("host")]


def _host_probes(_: JsonObject, spec: JsonObject, minor: int) -> Violation | None:
    if minor < 34:
        return None
    bad = sorted(set(_names(spec, _probed_hosts)))
    if not bad:
        return None
    hosts = sorted({host for one in containers_of(spec) for host in _probed_hosts(one)})
    uses = _count("uses", len(bad), "use")
    return (
        "probe or lifecycle host",
        f"{_some('container', bad)} {uses} {_some('probe or lifecycle host', hosts)}",
    )


def _privileged(_: JsonObject, spec: JsonObject, __: int) -> Violation | None:
    bad = _names(spec, lambda one: _security(one).get("privileged"))
    return (
        ("privileged", f"{_some('container', bad)} must not set securityContext.privileged=true")
        if bad
        else None
    )


def _proc_mount(_: JsonObject, spec: JsonObject, __: int) -> Violation | None:
    def breaks(container: JsonObject) -> bool:
        return bool(_security(container).get("procMount", "Default") != "Default")

    bad = _names(spec, breaks)
    if not bad:
        return None
    kinds = sorted({_security(one)["procMount"] for one in containers_of(spec) if breaks(one)})
    return (
        "procMount",
        f"{_some('container', bad)} must not set securityContext.procMount to {_quoted(kinds)}",
    )


def _proc_mount_baseline(meta: JsonObject, spec: JsonObject, minor: int) -> Violation | None:
    return None if _has_own_users(spec, minor) else _proc_mount(meta, spec, minor)


def _se_linux(_: JsonObject, spec: JsonObject, minor: int) -> Violation | None:
    types: set[str] = set()
    others: set[str] = set()

    def breaks(context: JsonObject) -> bool:
        options = context.get("seLinuxOptions")
        if options is None:
            return False
        kind = options.get("type", "")
        bad_type = _SELINUX_TYPES.get(kind, minor + 1) > minor
        if bad_type:
            types.add(kind)
        found = {key for key in ("user", "role") if options.get(key)}
        others.update(found)
        return bad_type or bool(found)

    setters = _setters(spec, breaks)
    if not setters:
        return None
    data = [_some("type", sorted(types))] if types else []
    data += [f"{key} may not be set" for key in ("user", "role") if key in others]
    return "seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}"


def _seccomp_values(spec: JsonObject) -> Violation | None:
    values: set[str] = set()

    def breaks(context: JsonObject) -> bool:
        profile = context.get("seccompProfile")
        if profile is None or profile.get("type") in _PROFILES:
            return False
        values.add(profile.get("type", ""))
        return True

    setters = _setters(spec, breaks)
    if not setters:
        return None
    what = _quoted(sorted(values))
    return "seccompProfile", f"{setters} must not set securityContext.seccompProfile.type to {what}"


def _seccomp_baseline(meta: JsonObject, spec: JsonObject, minor: int) -> Violation | None:
    if minor >= 19:
        return _seccomp_values(spec)
    annotations = meta.get("annotations") or {}
    keys = {_SECCOMP_POD, *(_SECCOMP_PREFIX + one.get("name", "") for one in containers_of(spec))}
    bad = sorted(
        f'{key}="{annotations[key]}"'
        for key in keys
        if key in annotations
        and annotations[key] not in ("runtime/default", "docker/default")
        and not annotations[key].startswith("localhost/")
    )
    return ("seccompProfile", f"forbidden {_count('annotation', len(bad))} {', '.join(bad)}") if bad else None


def _sysctls(_: JsonObject, spec: JsonObject, minor: int) -> Violation | None:
    written = [one.get("name", "") for one in _security(spec).get("sysctls") or ()]
    bad = [name for name in written if _SAFE_SYSCTLS.get(name, minor + 1) > minor]
    return ("forbidden sysctls", ", ".join(bad)) if bad else None


def _windows_host_process(_: JsonObject, spec: JsonObject, __: int) -> Violation | None:
    setters = _setters(spec, lambda context: (context.get("windowsOptions") or {}).get("hostProcess"))
    if not setters:
        return None
    return "hostProcess", f"{setters} must not set securityContext.windowsOptions.hostProcess=true"


# Restricted


def _privilege_escalation(_: JsonObject, spec: JsonObject, minor: int) -> Violation | None:
    if minor < 8 or (minor >= 25 and _is_windows(spec)):
        return None
    bad = _names(spec, lambda one: _security(one).get("allowPrivilegeEscalation") is not False)
    if not bad:
        return None
    return (
        "allowPrivilegeEscalation != false",
        f"{_some('container', bad)} must set securityContext.allowPrivilegeEscalation=false",
    )


def _capabilities_restricted(meta: JsonObject, spec: JsonObject, minor: int) -> Violation | None:
    if minor < 22:
        return _capabilities_baseline(meta, spec, minor)
    if minor >= 25 and _is_windows(spec):
        return None
    details = []
    keeping = _names(
        spec, lambda one: "ALL" not in ((_security(one).get("capabilities") or {}).get("drop") or ())
    )
    if keeping:
        details.append(f'{_some("container", keeping)} must set securityContext.capabilities.drop=["ALL"]')
    adding = _names(spec, lambda one: set(_added(one)) - {"NET_BIND_SERVICE"})
    if adding:
        extra = sorted({name for one in containers_of(spec) for name in _added(one)} - {"NET_BIND_SERVICE"})
        details.append(
            f"{_some('container', adding)} must not include {_quoted(extra)} in "
            "securityContext.capabilities.add"
        )
    return ("unrestricted capabilities", "; ".join(details)) if details else None


def _restricted_volumes(_: JsonObject, spec: JsonObject, __: int) -> Violation | None:
    volumes = [one for one in spec.get("volumes") or () if not any(kind in one for kind in _HARMLESS_VOLUMES)]
    if not volumes:
        return None
    kinds = sorted(
        {next((kind for kind in _RESTRICTED_VOLUMES if kind in one), "unknown") for one in volumes}
    )
    uses = _count("uses", len(volumes), "use")
    names = [one.get("name", "") for one in volumes]
    return (
        "restricted volume types",
        f"{_some('volume', names)} {uses} {_some('restricted volume type', kinds)}",
    )


def _run_as_non_root(_: JsonObject, spec: JsonObject, minor: int) -> Violation | None:
    if _has_own_users(spec, minor):
        return None
    setters = _setters(spec, lambda context: context.get("runAsNonRoot") is False)
    if setters:
        return "runAsNonRoot != true", f"{setters} must not set securityContext.runAsNonRoot=false"
    if _security(spec).get("runAsNonRoot"):
        return None
    bad = _names(spec, lambda one: _security(one).get("runAsNonRoot") is None)
    if not bad:
        return None
    return (
        "runAsNonRoot != true",
        f"pod or {_some('container', bad)} must set securityContext.runAsNonRoot=true",
    )


def _run_as_user(_: JsonObject, spec: JsonObject, minor: int) -> Violation | None:
    if minor < 23 or _has_own_users(spec, minor):
        return None
    setters = _setters(spec, lambda context: context.get("runAsUser") == 0)
    return ("runAsUser=0", f"{setters} must not set runAsUser=0") if setters else None


def _seccomp_restricted(meta: JsonObject, spec: JsonObject, minor: int) -> Violation | None:
    if minor < 19:
        return _seccomp_baseline(meta, spec, minor)
    if minor >= 25 and _is_windows(spec):
        return None
    explicit = _seccomp_values(spec)
    if explicit is not None or _security(spec).get("seccompProfile") is not None:
        return explicit
    bad = _names(spec, lambda one: _security(one).get("seccompProfile") is None)
    if not bad:
        return None
    detail = f"pod or {_some('container', bad)} must set securityContext.seccompProfile.type to "
    return "seccompProfile", detail + '"RuntimeDefault" or "Localhost"'


def _proc_mount_restricted(meta: JsonObject, spec: JsonObject, minor: int) -> Violation | None:
    return _proc_mount(meta, spec, minor) if minor >= 35 else None


def _proc_mount_inherited(meta: JsonObject, spec: JsonObject, minor: int) -> Violation | None:
    return _proc_mount(meta, spec, minor) if minor < 35 else None


# In the order of the checks' names upstream, in which violations are listed.
BASELINE: Final[tuple[Check, ...]] = (
    _app_armor, _capabilities_baseline, _host_namespaces, _host_path_volumes, _host_ports, _host_probes,
    _privileged, _proc_mount_baseline, _se_linux, _seccomp_baseline, _sysctls, _windows_host_process,
)  # fmt: skip
# The restricted level has stricter forms of some baseline checks, which stand in their own place.
RESTRICTED: Final[tuple[Check, ...]] = (
    _app_armor, _host_namespaces, _host_ports, _host_probes, _privileged, _proc_mount_inherited, _se_linux,
    _sysctls, _windows_host_process, _privilege_escalation, _capabilities_restricted, _proc_mount_restricted,
    _restricted_volumes, _run_as_non_root, _run_as_user, _seccomp_restricted,
)  # fmt: skip
