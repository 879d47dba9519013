"""Credentials from a program: the ``exec`` section of a kubeconfig (``client.authentication.k8s.io``).

The program gets a description of what is asked in ``KUBERNETES_EXEC_INFO`` and prints an ``ExecCredential``.
It is run at most once at a time, again when its credential expires, and again when the server answers 401.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from holokube.base.clock import Clock
from holokube.base.errors import ConfigError
from holokube.client.auth import Credentials, bearer_header
from holokube.client.tls import CertificatePair

GROUP = "client.authentication.k8s.io"
API_VERSIONS = (f"{GROUP}/v1", f"{GROUP}/v1beta1")
INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")
UNATTENDED_LIMIT_S = 300.0
"""A program that nobody can answer and that takes this long will never end."""


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """The ``exec`` section of a kubeconfig's user."""

    command: str
    api_version: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"
    origin: str = ""
    """Where it was configured, for messages: ``user "alice" in /home/alice/.kube/config``."""


class ExecAuth:
    """Runs the plugin and keeps what it printed."""

    def __init__(
        self,
        clock: Clock,
        plugin: ExecPlugin,
        *,
        cluster_info: Mapping[str, Any] | None = None,
        is_terminal: Callable[[], bool] | None = None,
    ) -> None:
        self._clock = clock
        self._plugin = plugin
        self._cluster_info = cluster_info
        self._is_terminal = is_terminal or _stdin_is_terminal
        self._current: Credentials | None = None
        self._expires: datetime | None = None
        # A plugin may talk to the person at the terminal: two at once would be a riddle.
        self._running = asyncio.Lock()

    async def credentials(self) -> Credentials:
        if self._usable():
            assert self._current is not None
            return self._current
        async with self._running:
            if not self._usable():
                await self._refresh()
            assert self._current is not None
            return self._current

    async def rejected(self, used: Credentials) -> bool:
        async with self._running:
            # Another request may have refreshed them while this one was on its way.
            if self._current == used:
                await self._refresh()
            return self._current != used

    def _usable(self) -> bool:
        if self._current is None:
            return False
        return self._expires is None or self._clock.now() <= self._expires

    async def _refresh(self) -> None:
        output = await self._run()
        self._current, self._expires = _read_credential(self._plugin, output)

    def _interactive(self) -> bool:
        mode = self._plugin.interactive_mode
        if mode == "Never":
            return False
        if self._is_terminal():
            return True
        if mode == "Always":
            raise self._error(
                "needs a terminal (interactiveMode: Always), and standard input is not one",
                hint="Run this in a terminal, or use a non-interactive way to log in.",
            )
        return False

    async def _run(self) -> bytes:
        plugin = self._plugin
        interactive = self._interactive()
        spec: dict[str, Any] = {"interactive": interactive}
        if plugin.provide_cluster_info and self._cluster_info is not None:
            spec["cluster"] = dict(self._cluster_info)
        info = {"kind": "ExecCredential", "apiVersion": plugin.api_version, "spec": spec}
        env = {**os.environ, **dict(plugin.env), "KUBERNETES_EXEC_INFO": orjson.dumps(info).decode()}
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *plugin.args,
                env=env,
                stdin=None if interactive else DEVNULL,
                stdout=PIPE,
                stderr=None,
            )
        except (OSError, ValueError) as error:
            raise self._error(
                f"cannot be started: {error}",
                hint=printable(plugin.install_hint)
                or "Install the program or put it on PATH; the kubeconfig needs it to log in.",
            ) from error
        try:
            limit_s = None if interactive else UNATTENDED_LIMIT_S
            output, _ = await asyncio.wait_for(process.communicate(), limit_s)
        except TimeoutError as error:
            raise self._error(
                f"did not end within {UNATTENDED_LIMIT_S:.0f} s",
                hint="Run it by hand to see what it waits for.",
            ) from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            raise self._error(
                f"failed with exit code {process.returncode}",
                hint="What it wrote to standard error says why; often a new login is needed.",
            )
        return output

    def _error(self, what: str, *, hint: str) -> ConfigError:
        return plugin_error(self._plugin, what, hint=hint)


def plugin_error(plugin: ExecPlugin, what: str, *, hint: str) -> ConfigError:
    origin = f" ({plugin.origin})" if plugin.origin else ""
    return ConfigError(f"credential plugin {plugin.command}{origin} {what}", hint=hint)


def _read_credential(plugin: ExecPlugin, output: bytes) -> tuple[Credentials, datetime | None]:
    """Reads what the plugin printed, with upstream's checks."""
    hint = "The plugin does not do what client.authentication.k8s.io asks; look for a newer version of it."
    try:
        answer = orjson.loads(output)
    except orjson.JSONDecodeError as error:
        raise plugin_error(plugin, f"did not print JSON: {error}", hint=hint) from error
    if not isinstance(answer, dict) or answer.get("kind") != "ExecCredential":
        raise plugin_error(plugin, "did not print an ExecCredential", hint=hint)
    if answer.get("apiVersion") != plugin.api_version:
        raise plugin_error(
            plugin,
            f"is configured for {plugin.api_version} and printed {answer.get('apiVersion')}",
            hint="Set the kubeconfig's exec.apiVersion to the version that the plugin prints.",
        )
    status = answer.get("status")
    if not isinstance(status, dict):
        raise plugin_error(plugin, "printed no status", hint=hint)
    token, certificate, key = (
        str(status.get(name) or "") for name in ("token", "clientCertificateData", "clientKeyData")
    )
    if not (token or certificate or key):
        raise plugin_error(plugin, "printed neither a token nor a certificate", hint=hint)
    if bool(certificate) != bool(key):
        raise plugin_error(plugin, "printed only one of certificate and key", hint=hint)
    pair = CertificatePair(certificate.encode(), key.encode()) if certificate else None
    headers = (bearer_header(token),) if token else ()
    return Credentials(headers, pair), _expiry(plugin, status.get("expirationTimestamp"))


def _expiry(plugin: ExecPlugin, text: object) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError as error:
        raise plugin_error(
            plugin,
            f"printed expirationTimestamp {text!r}, which is no RFC 3339 time",
            hint="Look for a newer version of the plugin.",
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def printable(text: str) -> str:
    """The text without control characters: a kubeconfig must not write escape codes to a terminal."""
    return "".join(ch if ch.isprintable() or ch in "\t\n" else f"U+{ord(ch):04X}" for ch in text)


def _stdin_is_terminal() -> bool:
    try:
        return sys.stdin is not None and sys.stdin.isatty()
    except ValueError:  # Standard input is closed.
        return False
