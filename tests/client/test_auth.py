from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holokube.base.clock import VirtualClock
from holokube.base.errors import ConfigError
from holokube.client.auth import FixedAuth, ImpersonatingAuth, Impersonation, TokenFileAuth


def bearer(auth: TokenFileAuth) -> str:
    return asyncio.run(auth.credentials()).headers[0][1]


def test_a_token_file_is_read_again_every_minute(tmp_path: Path) -> None:
    clock, file = VirtualClock(), tmp_path / "token"
    file.write_text("one\n")
    auth = TokenFileAuth(clock, str(file))
    assert bearer(auth) == "Bearer one"
    file.write_text("two")
    clock.advance(45)
    assert bearer(auth) == "Bearer one"
    clock.advance(10)
    assert bearer(auth) == "Bearer two"


@pytest.mark.parametrize("trouble", ["missing", "empty"])
def test_while_the_file_is_being_replaced_the_last_token_holds(tmp_path: Path, trouble: str) -> None:
    clock, file = VirtualClock(), tmp_path / "token"
    file.write_text("one")
    auth = TokenFileAuth(clock, str(file))
    assert bearer(auth) == "Bearer one"
    file.unlink() if trouble == "missing" else file.write_text("")
    clock.advance(100)
    assert bearer(auth) == "Bearer one"


def test_a_token_beside_the_file_serves_until_the_file_is_there(tmp_path: Path) -> None:
    clock, file = VirtualClock(), tmp_path / "token"
    auth = TokenFileAuth(clock, str(file), fallback="fixed")
    assert bearer(auth) == "Bearer fixed"
    file.write_text("from the file")
    clock.advance(100)
    assert bearer(auth) == "Bearer from the file"


def test_a_file_without_a_token_is_an_error_at_first(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(ConfigError, match="cannot be read"):
        bearer(TokenFileAuth(VirtualClock(), str(file)))
    file.write_text(" \n")
    with pytest.raises(ConfigError, match="is empty"):
        bearer(TokenFileAuth(VirtualClock(), str(file)))


def test_impersonation_keeps_the_credentials_of_who_asks(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    person = Impersonation("jane", groups=["dev"], extra={"acme.com/Ämter%": ["x"]})
    auth = ImpersonatingAuth(TokenFileAuth(VirtualClock(), str(file)), person)

    async def main() -> None:
        used = await auth.credentials()
        assert used.headers == (
            ("Authorization", "Bearer one"),
            ("Impersonate-User", "jane"),
            ("Impersonate-Group", "dev"),
            ("Impersonate-Extra-acme.com%2F%C3%84mter%25", "x"),
        )
        assert not await auth.rejected(used)
        file.write_text("two")
        assert await auth.rejected(used)
        assert (await auth.credentials()).headers[0] == ("Authorization", "Bearer two")

    asyncio.run(main())


def test_a_token_with_a_line_break_is_refused() -> None:
    with pytest.raises(ConfigError, match="line break"):
        FixedAuth.bearer("a\nb")
