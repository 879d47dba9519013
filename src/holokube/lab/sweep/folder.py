"""Finished runs in a folder, one file each, so that a sweep can go on where it was interrupted."""

from __future__ import annotations

import os
from pathlib import Path

from holokube.base.errors import UsageError
from holokube.lab.result_files import result_from_json
from holokube.lab.results import RunResult


class SweepFolder:
    """Files ``run-KEY.json``, each the result of a run as ``holokube run -o json`` prints it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"cannot make the folder {path}: {error.strerror}", hint="Give another one with --out."
            ) from error

    def file(self, key: str) -> Path:
        """Where the result of a run is."""
        return self.path / f"run-{key}.json"

    def load(self, key: str) -> RunResult | None:
        """The result of a run; None if there is none, or a damaged one, which is then done again."""
        path = self.file(key)
        try:
            return result_from_json(path.read_bytes(), str(path))
        except (OSError, UsageError):
            return None

    def save(self, key: str, result: bytes) -> None:
        """Keep a result; whoever looks sees all of it or nothing."""
        path = self.file(key)
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(result)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
