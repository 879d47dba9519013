from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holokube.apiserver.admission.base import Caller
from holokube.apiserver.http.auth import ANONYMOUS, Authenticator, TokenSigner
from holokube.kube.errors import Unauthorized

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ADMIN = Caller("admin", groups=("system:masters",))
CERTIFICATE = {"subject": ((("organizationName", "system:masters"),), (("commonName", "jane"),))}


@pytest.fixture
def authenticator() -> Authenticator:
    return Authenticator({"secret": ADMIN}, TokenSigner())


def test_a_known_token_is_its_user(authenticator: Authenticator) -> None:
    caller = authenticator.caller("Bearer secret", None, "kubectl/v1", NOW)
    assert (caller.name, caller.groups, caller.user_agent) == ("admin", ("system:masters",), "kubectl/v1")


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer ", "Basic c2VjcmV0", "nonsense", "Bearer a.b.c"])
def test_a_bad_credential_is_refused_even_with_a_good_certificate(authenticator: Authenticator, header: str) -> None:
    with pytest.raises(Unauthorized):
        authenticator.caller(header, CERTIFICATE, "", NOW)


def test_a_certificate_names_user_and_groups(authenticator: Authenticator) -> None:
    caller = authenticator.caller("", CERTIFICATE, "", NOW)
    assert (caller.name, caller.groups) == ("jane", ("system:masters", "system:authenticated"))


def test_nobody_is_anonymous(authenticator: Authenticator) -> None:
    assert authenticator.caller("", None, "", NOW).name == ANONYMOUS.name


def claims(expires: datetime) -> dict[str, object]:
    return {"sub": "system:serviceaccount:ns:robot", "exp": int(expires.timestamp()), "jti": "1"}


def test_a_signed_token_is_its_service_account(authenticator: Authenticator) -> None:
    token = authenticator.signer.sign(claims(NOW + timedelta(hours=1)))
    caller = authenticator.caller(f"Bearer {token}", None, "", NOW)
    assert caller.name == "system:serviceaccount:ns:robot"
    assert "system:serviceaccounts:ns" in caller.groups


def test_an_expired_token_is_refused(authenticator: Authenticator) -> None:
    token = authenticator.signer.sign(claims(NOW - timedelta(seconds=1)))
    assert authenticator.by_token(token, NOW) is None


def test_a_token_of_another_server_is_refused(authenticator: Authenticator) -> None:
    token = TokenSigner().sign(claims(NOW + timedelta(hours=1)))
    assert authenticator.by_token(token, NOW) is None


def test_a_token_with_changed_claims_is_refused(authenticator: Authenticator) -> None:
    head, _, signature = authenticator.signer.sign(claims(NOW + timedelta(hours=1))).split(".")
    _, body, _ = TokenSigner().sign(claims(NOW + timedelta(hours=9))).split(".")
    assert authenticator.by_token(f"{head}.{body}.{signature}", NOW) is None


def test_the_signing_key_survives_being_written_down() -> None:
    signer = TokenSigner()
    again = TokenSigner.from_pem(signer.key_pem())
    assert again.verify(signer.sign(claims(NOW + timedelta(hours=1))), NOW) is not None
