"""Writes objects as one Kubernetes ``List``, piece by piece: a large cluster need not fit into memory twice.

The file appears under its name only when it is complete.
"""

from __future__ import annotations

import gzip
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import orjson

from holokube.kube.types import JsonObject
from holokube.kube.yaml_text import dump_document


class ListFile:
    """A ``List`` being written; ``-`` is standard output. Use it with ``with``."""

    def __init__(self, target: str, *, as_json: bool, annotations: Mapping[str, str]) -> None:
        self._target = target
        self._as_json = as_json
        self._annotations = dict(annotations)
        self._temporary: Path | None = None
        self._file: IO[bytes] | None = None
        self._out: Any = None
        self.count = 0

    def __enter__(self) -> Self:
        if self._target == "-":
            self._out = sys.stdout.buffer
        else:
            path = Path(self._target)
            self._temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
            # Objects may include Secrets, so the file is for its owner alone.
            descriptor = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            self._file = open(descriptor, "wb")
            self._out = self._file
            if path.suffix == ".gz":
                self._out = gzip.GzipFile("", "wb", compresslevel=6, fileobj=self._file, mtime=0)
        head: JsonObject = {
            "apiVersion": "v1",
            "kind": "List",
            "metadata": {"annotations": self._annotations},
        }
        if self._as_json:
            self._write(orjson.dumps(head)[:-1] + b',"items":[')
        else:
            self._write(dump_document(head).encode() + b"items:")
        return self

    def add(self, objects: Sequence[JsonObject]) -> None:
        """Append objects."""
        if not objects:
            return
        if self._as_json:
            text = b",\n".join([orjson.dumps(obj) for obj in objects])
            self._write((b",\n" if self.count else b"\n") + text)
        else:
            self._write((b"" if self.count else b"\n") + dump_document(list(objects)).encode())
        self.count += len(objects)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            if self._as_json:
                self._write(b"\n]}\n")
            elif not self.count:
                self._write(b" []\n")
        if self._temporary is None:
            self._out.flush()
            return
        assert self._file is not None
        try:
            if self._out is not self._file:
                self._out.close()
            self._file.close()
            if error is None:
                self._temporary.replace(self._target)
        finally:
            self._temporary.unlink(missing_ok=True)

    def _write(self, data: bytes) -> None:
        self._out.write(data)
