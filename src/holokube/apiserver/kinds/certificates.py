"""What certificates look like to the API: TLS key pairs, CA bundles, certificate requests."""

from __future__ import annotations

import re
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

_PEM: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\r?\n.*?-----END \1-----", re.DOTALL)


def _blocks(text: bytes) -> list[tuple[str, bytes]]:
    return [(match[1].decode(), match[0]) for match in _PEM.finditer(text)]


def key_pair_problem(certificate: bytes, key: bytes) -> str:
    """Why a certificate and a key do not make a TLS key pair, in Go's words; empty if they do."""
    certificates = [block for kind, block in _blocks(certificate) if kind == "CERTIFICATE"]
    if not certificates:
        if not _blocks(certificate):
            return "tls: failed to find any PEM data in certificate input"
        found = _blocks(certificate)
        if len(found) == 1 and found[0][0].endswith("PRIVATE KEY"):
            problem = "failed to find certificate PEM data in certificate input, but did find a private key"
            return f"tls: {problem}; PEM inputs may have been switched"
        skipped = "[" + " ".join(kind for kind, _ in found) + "]"
        where = 'tls: failed to find "CERTIFICATE" PEM block in certificate input'
        return f"{where} after skipping PEM blocks of the following types: {skipped}"
    keys = [block for kind, block in _blocks(key) if kind == "PRIVATE KEY" or kind.endswith(" PRIVATE KEY")]
    if not keys:
        if not _blocks(key):
            return "tls: failed to find any PEM data in key input"
        found = _blocks(key)
        if len(found) == 1 and found[0][0] == "CERTIFICATE":
            return "tls: found a certificate rather than a key in the PEM for the private key"
        skipped = "[" + " ".join(kind for kind, _ in found) + "]"
        where = 'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input'
        return f"{where} after skipping PEM blocks of the following types: {skipped}"
    try:
        public = x509.load_pem_x509_certificate(certificates[0]).public_key()
    except (ValueError, UnsupportedAlgorithm):
        return "x509: malformed certificate"
    try:
        private = load_pem_private_key(keys[0], None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return "tls: failed to parse private key"
    der = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    if public.public_bytes(*der) != private.public_key().public_bytes(*der):
        if type(public) is not type(private.public_key()):
            return "tls: private key type does not match public key type"
        return "tls: private key does not match public key"
    return ""


def certificate_request_problem(text: bytes) -> str:
    """Why a text is no certificate request; empty if it is one."""
    blocks = _blocks(text)
    if not blocks or blocks[0][0] != "CERTIFICATE REQUEST":
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        request = x509.load_pem_x509_csr(blocks[0][1])
    except (ValueError, UnsupportedAlgorithm):
        return "asn1: structure error: the certificate request is malformed"
    return "" if request.is_signature_valid else "x509: the signature of the certificate request is not valid"


def ca_bundle_problem(text: bytes) -> str:
    """Why a text is no list of PEM certificates; empty if it is one."""
    certificates = [block for kind, block in _blocks(text) if kind == "CERTIFICATE"]
    if not certificates:
        return "unable to load root certificates: unable to parse bytes as PEM block"
    for block in certificates:
        try:
            x509.load_pem_x509_certificate(block)
        except (ValueError, UnsupportedAlgorithm):
            return "unable to load root certificates: x509: malformed certificate"
    return ""
