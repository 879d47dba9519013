"""TLS towards an API server: which authorities to trust, and which certificate to show."""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from holokube.base.clock import Clock
from holokube.base.errors import ConfigError

RELOAD_EVERY_S = 60.0
"""How long a certificate file may have changed before new connections use its new content."""


@dataclass(frozen=True, slots=True)
class CertificatePair:
    """A client certificate with its key, both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "CertificatePair(...)"  # Keeps the key out of logs and tracebacks.


@dataclass(frozen=True, slots=True, repr=False)
class TlsSettings:
    """What a kubeconfig says about TLS. Data wins over a file of the same meaning."""

    ca_file: str = ""
    ca_data: bytes = b""
    """Without file and data the system's own authorities are trusted."""
    insecure_skip_verify: bool = False
    server_name: str = ""
    """The name to expect in the server's certificate, when it is not the host in the URL."""
    certificate_file: str = ""
    certificate_data: bytes = b""
    key_file: str = ""
    key_data: bytes = b""

    @property
    def has_certificate(self) -> bool:
        return bool(self.certificate_file or self.certificate_data)

    def read_ca(self) -> bytes:
        return self.ca_data or _read(self.ca_file, "certificate-authority")

    def read_certificate(self) -> CertificatePair | None:
        if not self.has_certificate:
            return None
        return CertificatePair(
            self.certificate_data or _read(self.certificate_file, "client-certificate"),
            self.key_data or _read(self.key_file, "client-key"),
        )


class TlsContexts:
    """Hands out the SSL context for the next connection; notices when certificate files are renewed.

    A context is the same object as long as its material is the same: connection pools are keyed by it.
    """

    def __init__(self, clock: Clock, settings: TlsSettings) -> None:
        self._clock = clock
        self._settings = settings
        self._ca = b""
        self._pair: CertificatePair | None = None
        self._read_again_at = 0.0
        self._was_read = False

    def context(self, override: CertificatePair | None = None) -> ssl.SSLContext:
        """The context, showing ``override`` (an exec plugin's certificate) if there is one."""
        now = self._clock.monotonic()
        if not self._was_read or now >= self._read_again_at:
            self._read_files()
            self._read_again_at = now + RELOAD_EVERY_S
        return ssl_context(self._ca, override or self._pair, self._settings.insecure_skip_verify)

    def _read_files(self) -> None:
        try:
            self._ca, self._pair = self._settings.read_ca(), self._settings.read_certificate()
        except ConfigError:
            # A file being replaced is missing for a moment; what was read before is still good.
            if not self._was_read:
                raise
        self._was_read = True


@lru_cache(maxsize=64)
def ssl_context(ca: bytes, pair: CertificatePair | None, insecure_skip_verify: bool) -> ssl.SSLContext:
    """A client context; building one costs milliseconds, so each is built once."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca:
        try:
            context.load_verify_locations(cadata=ca.decode("ascii"))
        except (ssl.SSLError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"certificate-authority holds no usable PEM certificate: {error}",
                hint="It must begin with -----BEGIN CERTIFICATE-----.",
            ) from error
    else:
        context.load_default_certs()
    if pair is not None:
        _load_pair(context, pair)
    return context


def _load_pair(context: ssl.SSLContext, pair: CertificatePair) -> None:
    try:
        with _as_file(pair.certificate + b"\n" + pair.key) as path:
            # An empty password makes an encrypted key fail here instead of asking on the terminal.
            context.load_cert_chain(path, password="")
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(
            f"the client certificate and key cannot be used: {error}",
            hint="Both must be PEM, belong together, and the key must not be encrypted.",
        ) from error


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path under which ``content`` can be read while the block runs; nothing stays behind.

    OpenSSL takes a key only from a path. Where the kernel offers it the file is in memory alone.
    """
    if hasattr(os, "memfd_create") and Path("/proc/self/fd").exists():
        descriptor = os.memfd_create("holokube-key", os.MFD_CLOEXEC)
        path = f"/proc/self/fd/{descriptor}"
        on_disk = False
    else:
        descriptor, path = tempfile.mkstemp(prefix="holokube-")  # Created with mode 0600.
        on_disk = True
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        yield path
    finally:
        os.close(descriptor)
        if on_disk:
            Path(path).unlink(missing_ok=True)


def _read(path: str, key: str) -> bytes:
    if not path:
        return b""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{key} {path} cannot be read: {error.strerror or error}",
            hint="Check the path in the kubeconfig; relative paths start at the kubeconfig's own folder.",
        ) from error
