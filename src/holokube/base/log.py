"""Structured logging: a message and fields, as text for people or JSON lines for machines.

``configure`` takes over the root of the standard ``logging`` package, so what libraries log comes out in the
same form and with the same clock::

    log = get_logger(__name__)
    log.info("node ready", node="hollow-7", took_s=1.5)

    2026-01-01T00:00:01.500Z INFO  holokube.hollow: node ready node=hollow-7 took_s=1.5
    {"ts":"2026-01-01T00:00:01.500000Z","level":"info","logger":"holokube.hollow","msg":"node ready",...}
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Literal, TextIO

import orjson

from holokube.base.clock import Clock

Format = Literal["text", "json"]

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_RESERVED = frozenset({"ts", "level", "logger", "msg", "exception"})
_NO_FIELDS: Mapping[str, Any] = {}
_JSON_OPTIONS = orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY

_PLAIN_VALUE = re.compile(r"[^\s\"=\x00-\x1f\x7f-\x9f\\]+")
# Escape sequences in a message could rewrite what the terminal shows, so only newline and tab pass.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_RESET = "\x1b[0m"
_DIM = "\x1b[2m"
_LEVEL_COLORS = {
    logging.DEBUG: "\x1b[36m",
    logging.INFO: "\x1b[32m",
    logging.WARNING: "\x1b[33m",
    logging.ERROR: "\x1b[31m",
    logging.CRITICAL: "\x1b[1;31m",
}

_ExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]


class Logger:
    """Logs messages with fields. The fields of ``bind`` come with every message."""

    __slots__ = ("_enabled", "_fields", "_target")

    def __init__(self, target: logging.Logger, fields: Mapping[str, Any] = _NO_FIELDS) -> None:
        self._target = target
        self._fields = fields
        self._enabled = target.isEnabledFor

    @property
    def name(self) -> str:
        return self._target.name

    def bind(self, **fields: Any) -> Logger:
        """A logger that adds these fields to every message."""
        return Logger(self._target, {**self._fields, **fields})

    def is_enabled(self, level: str) -> bool:
        """Whether messages of a level are wanted; ask before computing an expensive field."""
        return self._enabled(_level_number(level))

    # The checks stand in each method, before any work: a message nobody wants costs one cached lookup.

    def debug(self, msg: str, /, **fields: Any) -> None:
        if self._enabled(logging.DEBUG):
            self._emit(logging.DEBUG, msg, fields)

    def info(self, msg: str, /, **fields: Any) -> None:
        if self._enabled(logging.INFO):
            self._emit(logging.INFO, msg, fields)

    def warning(self, msg: str, /, **fields: Any) -> None:
        if self._enabled(logging.WARNING):
            self._emit(logging.WARNING, msg, fields)

    def error(self, msg: str, /, **fields: Any) -> None:
        if self._enabled(logging.ERROR):
            self._emit(logging.ERROR, msg, fields)

    def exception(self, msg: str, /, *, exc: BaseException | None = None, **fields: Any) -> None:
        """An error with the traceback of ``exc``, or of the exception being handled."""
        if self._enabled(logging.ERROR):
            error = sys.exception() if exc is None else exc
            self._emit(logging.ERROR, msg, fields, error)

    def _emit(
        self, level: int, msg: str, fields: Mapping[str, Any], error: BaseException | None = None,
    ) -> None:
        exc_info: _ExcInfo | None = None if error is None else (type(error), error, error.__traceback__)
        record = logging.LogRecord(self._target.name, level, "", 0, msg, (), exc_info)
        record.fields = {**self._fields, **fields} if self._fields else fields
        self._target.handle(record)


def get_logger(name: str) -> Logger:
    """The logger of a module; usable before ``configure``."""
    return Logger(logging.getLogger(name))


def configure(
    *,
    level: str | int = "info",
    format: Format = "text",
    clock: Clock,
    stream: TextIO | None = None,
    color: bool | None = None,
) -> None:
    """Send all logging of the process to ``stream`` (default: the current ``sys.stderr``) in one form.

    ``color=None`` colours text on a terminal unless NO_COLOR is set. Calling it again replaces the settings.
    """
    number = _level_number(level)
    target = sys.stderr if stream is None else stream
    formatter: logging.Formatter
    if format == "json":
        formatter = JsonFormatter(clock)
    elif format == "text":
        formatter = TextFormatter(clock, color=_wants_color(target) if color is None else color)
    else:
        raise ValueError(f"unknown log format {format!r}; use 'text' or 'json'")
    handler = _RootHandler(target)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    for old in [old for old in root.handlers if isinstance(old, _RootHandler)]:
        root.removeHandler(old)
        old.close()
    root.addHandler(handler)
    root.setLevel(number)


@contextmanager
def counted(is_expected: Callable[[BaseException], bool] = lambda _error: False) -> Iterator[Counter[str]]:
    """Count messages by logger and text meanwhile instead of writing them, unless they have a traceback.

    A traceback is a defect that somebody should see, unless the error ``is_expected``.
    """
    counts: Counter[str] = Counter()

    def count(record: logging.LogRecord) -> bool:
        counts[f"{record.name}: {_message(record)}"] += 1
        error = record.exc_info[1] if record.exc_info else None
        return error is not None and not is_expected(error)

    handlers: list[logging.Handler] = [one for one in logging.getLogger().handlers if isinstance(one, _RootHandler)]
    if not handlers and logging.lastResort is not None:
        # Where nothing is configured, as in a process of a pool, this is who writes.
        handlers = [logging.lastResort]
    for handler in handlers:
        handler.addFilter(count)
    try:
        yield counts
    finally:
        for handler in handlers:
            handler.removeFilter(count)


@contextmanager
def stamped_by(clock: Clock) -> Iterator[None]:
    """Messages bear the time of ``clock`` meanwhile: what happens on virtual time is told in virtual time."""
    formatters = [
        one.formatter
        for one in logging.getLogger().handlers
        if isinstance(one, _RootHandler) and isinstance(one.formatter, TextFormatter | JsonFormatter)
    ]
    before = [formatter.clock for formatter in formatters]
    for formatter in formatters:
        formatter.clock = clock
    try:
        yield
    finally:
        for formatter, its_clock in zip(formatters, before, strict=True):
            formatter.clock = its_clock


class _RootHandler(logging.StreamHandler[TextIO]):
    """Marks the handler that ``configure`` installed, so that it can be replaced."""


class TextFormatter(logging.Formatter):
    """One line per message: time, level, logger, message, key=value; tracebacks follow, indented."""

    def __init__(self, clock: Clock, *, color: bool = False) -> None:
        super().__init__()
        self.clock = clock
        self._color = color

    def format(self, record: logging.LogRecord) -> str:
        ts = self.clock.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")
        level = f"{record.levelname:<5}"
        logger = f"{record.name}:"
        if self._color:
            ts = f"{_DIM}{ts}{_RESET}"
            level = f"{_LEVEL_COLORS.get(record.levelno, '')}{level}{_RESET}"
            logger = f"{_DIM}{logger}{_RESET}"
        parts = [ts, level, logger, _indent(_CONTROL.sub(_escape, _message(record)))]
        for key, value in _fields(record).items():
            parts.append(f"{_DIM}{key}={_RESET}{_text(value)}" if self._color else f"{key}={_text(value)}")
        line = " ".join(parts)
        if record.exc_info and record.exc_info[1] is not None:
            line += "\n    " + _indent(_CONTROL.sub(_escape, self.formatException(record.exc_info)))
        if record.stack_info:
            line += "\n    " + _indent(record.stack_info)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object per line: ts, level, logger, msg, the fields, and the exception if there is one."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "ts": self.clock.now().isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": _message(record),
        }
        for key, value in _fields(record).items():
            line[f"{key}_" if key in _RESERVED else key] = value
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            line["exception"] = {
                "type": type(error).__qualname__,
                "message": str(error),
                "traceback": self.formatException(record.exc_info),
            }
        return _json(line)


def _fields(record: logging.LogRecord) -> Mapping[str, Any]:
    # Records of libraries have no fields; their `extra` attributes repeat what the message says.
    fields: Mapping[str, Any] = getattr(record, "fields", _NO_FIELDS)
    return fields


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:
        # A library passed arguments that do not fit its format; the words are worth more than the complaint.
        return f"{record.msg} {record.args!r}"


def _text(value: object) -> str:
    if isinstance(value, (dict, list, tuple)):
        text = _json(value)
    else:
        text = str(value)
    return text if _PLAIN_VALUE.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _json(value: object) -> str:
    try:
        return orjson.dumps(value, default=str, option=_JSON_OPTIONS).decode()
    except TypeError:
        # orjson refuses integers beyond 64 bits and lone surrogates; the slow encoder takes both.
        return json.dumps(value, default=str)


def _escape(match: re.Match[str]) -> str:
    return f"\\x{ord(match[0]):02x}"


def _indent(text: str) -> str:
    # A continuation line must not be mistaken for a message of its own.
    return text.replace("\n", "\n    ")


def _wants_color(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _level_number(level: str | int) -> int:
    if isinstance(level, int):
        return level
    try:
        return _LEVELS[level.lower()]
    except KeyError:
        raise ValueError(f"unknown log level {level!r}; use one of {', '.join(_LEVELS)}") from None
