"""Traces and recordings of other programs, read into one :class:`Timeline` and written from it.

========= ============================================ ===== ======
format    of                                           read  write
========= ============================================ ===== ======
kubectl   dumps, snapshots, manifests (YAML or JSON)   yes   yes
kwok      ``kwokctl snapshot record``                  yes   yes
openb     Alibaba's GPU trace of 2023 (CSV)            yes   no
simkube   SimKube traces, version 2 (``.sktrace``)     yes   yes
========= ============================================ ===== ======
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from holokube.base.errors import UsageError
from holokube.lab.formats.kubectl import read_kubectl, write_kubectl
from holokube.lab.formats.kwok import DEFAULT_BASE_S, KIND, read_kwok, write_kwok
from holokube.lab.formats.openb import read_openb
from holokube.lab.formats.simkube import read_simkube, write_simkube
from holokube.lab.formats.timeline import Change, PodLives, Ref, Run, Timeline
from holokube.lab.formats.workload import with_run_times, workload_of

__all__ = [
    "READ_FORMATS", "WRITE_FORMATS", "Change", "PodLives", "Ref", "Run", "Timeline", "guess_format", "read_timeline",
    "read_workload", "write_timeline",
]  # fmt: skip

READ_FORMATS: Final = ("kubectl", "kwok", "openb", "simkube")
WRITE_FORMATS: Final = ("kubectl", "kwok", "simkube")
_LOOK_BYTES: Final = 1 << 22


def read_timeline(format: str, paths: Sequence[Path]) -> Timeline:
    """Everything that a trace tells; only openb comes in several files. UsageError says what is wrong with them."""
    if format not in READ_FORMATS:
        raise UsageError(f"there is no format {format!r} to read", hint=f"Use one of {', '.join(READ_FORMATS)}.")
    if not paths:
        raise UsageError(f"a {format} trace needs a file", hint="Name the file, or for openb the files.")
    if format == "openb":
        return read_openb(paths)
    if len(paths) > 1:
        raise UsageError(f"a {format} trace is one file, not {len(paths)}", hint="Only openb comes in several files.")
    if format == "simkube":
        return read_simkube(paths[0])
    return read_kwok(paths[0]) if format == "kwok" else read_kubectl(paths[0])


def read_workload(
    format: str,
    paths: Sequence[Path],
    *,
    from_s: float = 0.0,
    until_s: float | None = None,
    speed: float = 1.0,
    nodes: bool = True,
) -> Timeline:
    """What a new run needs of a trace: what users asked for, how long pods run, and the nodes of its beginning."""
    timeline = workload_of(read_timeline(format, paths), nodes=nodes)
    if from_s or until_s is not None:
        timeline = timeline.between(from_s, until_s)
    return with_run_times(timeline.scaled(speed))


def guess_format(path: Path) -> str:
    """The format that a file seems to be in, by its name and first lines."""
    if path.suffix == ".sktrace":
        return "simkube"
    if path.suffix == ".csv":
        return "openb"
    try:
        with path.open("rb") as file:
            beginning = file.read(_LOOK_BYTES)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="Check the name of the file.") from error
    return "kwok" if f"kind: {KIND}".encode() in beginning or f'"kind":"{KIND}"'.encode() in beginning else "kubectl"


def write_timeline(format: str, timeline: Timeline, path: Path, *, at_s: float | None = None) -> list[str]:
    """Write a file, all of it or nothing; returns what could not be said in that format.

    A kubectl file shows one moment, ``at_s``, or else the end.
    """
    if format not in WRITE_FORMATS:
        raise UsageError(f"{format!r} cannot be written", hint=f"Use one of {', '.join(WRITE_FORMATS)}.")
    notes: list[str] = []
    pieces: Iterable[str | bytes]
    if format == "simkube":
        trace, left_out = write_simkube(timeline, default_start_s=DEFAULT_BASE_S)
        pieces = [trace]
        notes.extend(f"{count} of kind {kind}, which live in no namespace" for kind, count in sorted(left_out.items()))
        notes.extend(_beside_the_workload(timeline))
    elif format == "kwok":
        # Only this needs an API server, and readers of scenarios have no use for one.
        from holokube.lab.formats.completing import completed, is_complete

        if not is_complete(timeline):
            start_s = DEFAULT_BASE_S if timeline.start_s is None else timeline.start_s
            there = timeline.refs()
            owners = {life.owner for life in timeline.lives if life.owner in there}
            if owners:
                notes.append(f"how long the pods of {len(owners)} owners ran")
            timeline, refused = completed(timeline, start_s=start_s)
            notes.extend(refused)
        pieces = write_kwok(timeline)
    else:
        moment_s = timeline.duration_s if at_s is None else at_s
        pieces = write_kubectl(timeline, moment_s, as_json=path.suffix == ".json")
    _write(path, pieces)
    return notes


def _beside_the_workload(timeline: Timeline) -> Iterator[str]:
    """What a trace of the workload alone does not have."""
    missing = timeline.refs() - workload_of(timeline, nodes=False).refs()
    nodes = sum(ref.kind == "Node" for ref in missing)
    if nodes:
        yield f"{nodes} of kind Node, which are no part of a workload"
    if len(missing) > nodes:
        yield f"{len(missing) - nodes} objects that components of the cluster made, and will make again"


def _write(path: Path, pieces: Iterable[str | bytes]) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            for piece in pieces:
                file.write(piece.encode() if isinstance(piece, str) else piece)
        temporary.replace(path)
    except OSError as error:
        hint = "Check the path, its permissions and the free space on its disk."
        raise UsageError(f"cannot write {path}: {error.strerror}", hint=hint) from error
    finally:
        temporary.unlink(missing_ok=True)
