"""Who the client says it is: tokens, passwords, token files; exec plugins are in ``client.exec_plugin``.

An ``Authenticator`` is asked before every request and told when the server answered 401, so that a credential
that is renewed outside (a projected service account token, a cloud login) is picked up without a restart.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from holokube.base.clock import Clock
from holokube.base.errors import ConfigError
from holokube.client.tls import CertificatePair

TOKEN_FILE_REREAD_S = 50.0
"""Upstream holds a token file's content for a minute, less ten seconds of leeway."""

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Credentials:
    """What goes with one request."""

    headers: Headers = field(default=(), repr=False)
    certificate: CertificatePair | None = None
    """Only from exec plugins; a kubeconfig's own certificate is part of its TLS settings."""


class Authenticator(Protocol):
    """A source of credentials."""

    async def credentials(self) -> Credentials: ...

    async def rejected(self, used: Credentials) -> bool:
        """The server answered 401 to these. True if others are there now and one more try makes sense."""
        ...


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Act as somebody else, as ``kubectl --as`` does."""

    user: str
    uid: str = ""
    groups: Sequence[str] = ()
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def headers(self) -> Headers:
        pairs = [("Impersonate-User", self.user)]
        if self.uid:
            pairs.append(("Impersonate-Uid", self.uid))
        pairs += [("Impersonate-Group", group) for group in self.groups]
        pairs += [
            (f"Impersonate-Extra-{_header_name(key)}", value)
            for key, values in self.extra.items()
            for value in values
        ]
        return tuple(pairs)


class FixedAuth:
    """Credentials that never change: none at all, a token, or a user name with a password."""

    def __init__(self, headers: Headers = ()) -> None:
        self._credentials = Credentials(headers)

    @classmethod
    def bearer(cls, token: str) -> FixedAuth:
        return cls((bearer_header(token),))

    @classmethod
    def basic(cls, username: str, password: str) -> FixedAuth:
        pair = base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
        return cls((("Authorization", f"Basic {pair}"),))

    async def credentials(self) -> Credentials:
        return self._credentials

    async def rejected(self, used: Credentials) -> bool:  # noqa: ARG002 - the protocol's shape
        return False


class TokenFileAuth:
    """A token in a file that somebody else keeps fresh."""

    def __init__(self, clock: Clock, path: str, *, fallback: str = "") -> None:
        self._clock = clock
        self._path = path
        self._current = Credentials((bearer_header(fallback),)) if fallback else None
        self._read_again_at: float | None = None

    async def credentials(self) -> Credentials:
        now = self._clock.monotonic()
        if self._current is None or self._read_again_at is None or now >= self._read_again_at:
            self._read()
            self._read_again_at = now + TOKEN_FILE_REREAD_S
        assert self._current is not None
        return self._current

    async def rejected(self, used: Credentials) -> bool:
        if self._current == used:
            self._read()
        return self._current != used

    def _read(self) -> None:
        try:
            token = Path(self._path).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            # A file being replaced is missing for a moment; the token read before may still be good.
            if self._current is not None:
                return
            raise ConfigError(
                f"tokenFile {self._path} cannot be read: {error}",
                hint="Check the path in the kubeconfig, or that the service account token is mounted.",
            ) from error
        if token:
            fresh = Credentials((bearer_header(token),))
            if fresh != self._current:
                self._current = fresh
        elif self._current is None:
            raise ConfigError(
                f"tokenFile {self._path} is empty", hint="Put a bearer token into it, or remove the key."
            )


class ImpersonatingAuth:
    """Another authenticator's credentials, plus the headers that ask to act as somebody else."""

    def __init__(self, inner: Authenticator, impersonation: Impersonation) -> None:
        self._inner = inner
        self._extra = impersonation.headers()

    async def credentials(self) -> Credentials:
        return self._with_headers(await self._inner.credentials())

    async def rejected(self, used: Credentials) -> bool:
        own = used.headers[: len(used.headers) - len(self._extra)]
        return await self._inner.rejected(Credentials(own, used.certificate))

    def _with_headers(self, inner: Credentials) -> Credentials:
        return Credentials(inner.headers + self._extra, inner.certificate)


def bearer_header(token: str) -> tuple[str, str]:
    if any(ch in token for ch in "\r\n"):
        raise ConfigError(
            "the bearer token holds a line break, which no HTTP header can carry",
            hint="Write the token on a single line.",
        )
    return ("Authorization", f"Bearer {token}")


def _header_name(key: str) -> str:
    """An extra's key as part of a header's name: what a header cannot carry is percent-encoded."""
    allowed = "!#$&'*+-.^_`|~"
    return "".join(
        ch if ch.isascii() and (ch.isalnum() or ch in allowed) else "".join(f"%{b:02X}" for b in ch.encode())
        for ch in key
    )
