"""Where the API server is and who we are, in the form the wire needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from holokube import __version__
from holokube.base.clock import Clock
from holokube.client.access import ClusterAccess
from holokube.client.auth import Credentials
from holokube.client.proxy import proxy_from_environment
from holokube.client.tls import TlsContexts
from holokube.hollow.wire.connection import Connection

DIAL_TIMEOUT_S = 10.0
CREDENTIALS_FOR_S = 5.0
"""How long credentials are used before their source, a file that others renew say, is asked again."""


def can_dial(access: ClusterAccess, environ: Mapping[str, str] | None = None) -> bool:
    """Whether there is a direct way; through a proxy only the ordinary client goes."""
    environ = os.environ if environ is None else environ
    return not (access.proxy_url or proxy_from_environment(access.server, environ))


class Dialer:
    """Opens connections, and knows the headers that every request carries."""

    def __init__(
        self, clock: Clock, access: ClusterAccess, *, user_agent: str = f"holokube-fleet/{__version__}"
    ) -> None:
        self._clock = clock
        self.server = access.server.rstrip("/")
        address = urlsplit(self.server)
        self._host = address.hostname or ""
        self._port = address.port or (443 if access.is_tls else 80)
        self.path_prefix = address.path.encode()
        self._tls = TlsContexts(clock, access.tls) if access.is_tls else None
        self._server_name = access.tls.server_name or self._host
        self._auth = access.authenticator(clock)
        self._fixed = (
            f"Host: {address.netloc.rpartition('@')[2]}\r\nUser-Agent: {user_agent}\r\nAccept: application/json\r\n"
        )
        self._credentials = Credentials()
        self._fresh_until_s = float("-inf")
        self.head = b""
        """The header lines of every request."""
        self.certificates = 0
        """Changes with the client certificate: connections made with another number show an old one."""

    @property
    def is_fresh(self) -> bool:
        """Whether ``head`` may be used as it is."""
        return self._clock.monotonic() < self._fresh_until_s

    async def refresh(self) -> None:
        """Asks for the credentials; raises ConfigError when there are none to be had."""
        found = await self._auth.credentials()
        if found.certificate != self._credentials.certificate:
            self.certificates += 1
        if found != self._credentials or not self.head:
            self._credentials = found
            lines = "".join(f"{name}: {value}\r\n" for name, value in found.headers)
            self.head = (self._fixed + lines).encode("latin-1")
        self._fresh_until_s = self._clock.monotonic() + CREDENTIALS_FOR_S

    async def rejected(self) -> bool:
        """The server does not accept the credentials; True if there are others now."""
        self._fresh_until_s = float("-inf")
        return await self._auth.rejected(self._credentials)

    async def dial(self) -> Connection:
        """A new connection."""
        context = self._tls.context(self._credentials.certificate) if self._tls is not None else None
        return await Connection.open(self._host, self._port, context, self._server_name, DIAL_TIMEOUT_S)
