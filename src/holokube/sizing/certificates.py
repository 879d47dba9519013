"""The webhook's own certificates: what to do about them, and when.

Nobody but the API server has to trust them, so that the webhook is its own authority. Whoever calls trusts the
authorities in the ``caBundle`` of the webhook configuration. Authorities are renewed in two steps, so that at no
moment a certificate is served that the bundle does not vouch for:

1. The next authority is made and put into the bundle, while the present one still signs.
2. When the bundle has been published for a while, the next authority takes over; the old one stays in the bundle
   until it ends.

All replicas share one Secret. Each decides for itself; the API server lets only the first write through, and the
others read what it says.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography import x509

from holokube.base.errors import ConfigError
from holokube.kube.pki import Authority, KeyPair
from holokube.kube.types import JsonObject

_COMMON_NAME: Final = "holokube-node-sizing"
_SMALLEST_PAUSE_S: Final = 0.5
_MARKER: Final = b"-----BEGIN CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class CertificatePolicy:
    """Names, lifetimes, and how long a new authority is published before it signs."""

    names: tuple[str, ...]
    """DNS names and IP addresses that the webhook is called by."""
    lifetime: timedelta = timedelta(days=90)
    authority_lifetime: timedelta = timedelta(days=3650)
    settle_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Material:
    """What the Secret holds."""

    authority: KeyPair
    serving: KeyPair
    next_authority: KeyPair | None = None
    retired: tuple[bytes, ...] = ()
    """Certificates of authorities that signed before; somebody may still serve with those."""

    @property
    def bundle(self) -> bytes:
        """All authorities that callers have to trust."""
        following = (self.next_authority.cert_pem,) if self.next_authority is not None else ()
        return b"".join((self.authority.cert_pem, *following, *self.retired))

    def to_secret_data(self) -> JsonObject:
        """The ``data`` of the Secret."""
        data = {
            "ca.crt": self.authority.cert_pem, "ca.key": self.authority.key_pem,
            "tls.crt": self.serving.cert_pem, "tls.key": self.serving.key_pem,
            "retired-ca.crt": b"".join(self.retired),
        }  # fmt: skip
        if self.next_authority is not None:
            data |= {"next-ca.crt": self.next_authority.cert_pem, "next-ca.key": self.next_authority.key_pem}
        return {name: base64.b64encode(pem).decode() for name, pem in data.items() if pem}

    @classmethod
    def from_secret_data(cls, data: Mapping[str, Any] | None) -> Material | None:
        """What a Secret holds; None if it is empty or cannot be read, and has to be made anew."""
        try:
            pem = {name: base64.b64decode(text, validate=True) for name, text in (data or {}).items()}
            following = KeyPair(pem["next-ca.crt"], pem["next-ca.key"]) if "next-ca.crt" in pem else None
            material = cls(
                KeyPair(pem["ca.crt"], pem["ca.key"]), KeyPair(pem["tls.crt"], pem["tls.key"]), following,
                tuple(_split(pem.get("retired-ca.crt", b""))),
            )  # fmt: skip
            for certificate in (material.serving.cert_pem, *_split(material.bundle)):
                x509.load_pem_x509_certificate(certificate)
        except (KeyError, ValueError, binascii.Error, TypeError):
            return None
        return material


def _split(bundle: bytes) -> list[bytes]:
    return [_MARKER + rest for rest in bundle.split(_MARKER)[1:]]


def decide(
    material: Material | None, now: datetime, policy: CertificatePolicy, *, published_for_s: float | None
) -> Material:
    """What the Secret should hold; the same object if it is right as it is.

    ``published_for_s`` is for how long the bundle of ``material`` has been in the webhook configuration, None if it
    is not there. ``now`` has to be wall time: callers go by the clocks on their walls.
    """
    authority = _usable(material, now)
    if material is None or authority is None:
        authority = Authority.create(_COMMON_NAME, now, lifetime=policy.authority_lifetime)
        return Material(KeyPair(authority.cert_pem, authority.key_pem), _serve(authority, policy))
    following = material.next_authority
    if following is not None and published_for_s is not None and published_for_s >= policy.settle_s:
        promoted = Authority.load(following.cert_pem, following.key_pem, now)
        retired = (material.authority.cert_pem, *material.retired)
        material = Material(following, _serve(promoted, policy), None, retired)
    elif not _serves_well(material, now, policy):
        material = replace(material, serving=_serve(authority, policy))
    if material.next_authority is None and _is_due(material.authority.cert_pem, now):
        made = Authority.create(_COMMON_NAME, now, lifetime=policy.authority_lifetime)
        material = replace(material, next_authority=KeyPair(made.cert_pem, made.key_pem))
    valid = tuple(pem for pem in material.retired if ends_at(pem) > now)
    return material if valid == material.retired else replace(material, retired=valid)


def next_look_s(material: Material, now: datetime, policy: CertificatePolicy, *, at_most_s: float) -> float:
    """When there will be something to decide again."""
    looks = [_due_at(material.serving.cert_pem), _due_at(material.authority.cert_pem)]
    pause_s = min((look - now).total_seconds() for look in looks)
    if material.next_authority is not None:
        pause_s = min(pause_s, policy.settle_s) if pause_s > 0 else policy.settle_s
    return max(_SMALLEST_PAUSE_S, min(pause_s, at_most_s))


def ends_at(pem: bytes) -> datetime:
    """When a certificate ends."""
    return x509.load_pem_x509_certificate(pem).not_valid_after_utc


def _usable(material: Material | None, now: datetime) -> Authority | None:
    if material is None:
        return None
    try:
        if material.next_authority is not None:
            Authority.load(material.next_authority.cert_pem, material.next_authority.key_pem, now)
        return Authority.load(material.authority.cert_pem, material.authority.key_pem, now)
    except ConfigError:
        return None


def _serve(authority: Authority, policy: CertificatePolicy) -> KeyPair:
    names, addresses = [], []
    for name in policy.names:
        try:
            addresses.append(str(ipaddress.ip_address(name)))
        except ValueError:
            names.append(name)
    return authority.issue_server(names, addresses, lifetime=policy.lifetime)


def _serves_well(material: Material, now: datetime, policy: CertificatePolicy) -> bool:
    """Whether the serving certificate will do for a while: signed by the present authority, for the right names."""
    certificate = x509.load_pem_x509_certificate(material.serving.cert_pem)
    authority = x509.load_pem_x509_certificate(material.authority.cert_pem)
    try:
        certificate.verify_directly_issued_by(authority)
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except Exception:
        # The library raises many kinds, and all of them mean that a new one is needed.
        return False
    named = {*found.get_values_for_type(x509.DNSName), *map(str, found.get_values_for_type(x509.IPAddress))}
    return named == set(policy.names) and not _is_due(material.serving.cert_pem, now)


def _due_at(pem: bytes) -> datetime:
    """Certificates are renewed when a third of their life is left."""
    certificate = x509.load_pem_x509_certificate(pem)
    begins = certificate.not_valid_before_utc + timedelta(hours=1)
    return certificate.not_valid_after_utc - (certificate.not_valid_after_utc - begins) / 3


def _is_due(pem: bytes, now: datetime) -> bool:
    return now >= _due_at(pem)
