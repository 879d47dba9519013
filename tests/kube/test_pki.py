from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from cryptography.x509.oid import NameOID

from holokube.base.errors import ConfigError
from holokube.kube.pki import Authority, KeyPair, new_bearer_token, new_signing_key

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def wall_time() -> datetime:
    # Handshakes are judged by OpenSSL with the clock of this machine.
    return datetime.now(UTC)


def handshake(
    folder: Path, authority: Authority, server: KeyPair, client: KeyPair | None, hostname: str
) -> dict[str, object]:
    """Shake hands in memory, both sides verifying; return the client's certificate as the server sees it."""
    (folder / "ca.crt").write_bytes(authority.cert_pem)

    def load(context: ssl.SSLContext, pair: KeyPair) -> None:
        (folder / "pair.pem").write_bytes(pair.cert_pem + pair.key_pem)
        context.load_cert_chain(folder / "pair.pem")

    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.verify_mode = ssl.CERT_REQUIRED if client else ssl.CERT_NONE
    server_context.load_verify_locations(folder / "ca.crt")
    load(server_context, server)
    client_context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    client_context.verify_flags |= ssl.VERIFY_X509_STRICT
    if client:
        load(client_context, client)
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    server_side = server_context.wrap_bio(up, down, server_side=True)
    client_side = client_context.wrap_bio(down, up, server_hostname=hostname)
    for _ in range(4):
        for side in (client_side, server_side):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return server_side.getpeercert() or {}


def loaded(pair: KeyPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.cert_pem)


@pytest.mark.parametrize("hostname", ["localhost", "kubernetes.default.svc", "127.0.0.1", "::1"])
def test_a_server_is_believed_under_each_of_its_names_and_addresses(tmp_path: Path, hostname: str) -> None:
    authority = Authority.create("test-ca", wall_time())
    server = authority.issue_server(["localhost", "kubernetes.default.svc"], ["127.0.0.1", "::1"])
    handshake(tmp_path, authority, server, None, hostname)


def test_a_server_is_not_believed_under_another_name(tmp_path: Path) -> None:
    authority = Authority.create("test-ca", wall_time())
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(tmp_path, authority, authority.issue_server(["localhost"]), None, "example.org")


def test_another_authority_of_the_same_name_is_not_believed(tmp_path: Path) -> None:
    authority, impostor = Authority.create("ca", wall_time()), Authority.create("ca", wall_time())
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tmp_path, authority, impostor.issue_server(["localhost"]), None, "localhost")


def test_a_client_certificate_carries_the_user_and_every_group(tmp_path: Path) -> None:
    authority = Authority.create("test-ca", wall_time())
    client = authority.issue_client("jane", ["system:masters", "developers"])
    seen = handshake(tmp_path, authority, authority.issue_server(["localhost"]), client, "localhost")
    assert seen["subject"] == (
        (("organizationName", "system:masters"),),
        (("organizationName", "developers"),),
        (("commonName", "jane"),),
    )


def test_a_client_certificate_cannot_serve(tmp_path: Path) -> None:
    authority = Authority.create("test-ca", wall_time())
    with pytest.raises(ssl.SSLCertVerificationError, match=r"unsuitable certificate purpose|unsupported"):
        handshake(tmp_path, authority, authority.issue_client("localhost"), None, "localhost")


def test_a_certificate_is_valid_from_a_little_earlier_for_a_year() -> None:
    leaf = loaded(Authority.create("ca", NOW).issue_client("jane"))
    assert leaf.not_valid_before_utc == NOW - timedelta(hours=1)
    assert leaf.not_valid_after_utc == NOW + timedelta(days=365)


def test_no_certificate_outlives_its_authority() -> None:
    old = Authority.create("ca", NOW)
    end = x509.load_pem_x509_certificate(old.cert_pem).not_valid_after_utc
    late = Authority.load(old.cert_pem, old.key_pem, end - timedelta(days=3))
    assert loaded(late.issue_client("jane")).not_valid_after_utc == end


def test_a_saved_authority_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first = Authority.create("ca", wall_time())
    again = Authority.load(first.cert_pem, first.key_pem, wall_time())
    assert again.cert_pem == first.cert_pem
    handshake(tmp_path, first, again.issue_server(["localhost"]), first.issue_client("jane"), "localhost")


def test_an_authority_with_a_foreign_key_is_refused() -> None:
    one, other = Authority.create("one", NOW), Authority.create("other", NOW)
    with pytest.raises(ConfigError, match="does not belong to the certificate authority 'CN=one'"):
        Authority.load(one.cert_pem, other.key_pem, NOW)


def test_an_expired_authority_is_refused() -> None:
    old = Authority.create("ca", NOW)
    with pytest.raises(ConfigError, match="expired on 2035-12-30"):
        Authority.load(old.cert_pem, old.key_pem, NOW + timedelta(days=3651))


@pytest.mark.parametrize("garbage", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_garbage_instead_of_an_authority_is_refused(garbage: bytes) -> None:
    good = Authority.create("ca", NOW)
    with pytest.raises(ConfigError, match="cannot be read"):
        Authority.load(garbage, good.key_pem, NOW)
    with pytest.raises(ConfigError, match="cannot be read"):
        Authority.load(good.cert_pem, garbage, NOW)


def test_a_server_without_any_name_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Authority.create("ca", NOW).issue_server([])


@pytest.mark.parametrize("name", ["127.0.0.1", "a..b", "", "white space", "-a", "x" * 64])
def test_what_is_no_dns_name_is_refused_as_one(name: str) -> None:
    with pytest.raises(ValueError, match="not a DNS name"):
        Authority.create("ca", NOW).issue_server([name])


def test_a_long_dns_name_is_kept_whole_where_it_counts() -> None:
    name = ".".join(["webhook" * 5] * 4)
    leaf = loaded(Authority.create("ca", NOW).issue_server([name]))
    alternatives = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert alternatives.get_values_for_type(x509.DNSName) == [name]
    assert leaf.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == name[:64]


def test_a_user_too_long_for_a_certificate_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match=r"common name has 1 to 64 characters, 'x+' has 65"):
        Authority.create("ca", NOW).issue_client("x" * 65)
    with pytest.raises(ValueError, match="organization has 1 to 64 characters, '' has 0"):
        Authority.create("ca", NOW).issue_client("jane", [""])


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        Authority.create("ca", datetime(2026, 1, 1))


def test_the_two_halves_of_a_signing_key_belong_together() -> None:
    key = new_signing_key()
    private = load_pem_private_key(key.private_pem, password=None)
    assert private.public_key() == load_pem_public_key(key.public_pem)


def test_every_token_is_new() -> None:
    tokens = {new_bearer_token() for _ in range(100)}
    assert len(tokens) == 100
    assert {len(token) for token in tokens} == {32}
