"""Who sends a request: bearer token or client certificate."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from holokube.apiserver.admission.base import Caller
from holokube.kube.errors import Unauthorized

ISSUER = "https://kubernetes.default.svc.cluster.local"
AUTHENTICATED = "system:authenticated"
ANONYMOUS = Caller("system:anonymous", groups=("system:unauthenticated",))


class TokenSigner:
    """Signs and checks service account tokens (JWT, ES256)."""

    def __init__(self, key: ec.EllipticCurvePrivateKey | None = None) -> None:
        self._key = key or ec.generate_private_key(ec.SECP256R1())

    def key_pem(self) -> bytes:
        return self._key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    @staticmethod
    def from_pem(pem: bytes) -> TokenSigner:
        key = serialization.load_pem_private_key(pem, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the key for service account tokens must be an EC key")
        return TokenSigner(key)

    def sign(self, claims: Mapping[str, Any]) -> str:
        head = _b64(orjson.dumps({"alg": "ES256", "kid": "holokube", "typ": "JWT"}))
        body = _b64(orjson.dumps(dict(claims)))
        signature = self._key.sign(f"{head}.{body}".encode(), ec.ECDSA(hashes.SHA256()))
        r, s = decode_dss_signature(signature)
        return f"{head}.{body}.{_b64(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def verify(self, token: str, now: datetime) -> dict[str, Any] | None:
        """The claims of a token that this server signed and that has not expired."""
        try:
            head, body, signature = token.split(".")
            raw = _unb64(signature)
            if len(raw) != 64:
                return None
            der = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
            self._key.public_key().verify(der, f"{head}.{body}".encode(), ec.ECDSA(hashes.SHA256()))
            claims = orjson.loads(_unb64(body))
        except (ValueError, InvalidSignature):
            return None
        if not isinstance(claims, dict) or not isinstance(claims.get("exp"), int):
            return None
        return claims if claims["exp"] > now.timestamp() else None


def _b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _unb64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Authenticator:
    """Knows the static tokens and the signer of service account tokens."""

    def __init__(self, tokens: Mapping[str, Caller], signer: TokenSigner) -> None:
        self._tokens = dict(tokens)
        self.signer = signer

    def by_token(self, token: str, now: datetime) -> Caller | None:
        """The caller behind a bearer token, if there is one."""
        for known, caller in self._tokens.items():
            if hmac.compare_digest(known.encode(), token.encode("utf-8", "surrogateescape")):
                return caller
        claims = self.signer.verify(token, now)
        return None if claims is None else service_account(claims)

    def caller(
        self, authorization: str, peer_certificate: Mapping[str, Any] | None, user_agent: str, now: datetime
    ) -> Caller:
        """Who asks. A bad token is refused even if the certificate is good, as upstream does."""
        found: Caller | None = None
        if authorization:
            scheme, _, token = authorization.partition(" ")
            if scheme.lower() == "bearer":
                found = self.by_token(token.strip(), now)
            if found is None:
                raise Unauthorized("Unauthorized")
        elif peer_certificate:
            found = _from_certificate(peer_certificate)
        if found is None:
            return Caller(ANONYMOUS.name, groups=ANONYMOUS.groups, user_agent=user_agent)
        return Caller(found.name, found.uid, found.groups, found.extra, user_agent)


def service_account(claims: Mapping[str, Any]) -> Caller | None:
    """The user that a service account token stands for."""
    subject = str(claims.get("sub", ""))
    parts = subject.split(":")
    if len(parts) != 4 or parts[:2] != ["system", "serviceaccount"]:
        return None
    details = claims.get("kubernetes.io") or {}
    uid = str((details.get("serviceaccount") or {}).get("uid", ""))
    extra: dict[str, tuple[str, ...]] = {}
    if claims.get("jti"):
        extra["authentication.kubernetes.io/credential-id"] = (f"JTI={claims['jti']}",)
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{parts[2]}", AUTHENTICATED)
    return Caller(subject, uid, groups, extra)


def _from_certificate(certificate: Mapping[str, Any]) -> Caller | None:
    """User from the common name, groups from the organisations, as Kubernetes reads certificates."""
    name, groups = "", []
    for relative in certificate.get("subject", ()):
        for key, value in relative:
            if key == "commonName":
                name = value
            elif key == "organizationName":
                groups.append(value)
    return Caller(name, groups=(*groups, AUTHENTICATED)) if name else None
