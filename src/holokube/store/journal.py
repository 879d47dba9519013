"""The disk's side of durability: a data directory that survives ``kill -9`` and, as far as the disk
tells the truth about what it has written, a power cut.

The directory holds ``store.db`` (SQLite: the current objects and the revision; the history window is not
kept) and ``lock``, which one process at a time can hold. SQLite runs in WAL mode with synchronous=FULL, so
a commit returns only after the log has been flushed; NORMAL would lose the last commits in a power cut.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from holokube.base.errors import ConfigError, CorruptData, DataDirInUse, StoreError, StoreReadOnly
from holokube.store.values import Stored, StoreEvent, decode_stored

FIRST_REVISION = 1
_FORMAT = "holokube-store"
_VERSION = 1
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_RESTORE_HINT = "Move the directory away to start empty, or load the latest snapshot into a new directory."

_CREATE = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE objects (bucket TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL, obj BLOB NOT NULL,
                      PRIMARY KEY (bucket, key));
"""
_PUT = """
INSERT INTO objects (bucket, key, revision, obj) VALUES (?, ?, ?, ?)
ON CONFLICT (bucket, key) DO UPDATE SET revision = excluded.revision, obj = excluded.obj
"""
_DELETE = "DELETE FROM objects WHERE bucket = ? AND key = ?"
_SET_REVISION = "UPDATE meta SET value = ? WHERE name = 'revision'"

Row = tuple[str, str, Stored]


class Journal(Protocol):
    """Where a store writes what must outlive the process."""

    @property
    def revision(self) -> int:
        """The newest durable revision."""

    def rows(self) -> Iterator[Row]:
        """Every durable object as (bucket, key, stored); read once, when a store opens."""

    def append(self, bucket: str, event: StoreEvent) -> None:
        """Takes note of an event without touching the disk. Raises when it could never be written."""

    def commit(self) -> int:
        """Makes all appended events durable, all or none; returns ``revision``. May run on another thread
        than ``append``, at the same time. After a failure (StoreReadOnly) every later call fails as well."""

    def replace(self, revision: int, rows: Iterable[Row]) -> None:
        """Fills a journal that is still empty with the content of a snapshot."""

    def close(self) -> None:
        """Gives the place back; what was not committed is lost. Closing twice is fine."""


class SqliteJournal:
    """A journal in a data directory, which is made if it is missing."""

    def __init__(self, data_dir: str | os.PathLike[str]) -> None:
        self.data_dir = Path(data_dir)
        self._pending: deque[tuple[str, str, int, bytes | None]] = deque()
        # Held by whoever talks to SQLite: a commit on a worker thread, or a flush on the caller's.
        self._lock = threading.Lock()
        self._failure: BaseException | None = None
        self._closed = False
        self._lock_fd = _lock_directory(self.data_dir)
        try:
            self._database = self._open()
        except BaseException:
            os.close(self._lock_fd)
            raise

    @property
    def revision(self) -> int:
        return self._revision

    def rows(self) -> Iterator[Row]:
        query = "SELECT bucket, key, revision, obj FROM objects ORDER BY bucket, key"
        with self._lock:
            try:
                for bucket, key, revision, raw in self._database.execute(query):
                    if not FIRST_REVISION < revision <= self._revision:
                        raise self._corrupt(f"{bucket} {key!r} has revision {revision} of {self._revision}")
                    try:
                        stored = decode_stored(raw, revision)
                    except (ValueError, TypeError) as error:
                        raise self._corrupt(f"{bucket} {key!r}: {error}") from error
                    yield bucket, key, stored
            except sqlite3.Error as error:
                raise self._translate(error) from error

    def append(self, bucket: str, event: StoreEvent) -> None:
        # Text that is no valid Unicode would only fail in the middle of a commit, and take other
        # writers' events down with it; so would an object that is no JSON.
        _require_text(bucket)
        _require_text(event.key)
        raw = None if event.type == "DELETED" else event.stored.raw
        self._pending.append((bucket, event.key, event.revision, raw))

    def commit(self) -> int:
        with self._lock:
            if self._closed and not self._pending:
                return self._revision
            self._require_usable()
            # Only what is there now: a writer may append while the disk is at work.
            latest: dict[tuple[str, str], tuple[int, bytes | None]] = {}
            revision = self._revision
            for _ in range(len(self._pending)):
                bucket, key, revision, raw = self._pending.popleft()
                latest[bucket, key] = (revision, raw)
            if latest:
                puts = [(*place, at, raw) for place, (at, raw) in latest.items() if raw is not None]
                deletes = [place for place, (_, raw) in latest.items() if raw is None]
                self._write(revision, puts, deletes)
            return self._revision

    def replace(self, revision: int, rows: Iterable[Row]) -> None:
        with self._lock:
            self._require_usable()
            if self._revision != FIRST_REVISION or self._pending:
                raise StoreError(
                    f"the data directory {self.data_dir} is not empty (revision {self._revision})",
                    hint="Load the snapshot into a new directory.",
                )
            self._write(revision, ((bucket, key, s.revision, s.raw) for bucket, key, s in rows), ())

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                self._database.close()
            finally:
                os.close(self._lock_fd)

    def _write(
        self,
        revision: int,
        puts: Iterable[tuple[str, str, int, bytes]],
        deletes: Iterable[tuple[str, str]],
    ) -> None:
        database = self._database
        try:
            database.execute("BEGIN IMMEDIATE")
            database.executemany(_PUT, puts)
            database.executemany(_DELETE, deletes)
            database.execute(_SET_REVISION, (revision,))
            database.execute("COMMIT")
        except BaseException as error:
            self._failure = error
            try:
                if database.in_transaction:
                    database.execute("ROLLBACK")
            except sqlite3.Error:
                # What counts is the first error; SQLite itself rolls back when the file is opened again.
                pass
            if isinstance(error, Exception):
                raise self._failed() from error
            raise
        self._revision = revision

    def _open(self) -> sqlite3.Connection:
        path = self.data_dir / "store.db"
        try:
            database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise self._translate(error) from error
        try:
            path.chmod(0o600)
            # Exclusive before WAL: SQLite then needs no shared memory file, which not every file system has.
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            (mode,) = database.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise ConfigError(
                    f"the data directory {self.data_dir} is on a file system without write-ahead log support",
                    hint="Put the data directory on a local disk.",
                )
            database.execute("PRAGMA synchronous = FULL")
            # Only macOS knows the difference: there, a plain flush stops at the drive's own cache.
            database.execute("PRAGMA fullfsync = ON")
            self._revision = self._read_meta(database)
        except sqlite3.Error as error:
            database.close()
            raise self._translate(error) from error
        except BaseException:
            database.close()
            raise
        return database

    def _read_meta(self, database: sqlite3.Connection) -> int:
        (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not tables:
            meta = [("format", _FORMAT), ("version", _VERSION), ("revision", FIRST_REVISION)]
            database.execute("BEGIN IMMEDIATE")
            for statement in _CREATE.split(";"):
                database.execute(statement)
            database.executemany("INSERT INTO meta VALUES (?, ?)", meta)
            database.execute("COMMIT")
            return FIRST_REVISION
        (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise self._corrupt(verdict)
        found = dict(database.execute("SELECT name, value FROM meta"))
        if found.get("format") != _FORMAT:
            raise self._corrupt("store.db is not a holokube store")
        if found.get("version") != _VERSION:
            raise CorruptData(
                f"the data directory {self.data_dir} has format version {found.get('version')}, "
                f"this holokube reads version {_VERSION}",
                hint="Use the holokube release that wrote it, or move the directory away to start empty.",
            )
        revision = found.get("revision")
        if not isinstance(revision, int) or revision < FIRST_REVISION:
            raise self._corrupt(f"its revision is {revision!r}")
        return revision

    def _require_usable(self) -> None:
        if self._failure is not None:
            raise self._failed() from self._failure
        if self._closed:
            raise StoreReadOnly(f"the data directory {self.data_dir} is closed", hint="Open it again.")

    def _failed(self) -> StoreReadOnly:
        return StoreReadOnly(
            f"cannot write to the data directory {self.data_dir}: {self._failure}; "
            f"revision {self._revision} is the last one on disk",
            hint="Free space or repair the disk, then restart; nothing that was acknowledged is lost.",
        )

    def _corrupt(self, reason: str) -> CorruptData:
        return CorruptData(f"the data directory {self.data_dir} is damaged: {reason}", hint=_RESTORE_HINT)

    def _translate(self, error: sqlite3.Error) -> StoreError | ConfigError:
        # Extended codes carry the primary code in their lowest byte. A missing table (plain ERROR) means
        # that somebody else's database lies here.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _CORRUPT or code == sqlite3.SQLITE_ERROR:
            return self._corrupt(str(error))
        return ConfigError(
            f"cannot open the data directory {self.data_dir}: {error}",
            hint="Check that it is on a local disk with free space and that you may write to it.",
        )


def _lock_directory(data_dir: Path) -> int:
    """Makes the directory if need be and locks it for as long as the returned descriptor is open."""
    try:
        if not data_dir.is_dir():
            # Objects include Secrets, so the directory is for its owner alone.
            data_dir.mkdir(mode=0o700, parents=True)
            _sync_directory(data_dir.parent)
        descriptor = os.open(data_dir / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigError(
            f"cannot use the data directory {data_dir}: {error.strerror}",
            hint="Name a directory that you may create and write to.",
        ) from error
    try:
        # The kernel drops this lock with the process, however it dies; a stale file means nothing.
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise DataDirInUse(
            f"the data directory {data_dir} is in use by process {holder}",
            hint="Stop that process, or use another data directory.",
        ) from error
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _require_text(text: str) -> None:
    if not text.isascii():
        text.encode()
