from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from holokube.base.clock import VirtualClock, WallClock
from holokube.base.errors import ConfigError
from holokube.client.tls import CertificatePair, TlsContexts, TlsSettings, ssl_context
from holokube.kube.pki import Authority


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("test", WallClock().now())


def pair_of(authority: Authority) -> CertificatePair:
    issued = authority.issue_client("alice")
    return CertificatePair(issued.cert_pem, issued.key_pem)


@pytest.mark.parametrize("in_memory", [True, False])
def test_no_key_is_left_on_disk(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: bool
) -> None:
    modes: list[int] = []
    make = tempfile.mkstemp

    def watched(prefix: str) -> tuple[int, str]:
        descriptor, path = make(dir=str(tmp_path), prefix=prefix)
        modes.append(os.stat(path).st_mode & 0o777)
        return descriptor, path

    monkeypatch.setattr(tempfile, "mkstemp", watched)
    if not in_memory:
        monkeypatch.delattr(os, "memfd_create", raising=False)
    elif not hasattr(os, "memfd_create"):
        pytest.skip("this system has no files in memory")
    descriptors = len(os.listdir("/proc/self/fd")) if in_memory else 0
    ssl_context(authority.cert_pem, pair_of(authority), False)
    with pytest.raises(ConfigError, match="cannot be used"):
        ssl_context(authority.cert_pem, CertificatePair(b"no", b"pem"), False)
    assert list(tmp_path.iterdir()) == []
    assert modes == ([] if in_memory else [0o600, 0o600])
    if in_memory:
        assert len(os.listdir("/proc/self/fd")) == descriptors


def test_the_same_material_gives_the_same_context(authority: Authority) -> None:
    contexts = TlsContexts(VirtualClock(), TlsSettings(ca_data=authority.cert_pem))
    again = TlsContexts(VirtualClock(), TlsSettings(ca_data=authority.cert_pem))
    pair = pair_of(authority)
    assert contexts.context() is again.context()
    assert contexts.context(pair) is contexts.context(pair)
    assert contexts.context(pair) is not contexts.context()


def test_a_key_of_another_certificate_is_refused(authority: Authority) -> None:
    mixed = CertificatePair(pair_of(authority).certificate, pair_of(authority).key)
    with pytest.raises(ConfigError, match="cannot be used") as caught:
        ssl_context(authority.cert_pem, mixed, False)
    assert "belong together" in caught.value.hint


def test_an_authority_that_is_no_certificate_is_refused() -> None:
    with pytest.raises(ConfigError, match="no usable PEM certificate"):
        TlsContexts(VirtualClock(), TlsSettings(ca_data=b"not a certificate")).context()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "ca.crt"
    with pytest.raises(ConfigError, match=f"certificate-authority {missing} cannot be read"):
        TlsContexts(VirtualClock(), TlsSettings(ca_file=str(missing))).context()
