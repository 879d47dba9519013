"""Structured logging, text and JSON."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from holokube.base import log
from holokube.base.clock import VirtualClock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Unprintable:
    def __str__(self) -> str:
        raise AssertionError("a message nobody wants was formatted")


@pytest.fixture(autouse=True)
def _root_logger_is_left_as_found() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 1, 1, 12, 0, 1, 250_000, tzinfo=UTC))


def text(clock: VirtualClock, **settings: Any) -> io.StringIO:
    stream = io.StringIO()
    log.configure(clock=clock, stream=stream, **settings)
    return stream


def json_lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_text_is_time_level_logger_message_and_fields(clock: VirtualClock) -> None:
    stream = text(clock)
    log.get_logger("holokube.hollow").info("node ready", node="n-1", took_s=1.5)
    ts, _, rest = stream.getvalue().partition(" ")
    assert ts == "2026-01-01T12:00:01.250Z"
    assert rest == "INFO  holokube.hollow: node ready node=n-1 took_s=1.5\n"


def test_timestamps_follow_the_clock(clock: VirtualClock) -> None:
    stream = text(clock, format="json")
    logger = log.get_logger("a")
    logger.info("one")
    clock.advance(60)
    logger.info("two")
    assert [line["ts"] for line in json_lines(stream)] == [
        "2026-01-01T12:00:01.250000Z", "2026-01-01T12:01:01.250000Z",
    ]


def test_json_has_fixed_keys_first_and_typed_fields(clock: VirtualClock) -> None:
    stream = text(clock, format="json")
    log.get_logger("a").warning("msg with\nnewline", count=3, nested={"k": [1, 2]}, none=None, odd=2**80)
    line, = json_lines(stream)
    assert list(line)[:4] == ["ts", "level", "logger", "msg"]
    assert line == {"ts": "2026-01-01T12:00:01.250000Z", "level": "warning", "logger": "a",
                    "msg": "msg with\nnewline", "count": 3, "nested": {"k": [1, 2]}, "none": None,
                    "odd": 2**80}


def test_fields_cannot_overwrite_the_fixed_keys(clock: VirtualClock) -> None:
    stream = text(clock, format="json")
    log.get_logger("a").info("real", level="fake", msg="fake", self="fine")
    line, = json_lines(stream)
    assert (line["level"], line["msg"]) == ("info", "real")
    assert (line["level_"], line["msg_"], line["self"]) == ("fake", "fake", "fine")


@pytest.mark.parametrize(("value", "shown"), [
    ("plain", "plain"), ("two words", '"two words"'), ("a=b", '"a=b"'), ("", '""'),
    ('say "x"', '"say \\"x\\""'), ("line\nbreak", '"line\\nbreak"'), (True, "True"),
    ({"a": 1}, '"{\\"a\\":1}"'), ([1, 2], "[1,2]"), ("é", "é"), ("\x1b[31m", '"\\u001b[31m"'),
])
def test_text_values_are_quoted_only_when_ambiguous(clock: VirtualClock, value: object, shown: str) -> None:
    stream = text(clock)
    log.get_logger("a").info("m", key=value)
    assert stream.getvalue().partition(" m ")[2] == f"key={shown}\n"


def test_a_message_cannot_fake_lines_or_drive_the_terminal(clock: VirtualClock) -> None:
    stream = text(clock)
    log.get_logger("a").info("first\n2026-01-01T00:00:00Z ERROR fake\x1b[2J")
    assert stream.getvalue().endswith("first\n    2026-01-01T00:00:00Z ERROR fake\\x1b[2J\n")


def test_bound_fields_come_with_every_message_and_can_be_overridden(clock: VirtualClock) -> None:
    stream = text(clock, format="json")
    parent = log.get_logger("a").bind(node="n-1", zone="z")
    parent.bind(pod="p").info("x", zone="other")
    parent.info("y")
    first, second = json_lines(stream)
    assert (first["node"], first["pod"], first["zone"]) == ("n-1", "p", "other")
    assert second["zone"] == "z"
    assert "pod" not in second


def test_exceptions_carry_their_traceback(clock: VirtualClock) -> None:
    plain, lines = text(clock), io.StringIO()
    logger = log.get_logger("a")

    def fail() -> None:
        try:
            raise LookupError("gone")
        except LookupError:
            logger.exception("failed", node="n")

    fail()
    log.configure(clock=clock, format="json", stream=lines)
    fail()
    first, *rest = plain.getvalue().splitlines()
    assert first.endswith("ERROR a: failed node=n")
    assert rest[0] == "    Traceback (most recent call last):"
    assert rest[-1] == "    LookupError: gone"
    line, = json_lines(lines)
    assert (line["exception"]["type"], line["exception"]["message"]) == ("LookupError", "gone")
    assert 'raise LookupError("gone")' in line["exception"]["traceback"]


def test_an_exception_can_be_logged_outside_its_handler(clock: VirtualClock) -> None:
    stream = text(clock, format="json")
    log.get_logger("a").exception("task died", exc=ValueError("bad"))
    log.get_logger("a").exception("nothing is being handled")
    died, nothing = json_lines(stream)
    assert died["exception"]["message"] == "bad"
    assert "exception" not in nothing


def test_messages_below_the_level_are_dropped_before_any_work(clock: VirtualClock) -> None:
    stream = text(clock, level="warning")
    logger = log.get_logger("holokube.quiet").bind(value=Unprintable())
    logger.debug("x", other=Unprintable())
    logger.info("x")
    assert not logger.is_enabled("info")
    assert logger.is_enabled("error")
    assert stream.getvalue() == ""


def test_percent_signs_in_our_messages_are_ordinary_characters(clock: VirtualClock) -> None:
    stream = text(clock)
    log.get_logger("a").info("100% of %s")
    assert stream.getvalue().endswith("a: 100% of %s\n")


def test_libraries_come_out_in_the_same_form(clock: VirtualClock) -> None:
    stream = text(clock, format="json")
    logging.getLogger("aiohttp.access").info("%s took %d ms", "GET /", 3, extra={"remote_address": "::1"})
    try:
        raise ValueError("bad")
    except ValueError:
        logging.getLogger("aiohttp.server").exception("Error handling request")
    access, error = json_lines(stream)
    assert access == {"ts": "2026-01-01T12:00:01.250000Z", "level": "info", "logger": "aiohttp.access",
                      "msg": "GET / took 3 ms"}
    assert (error["logger"], error["exception"]["type"]) == ("aiohttp.server", "ValueError")


def test_a_library_message_with_wrong_arguments_is_not_lost(clock: VirtualClock) -> None:
    record = logging.LogRecord("lib", logging.INFO, "lib.py", 1, "only %d", ("text",), None)
    assert json.loads(log.JsonFormatter(clock).format(record))["msg"] == "only %d ('text',)"
    assert log.TextFormatter(clock).format(record).endswith("lib: only %d ('text',)")


def test_configuring_again_replaces_the_first_handler(clock: VirtualClock) -> None:
    first, second = text(clock), text(clock, level="error")
    logger = log.get_logger("a")
    logger.info("x")
    logger.error("y")
    assert first.getvalue() == ""
    assert second.getvalue().endswith("ERROR a: y\n")
    assert len(second.getvalue().splitlines()) == 1


def test_the_default_stream_is_the_stderr_of_the_moment(
    clock: VirtualClock, capsys: pytest.CaptureFixture[str],
) -> None:
    log.configure(clock=clock)
    log.get_logger("a").info("hello")
    captured = capsys.readouterr()
    assert captured.err.endswith("hello\n")
    assert captured.out == ""


def test_colour_is_for_terminals_without_no_color(
    clock: VirtualClock, monkeypatch: pytest.MonkeyPatch,
) -> None:
    def coloured(stream: io.StringIO, color: bool | None = None) -> bool:
        log.configure(clock=clock, stream=stream, color=color)
        log.get_logger("a").error("x", k="v")
        return "\x1b[" in stream.getvalue()

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert coloured(Terminal())
    assert not coloured(io.StringIO())
    assert not coloured(Terminal(), color=False)
    monkeypatch.setenv("TERM", "dumb")
    assert not coloured(Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert not coloured(Terminal())
    assert coloured(io.StringIO(), color=True)


def test_json_is_never_coloured(clock: VirtualClock) -> None:
    stream = Terminal()
    log.configure(clock=clock, format="json", stream=stream, color=True)
    log.get_logger("a").info("x")
    assert "\x1b" not in stream.getvalue()


def test_wrong_settings_are_named(clock: VirtualClock) -> None:
    with pytest.raises(ValueError, match="unknown log level 'loud'; use one of debug, info, warning, error"):
        log.configure(clock=clock, level="loud")
    with pytest.raises(ValueError, match="unknown log format 'xml'; use 'text' or 'json'"):
        log.configure(clock=clock, format="xml")  # type: ignore[arg-type]  # the mistake under test


def test_messages_can_be_counted_instead_and_errors_with_a_traceback_are_shown_all_the_same() -> None:
    stream = io.StringIO()
    log.configure(level="warning", clock=VirtualClock(), stream=stream)
    logger = log.get_logger("holokube.part")
    with log.counted() as counts:
        logger.warning("again", node="a")
        logger.warning("again", node="b")
        logger.info("not wanted")
        assert stream.getvalue() == ""
        logger.exception("broken", exc=ValueError("why"))
    assert counts == {"holokube.part: again": 2, "holokube.part: broken": 1}
    assert "ValueError: why" in stream.getvalue()
    logger.warning("afterwards")
    assert "afterwards" in stream.getvalue()


def test_a_traceback_of_an_error_that_is_expected_is_counted_only() -> None:
    stream = io.StringIO()
    log.configure(level="warning", clock=VirtualClock(), stream=stream)
    logger = log.get_logger("holokube.part")
    with log.counted(lambda error: isinstance(error, ValueError)) as counts:
        logger.exception("broken", exc=ValueError("on purpose"))
        assert stream.getvalue() == ""
        logger.exception("broken", exc=KeyError("a defect"))
    assert counts == {"holokube.part: broken": 2}
    assert "a defect" in stream.getvalue()


def test_where_nothing_is_configured_messages_are_counted_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    logger = log.get_logger("holokube.part")
    with log.counted() as counts:
        logger.warning("again")
    assert counts == {"holokube.part: again": 1}
    assert capsys.readouterr().err == ""
    logger.warning("afterwards")
    assert capsys.readouterr().err == "afterwards\n"


@pytest.mark.parametrize("format", ["text", "json"])
def test_messages_bear_another_clocks_time_for_a_while(clock: VirtualClock, format: log.Format) -> None:
    stream = io.StringIO()
    log.configure(format=format, clock=clock, stream=stream)
    logger = log.get_logger("holokube.lab")
    with log.stamped_by(VirtualClock(datetime(2030, 6, 1, tzinfo=UTC))):
        logger.info("inside")
    logger.info("after")
    inside, after = stream.getvalue().splitlines()
    assert "2030-06-01T00:00:00" in inside
    assert "2026-01-01T12:00:01.25" in after
