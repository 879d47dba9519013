"""All that is needed to reach one cluster as one user, wherever it was written down."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from holokube.base.clock import Clock
from holokube.base.errors import ConfigError
from holokube.client.auth import Authenticator, FixedAuth, ImpersonatingAuth, Impersonation, TokenFileAuth
from holokube.client.exec_plugin import ExecAuth, ExecPlugin
from holokube.client.tls import TlsSettings

SERVICE_ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class UserSettings:
    """Who to be, apart from a client certificate, which belongs to TLS."""

    token: str = field(default="", repr=False)
    token_file: str = ""
    """Read again and again; its content wins over ``token``."""
    username: str = ""
    password: str = field(default="", repr=False)
    exec_plugin: ExecPlugin | None = None
    impersonation: Impersonation | None = None


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """One cluster, one user, one namespace."""

    server: str
    """``https://host:port``, possibly with a path in front of ``/api``."""
    namespace: str = "default"
    context: str = ""
    tls: TlsSettings = field(default_factory=TlsSettings)
    user: UserSettings = field(default_factory=UserSettings)
    proxy_url: str = ""
    """Empty: ask the environment."""
    disable_compression: bool = False
    exec_config: Any = None
    """The cluster's extension for exec plugins, handed to them as it is."""

    @property
    def is_tls(self) -> bool:
        return urlsplit(self.server).scheme == "https"

    def authenticator(self, clock: Clock) -> Authenticator:
        """The source of credentials. As upstream, secrets are never sent over a connection without TLS."""
        user = self.user
        inner: Authenticator = FixedAuth()
        if self.is_tls:
            if user.token_file:
                inner = TokenFileAuth(clock, user.token_file, fallback=user.token)
            elif user.token:
                inner = FixedAuth.bearer(user.token)
            elif user.username or user.password:
                inner = FixedAuth.basic(user.username, user.password)
            elif user.exec_plugin is not None and not self.tls.has_certificate:
                inner = ExecAuth(clock, user.exec_plugin, cluster_info=self._cluster_info())
        return ImpersonatingAuth(inner, user.impersonation) if user.impersonation is not None else inner

    def _cluster_info(self) -> dict[str, Any]:
        """The cluster as exec plugins with ``provideClusterInfo`` get to see it."""
        info: dict[str, Any] = {"server": self.server}
        if self.tls.server_name:
            info["tls-server-name"] = self.tls.server_name
        if self.tls.insecure_skip_verify:
            info["insecure-skip-tls-verify"] = True
        authority = self.tls.read_ca()
        if authority:
            info["certificate-authority-data"] = base64.b64encode(authority).decode("ascii")
        if self.proxy_url:
            info["proxy-url"] = self.proxy_url
        if self.disable_compression:
            info["disable-compression"] = True
        info["config"] = self.exec_config
        return info


def in_cluster_access(
    environ: Mapping[str, str] | None = None, folder: Path = SERVICE_ACCOUNT_FOLDER
) -> ClusterAccess | None:
    """The cluster that this process is a pod of; None outside of one."""
    environ = os.environ if environ is None else environ
    host, port = environ.get("KUBERNETES_SERVICE_HOST", ""), environ.get("KUBERNETES_SERVICE_PORT", "")
    token = folder / "token"
    if not host or not port or not token.is_file():
        return None
    if not port.isdecimal():
        raise ConfigError(
            f"KUBERNETES_SERVICE_PORT is {port!r}, not a port number",
            hint="Leave the variable as the kubelet set it, or use --kubeconfig.",
        )
    authority = folder / "ca.crt"
    return ClusterAccess(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=_in_cluster_namespace(environ, folder),
        # Without the file the system's authorities are asked, as upstream does.
        tls=TlsSettings(ca_file=str(authority) if authority.is_file() else ""),
        user=UserSettings(token_file=str(token)),
    )


def _in_cluster_namespace(environ: Mapping[str, str], folder: Path) -> str:
    if environ.get("POD_NAMESPACE"):
        return environ["POD_NAMESPACE"]
    try:
        return (folder / "namespace").read_text(encoding="utf-8").strip() or "default"
    except OSError:
        return "default"
