"""What is said about certificates and keys, in the words of Go."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from holokube.apiserver.kinds.certificates import ca_bundle_problem, certificate_request_problem, key_pair_problem

_NAME = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
_NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _key_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _certificate(key: ec.EllipticCurvePrivateKey) -> bytes:
    builder = x509.CertificateBuilder().subject_name(_NAME).issuer_name(_NAME).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(_NOW).not_valid_after(_NOW + timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


@pytest.fixture(scope="module")
def key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def test_a_certificate_and_its_key_are_fine(key: ec.EllipticCurvePrivateKey) -> None:
    assert key_pair_problem(_certificate(key), _key_pem(key)) == ""


def test_a_key_of_somebody_else_is_noticed(key: ec.EllipticCurvePrivateKey) -> None:
    other = ec.generate_private_key(ec.SECP256R1())
    assert key_pair_problem(_certificate(key), _key_pem(other)) == "tls: private key does not match public key"


def test_a_key_of_another_kind_is_noticed(key: ec.EllipticCurvePrivateKey) -> None:
    other = rsa.generate_private_key(65537, 2048)
    problem = key_pair_problem(_certificate(key), _key_pem(other))
    assert problem == "tls: private key type does not match public key type"


def test_what_is_no_pem_is_named(key: ec.EllipticCurvePrivateKey) -> None:
    certificate, private = _certificate(key), _key_pem(key)
    assert key_pair_problem(b"x", private) == "tls: failed to find any PEM data in certificate input"
    assert key_pair_problem(certificate, b"x") == "tls: failed to find any PEM data in key input"


def test_swapped_inputs_are_recognised(key: ec.EllipticCurvePrivateKey) -> None:
    certificate, private = _certificate(key), _key_pem(key)
    assert key_pair_problem(private, private).endswith("PEM inputs may have been switched")
    assert key_pair_problem(certificate, certificate).startswith("tls: found a certificate rather than a key")


def test_a_request_must_be_one(key: ec.EllipticCurvePrivateKey) -> None:
    request = x509.CertificateSigningRequestBuilder().subject_name(_NAME).sign(key, hashes.SHA256())
    assert certificate_request_problem(request.public_bytes(Encoding.PEM)) == ""
    assert certificate_request_problem(_certificate(key)) == "PEM block type must be CERTIFICATE REQUEST"
    assert certificate_request_problem(b"") == "PEM block type must be CERTIFICATE REQUEST"


def test_a_bundle_needs_at_least_one_certificate(key: ec.EllipticCurvePrivateKey) -> None:
    assert ca_bundle_problem(_certificate(key)) == ""
    assert "unable to parse bytes as PEM block" in ca_bundle_problem(b"hi")
