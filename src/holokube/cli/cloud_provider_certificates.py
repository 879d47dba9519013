"""Certificates for both sides of ``holokube cloud-provider``, made in a folder."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from holokube.apiserver.credentials import write_private
from holokube.base.errors import ConfigError
from holokube.cluster_autoscaler.cloud.grpc.tls import ServerFiles
from holokube.kube.pki import Authority, KeyPair

CLIENT_NAME = "cluster-autoscaler"


@dataclass(frozen=True, slots=True)
class ClientFiles:
    """What the autoscaler needs to connect."""

    key: str
    cert: str
    cacert: str


def make_certificates(folder: Path, host: str, now: datetime) -> tuple[ServerFiles, ClientFiles]:
    """An authority, kept if the folder has one; a certificate for the server at ``host``, and one for its client."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        authority = _authority(folder, now)
        _write_pair(folder, "server", _server_pair(authority, host))
        _write_pair(folder, "client", authority.issue_client(CLIENT_NAME))
    except OSError as error:
        raise ConfigError(
            f"certificates cannot be made in {folder}: {error.strerror}", hint="Name a folder that can be written to."
        ) from error
    files = ServerFiles(folder / "server.key", folder / "server.crt", folder / "ca.crt")
    full = folder.resolve()
    return files, ClientFiles(str(full / "client.key"), str(full / "client.crt"), str(full / "ca.crt"))


def _authority(folder: Path, now: datetime) -> Authority:
    cert, key = folder / "ca.crt", folder / "ca.key"
    if cert.exists() and key.exists():
        return Authority.load(cert.read_bytes(), key.read_bytes(), now)
    authority = Authority.create("holokube-cloud-provider", now)
    write_private(key, authority.key_pem)
    write_private(cert, authority.cert_pem)
    return authority


def _server_pair(authority: Authority, host: str) -> KeyPair:
    names, addresses = ["localhost"], ["127.0.0.1", "::1"]
    try:
        addresses = sorted({*addresses, str(ipaddress.ip_address(host))})
    except ValueError:
        names = [host, *(name for name in names if name != host)]
    try:
        return authority.issue_server(names, addresses)
    except ValueError as error:
        raise ConfigError(f"no certificate can be made for {host!r}: {error}", hint="Check --advertise.") from error


def _write_pair(folder: Path, name: str, pair: KeyPair) -> None:
    write_private(folder / f"{name}.key", pair.key_pem)
    write_private(folder / f"{name}.crt", pair.cert_pem)
