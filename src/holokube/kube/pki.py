"""Certificates the way Kubernetes reads them: a small authority, and what it signs.

A client certificate is an identity: its common name is the user, each of its organizations is a group. A
server certificate is judged by its subject alternative names alone; Go has ignored common names since 1.15.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from holokube.base.errors import ConfigError

# A peer whose clock lags behind ours must not find a certificate "not yet valid".
_BACKDATED_BY = timedelta(hours=1)
_AUTHORITY_LIFETIME = timedelta(days=3650)
_LEAF_LIFETIME = timedelta(days=365)
_RDN_CHARACTERS_MAX = 64
_DNS_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate (PEM) and its private key (PEM, PKCS #8)."""

    cert_pem: bytes
    key_pem: bytes


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key that signs service account tokens (ES256), and the half that verifies them."""

    private_pem: bytes
    public_pem: bytes


class Authority:
    """A certificate authority with an EC P-256 key.

    ``clock_now`` has to be wall time even when the cluster lives on virtual time: whoever verifies a
    certificate does so by the clock on its own wall.
    """

    def __init__(self, cert: x509.Certificate, key: ec.EllipticCurvePrivateKey, clock_now: datetime) -> None:
        self._cert = cert
        self._key = key
        self._now = clock_now

    @classmethod
    def create(
        cls, common_name: str, clock_now: datetime, *, lifetime: timedelta = _AUTHORITY_LIFETIME
    ) -> Authority:
        """Make a new, self-signed authority, valid for ten years unless told."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _subject(common_name, ())
        builder = (
            _unsigned(subject, subject, key.public_key(), clock_now, lifetime)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return cls(builder.sign(key, hashes.SHA256()), key, clock_now)

    @classmethod
    def load(cls, cert_pem: bytes, key_pem: bytes, clock_now: datetime) -> Authority:
        """Take up an authority saved earlier; what it issues from now on is dated from ``clock_now``."""
        try:
            cert = x509.load_pem_x509_certificate(cert_pem)
            key = serialization.load_pem_private_key(key_pem, password=None)
        except (ValueError, TypeError) as error:
            raise ConfigError(
                f"the certificate authority cannot be read: {error}",
                hint="Both files must be PEM, the key unencrypted; remove them to have new ones made.",
            ) from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != cert.public_key():
            raise ConfigError(
                f"the key does not belong to the certificate authority {cert.subject.rfc4514_string()!r}",
                hint="Restore the pair that was written together, or remove both to have new ones made.",
            )
        if cert.not_valid_after_utc <= clock_now:
            raise ConfigError(
                f"the certificate authority {cert.subject.rfc4514_string()!r} expired"
                f" on {cert.not_valid_after_utc:%Y-%m-%d}",
                hint="Remove its certificate and key to have new ones made.",
            )
        return cls(cert, key, clock_now)

    @property
    def cert_pem(self) -> bytes:
        """The certificate that peers have to trust."""
        return self._cert.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key; whoever reads it can become anybody."""
        return _private_pem(self._key)

    def issue_server(
        self, names: Sequence[str], ips: Sequence[str | IpAddress] = (), *, lifetime: timedelta = _LEAF_LIFETIME
    ) -> KeyPair:
        """Sign a serving certificate for these DNS names (``*.example`` allowed) and addresses."""
        if not names and not ips:
            raise ValueError("a server certificate needs at least one DNS name or IP address")
        for name in names:
            _check_dns_name(name)
        alternatives: list[x509.GeneralName] = [x509.DNSName(name) for name in names]
        alternatives += [x509.IPAddress(ipaddress.ip_address(ip)) for ip in ips]
        # The common name is for people only, and a long DNS name does not fit into one.
        title = (names[0] if names else str(ips[0]))[:_RDN_CHARACTERS_MAX]
        return self._issue(
            _subject(title, ()), ExtendedKeyUsageOID.SERVER_AUTH, x509.SubjectAlternativeName(alternatives), lifetime
        )

    def issue_client(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """Sign a client certificate that makes its bearer ``user``, a member of ``groups``."""
        return self._issue(_subject(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None, _LEAF_LIFETIME)

    def _issue(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        alternatives: x509.SubjectAlternativeName | None,
        lifetime: timedelta,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        # No leaf outlives its authority: the chain would be refused long before the leaf's own date.
        lifetime = min(lifetime, self._cert.not_valid_after_utc - self._now)
        authority_id = self._cert.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
        builder = (
            _unsigned(subject, self._cert.subject, key.public_key(), self._now, lifetime)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(authority_id), critical=False
            )
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        cert = builder.sign(self._key, hashes.SHA256())
        return KeyPair(cert.public_bytes(serialization.Encoding.PEM), _private_pem(key))


def new_signing_key() -> SigningKey:
    """Make the key pair behind service account tokens."""
    key = ec.generate_private_key(ec.SECP256R1())
    public_pem = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return SigningKey(_private_pem(key), public_pem)


def new_bearer_token() -> str:
    """Make an unguessable token: 128 bits as hexadecimal digits.

    A credential must not come from the seeded generator, or whoever knows the seed knows the token.
    """
    return AESGCM.generate_key(128).hex()


def _subject(common_name: str, organizations: Sequence[str]) -> x509.Name:
    for kind, text in [("common name", common_name), *(("organization", group) for group in organizations)]:
        if not 1 <= len(text) <= _RDN_CHARACTERS_MAX:
            raise ValueError(
                f"a certificate's {kind} has 1 to {_RDN_CHARACTERS_MAX} characters, {text!r} has {len(text)}"
            )
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _unsigned(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    now: datetime,
    lifetime: timedelta,
) -> x509.CertificateBuilder:
    if now.tzinfo is None:
        raise ValueError("clock_now has no time zone, so the certificate's dates would be a guess")
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED_BY)
        .not_valid_after(now + lifetime)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _check_dns_name(name: str) -> None:
    labels = name.removeprefix("*.").split(".")
    # A last label of digits makes it an address, which a verifier would look for among the IP alternatives.
    is_name = all(_DNS_LABEL.fullmatch(label) for label in labels) and not labels[-1].isdecimal()
    if len(name) > 253 or not is_name:
        raise ValueError(f"{name!r} is not a DNS name; IP addresses are given as ips=")
