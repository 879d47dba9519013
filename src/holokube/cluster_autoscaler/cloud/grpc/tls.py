"""The server's certificates, read again when their files change."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holokube.base.errors import ConfigError
from holokube.base.log import get_logger
from holokube.cluster_autoscaler.cloud.grpc.library import grpc_library


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """Where the server's key and certificate lie; with ``ca_file``, who signed the certificates of clients."""

    key_file: Path
    cert_file: Path
    ca_file: Path | None = None

    def check(self) -> None:
        """ConfigError if they cannot be read or do not belong together."""
        for path in (self.key_file, self.cert_file, self.ca_file):
            try:
                if path is not None:
                    path.read_bytes()
            except OSError as error:
                raise ConfigError(
                    f"{path} cannot be read: {error.strerror}", hint="Check the path and its permissions."
                ) from error
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.cert_file, self.key_file)
        except ssl.SSLError as error:
            raise ConfigError(
                f"{self.cert_file} and {self.key_file} are no certificate and its key: {error}",
                hint="Both must be PEM, the key unencrypted, and belong together.",
            ) from error
        if self.ca_file is not None:
            try:
                context.load_verify_locations(self.ca_file)
            except ssl.SSLError as error:
                raise ConfigError(
                    f"{self.ca_file} holds no certificate of an authority: {error}", hint="It must be PEM."
                ) from error

    def read(self) -> tuple[bytes, bytes, bytes | None]:
        """Key, certificate, and authority of clients."""
        authority = self.ca_file.read_bytes() if self.ca_file is not None else None
        return self.key_file.read_bytes(), self.cert_file.read_bytes(), authority


class FreshCredentials:
    """Server credentials of gRPC that follow their files: each new connection gets what lies there."""

    def __init__(self, files: ServerFiles) -> None:
        files.check()
        self._files = files
        self._read = files.read()
        self._log = get_logger("holokube.cluster_autoscaler.cloud.grpc")

    def build(self) -> Any:
        """The credentials; clients must show a certificate if there is an authority for them."""
        return grpc_library().dynamic_ssl_server_credentials(
            self._configuration(), self._fetch, require_client_authentication=self._files.ca_file is not None
        )

    def _configuration(self) -> Any:
        key, cert, authority = self._read
        return grpc_library().ssl_server_certificate_configuration([(key, cert)], root_certificates=authority)

    def _fetch(self) -> Any:
        """Asked for by gRPC, in a thread of its own, before each handshake; None for what it has."""
        try:
            found = self._files.read()
            if found == self._read:
                return None
            # Half of a pair may have been exchanged so far.
            self._files.check()
        except (OSError, ConfigError) as error:
            self._log.warning("Certificates cannot be read again, the old ones stay", error=str(error))
            return None
        self._read = found
        self._log.info("Certificates were exchanged", cert_file=str(self._files.cert_file))
        return self._configuration()
