"""A store in one file: JSON lines, so that grep, jq and diff work on it; gzipped if the name ends in .gz.

::

    {"format":"holokube-store","version":1,"revision":7,"count":1}
    {"bucket":"pods","key":"default/web","revision":5,"object":{...}}
    {"end":true,"sha256":"<of all bytes before this line>"}

Objects come in byte order of bucket and key, so the same state always gives the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn, Protocol

import orjson

from holokube.base.errors import CorruptData
from holokube.store.journal import FIRST_REVISION, Row
from holokube.store.values import check_stored

FORMAT = "holokube-store"
VERSION = 1
_GZIP_MAGIC = b"\x1f\x8b"
_HINT = "Use another snapshot, or make a new one from the store it was taken of."


@dataclass(slots=True)
class Snapshot:
    """The whole content of a snapshot file."""

    revision: int
    rows: list[Row]


class _Sink(Protocol):
    def write(self, data: bytes, /) -> int: ...


def write_snapshot(path: str | os.PathLike[str], revision: int, count: int, rows: Iterable[Row]) -> None:
    """Writes ``path`` so that it holds either the old content or all of the new one, whatever happens."""
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        # Objects include Secrets, so the file is for its owner alone.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as file:
            with _compressed(file, wanted=target.suffix == ".gz") as out:
                _write_lines(out, revision, count, rows)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        # The rename itself is only durable once the directory is.
        os.fsync(directory)
    finally:
        os.close(directory)


@contextmanager
def _compressed(file: IO[bytes], *, wanted: bool) -> Iterator[_Sink]:
    if wanted:
        # No name and no time in the header: equal states give equal files.
        with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
            yield packed
    else:
        yield file


def _write_lines(out: _Sink, revision: int, count: int, rows: Iterable[Row]) -> None:
    digest = hashlib.sha256()

    def write(line: bytes) -> None:
        digest.update(line)
        out.write(line)

    header = {"format": FORMAT, "version": VERSION, "revision": revision, "count": count}
    write(orjson.dumps(header) + b"\n")
    for bucket, key, stored in rows:
        place = orjson.dumps({"bucket": bucket, "key": key, "revision": stored.revision})
        write(place[:-1] + b',"object":' + stored.raw + b"}\n")
    out.write(orjson.dumps({"end": True, "sha256": digest.hexdigest()}) + b"\n")


def read_snapshot(path: str | os.PathLike[str]) -> Snapshot:
    """Reads and checks the whole file: CorruptData names the first line that is wrong.

    A file that is missing or may not be read is an OSError, as from ``open``.
    """
    with open(path, "rb") as file:
        packed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        file.seek(0)
        if not packed:
            return _Reader(os.fspath(path), file).read()
        with gzip.GzipFile(fileobj=file) as unpacked:
            return _Reader(os.fspath(path), unpacked).read()


class _Reader:
    """Reads one snapshot, knowing at which line it is."""

    def __init__(self, path: str, lines: IO[bytes] | gzip.GzipFile) -> None:
        self._path = path
        self._lines = lines
        self._number = 0
        self._digest = hashlib.sha256()

    def read(self) -> Snapshot:
        revision, count = self._header()
        rows: list[Row] = []
        last: tuple[str, str] | None = None
        for _ in range(count):
            row = self._row(revision)
            if last is not None and row[:2] <= last:
                self._wrong(f"{row[0]} {row[1]!r} comes twice or out of order")
            last = row[:2]
            rows.append(row)
        self._end()
        return Snapshot(revision, rows)

    def _header(self) -> tuple[int, int]:
        header = self._json(self._line())
        if header.get("format") != FORMAT:
            self._wrong(f"not a holokube snapshot (no format {FORMAT!r})")
        if header.get("version") != VERSION:
            self._wrong(f"format version {header.get('version')!r}, this holokube reads version {VERSION}")
        revision, count = header.get("revision"), header.get("count")
        if not isinstance(revision, int) or not isinstance(count, int):
            self._wrong("revision and count must be integers")
        if revision < FIRST_REVISION or count < 0:
            self._wrong(f"revision {revision} or count {count} is out of range")
        return revision, count

    def _row(self, newest: int) -> Row:
        line = self._json(self._line())
        if "end" in line:
            self._wrong("the file has fewer objects than its first line says")
        bucket, key, revision = line.get("bucket"), line.get("key"), line.get("revision")
        if not isinstance(bucket, str) or not isinstance(key, str) or not isinstance(revision, int):
            self._wrong("an object needs bucket, key and revision")
        if not FIRST_REVISION < revision <= newest:
            self._wrong(f"revision {revision} is not between {FIRST_REVISION + 1} and the file's {newest}")
        try:
            return bucket, key, check_stored(line.get("object"), revision)
        except ValueError as error:
            self._wrong(str(error))

    def _end(self) -> None:
        digest = self._digest.hexdigest()
        end = self._json(self._line())
        if end.get("end") is not True:
            self._wrong("the file has more objects than its first line says")
        if end.get("sha256") != digest:
            self._wrong("the checksum does not fit, so the file was changed after it was written")
        if self._take():
            self._number += 1
            self._wrong("something follows the last line")

    def _line(self) -> bytes:
        line = self._take()
        self._number += 1
        if not line.endswith(b"\n"):
            self._wrong("the file ends here, it was cut off" if line else "the file ends before this line")
        self._digest.update(line)
        return line

    def _take(self) -> bytes:
        try:
            return self._lines.readline()
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            self._number += 1
            self._wrong(f"the compressed data ends or breaks here: {error}")

    def _json(self, line: bytes) -> dict[str, object]:
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            self._wrong(f"not JSON: {error}")
        if not isinstance(value, dict):
            self._wrong("not a JSON object")
        return value

    def _wrong(self, reason: str) -> NoReturn:
        raise CorruptData(f"snapshot {self._path}, line {self._number}: {reason}", hint=_HINT)
