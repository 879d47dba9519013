"""What lets people in: the certificate authority, the administrator's token, the key of service accounts.

A server with a data directory keeps them there, so that kubeconfigs and tokens outlive a restart.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from holokube.apiserver.http.auth import TokenSigner
from holokube.base.errors import ConfigError
from holokube.kube import pki

_AUTHORITY_NAME = "holokube-ca"
_HINT = "Restore the file, or remove the whole folder to have new credentials made; old kubeconfigs end then."


@dataclass(frozen=True, slots=True)
class Credentials:
    """All secrets of one server."""

    authority: pki.Authority
    signer: TokenSigner
    token: str

    @classmethod
    def create(cls, now: datetime) -> Credentials:
        """Make new ones; ``now`` is wall time, since that is what a peer judges certificates by."""
        return cls(pki.Authority.create(_AUTHORITY_NAME, now), TokenSigner(), pki.new_bearer_token())

    @classmethod
    def keep_in(cls, folder: Path, now: datetime) -> Credentials:
        """Those that are kept in a folder; they are made, and written there, the first time."""
        names = ("ca.crt", "ca.key", "sa.key", "token")
        present = [name for name in names if (folder / name).exists()]
        if not present:
            fresh = cls.create(now)
            fresh.write_to(folder)
            return fresh
        missing = [name for name in names if name not in present]
        if missing:
            raise ConfigError(f"{folder} lacks {', '.join(missing)}", hint=_HINT)
        try:
            cert, key, signing_key, token = [(folder / name).read_bytes() for name in names]
        except OSError as error:
            raise ConfigError(f"cannot read {error.filename}: {error.strerror}", hint=_HINT) from error
        try:
            signer = TokenSigner.from_pem(signing_key)
        except ValueError as error:
            raise ConfigError(f"{folder / 'sa.key'} cannot be used: {error}", hint=_HINT) from error
        return cls(pki.Authority.load(cert, key, now), signer, _checked_token(token, folder))

    def write_to(self, folder: Path) -> None:
        """Keep them in a folder that is made for its owner alone."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(folder / "ca.crt", self.authority.cert_pem)
            write_private(folder / "ca.key", self.authority.key_pem)
            write_private(folder / "sa.key", self.signer.key_pem())
            write_private(folder / "token", self.token.encode())
        except OSError as error:
            raise ConfigError(
                f"cannot write credentials to {folder}: {error.strerror}",
                hint="Name a data directory that you may write to.",
            ) from error


def _checked_token(raw: bytes, folder: Path) -> str:
    token = raw.decode(errors="replace").strip()
    # An empty token would let in everybody who sends an empty one.
    if len(token) < 16 or not token.isascii() or not token.isprintable():
        raise ConfigError(f"{folder / 'token'} does not hold a token", hint=_HINT)
    return token


def write_private(path: Path, data: bytes) -> None:
    """Write a file that only its owner can read, in one step: readers see the old or the new content."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
