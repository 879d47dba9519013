"""Where the kubeconfig of ``holokube up`` goes, and what it may not overwrite."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from holokube.apiserver.server import CONTEXT
from holokube.base.errors import UsageError


def choose(wanted: Path | None, data_dir: Path | None, port: int) -> tuple[Path, bool]:
    """The file, and whether it outlives the server: if it will be valid again, or was asked for."""
    if wanted is not None:
        return wanted.absolute(), True
    if data_dir is not None:
        return data_dir.absolute() / "kubeconfig", True
    return _runtime_dir() / str(port) / "kubeconfig", False


def _runtime_dir() -> Path:
    """A directory of the user's own; $XDG_RUNTIME_DIR is gone after the session, as the server is."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and os.access(runtime, os.W_OK | os.X_OK):
        return Path(runtime) / "holokube"
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "holokube" / "run"


def remove(path: Path) -> None:
    """Remove a kubeconfig made at a default place, and the folder of its port."""
    with suppress(OSError):
        path.unlink()
        path.parent.rmdir()


def refuse_foreign(path: Path) -> None:
    """Never overwrite what is not ours: a kubeconfig with other clusters, or another kind of file."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"cannot use {path}: {error.strerror}", hint="Name another file.") from error
    if not text.strip():
        return
    try:
        config: Any = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        config = None
    clusters = config.get("clusters") if isinstance(config, dict) and config.get("kind") == "Config" else None
    names = [entry.get("name") for entry in clusters or () if isinstance(entry, dict)]
    if clusters is None or any(name != CONTEXT for name in names):
        what = (
            f"knows other clusters ({', '.join(map(str, names))})"
            if names
            else "is not a kubeconfig of holokube"
        )
        raise UsageError(
            f"{path} {what} and would be overwritten",
            hint="Name another file; kubectl merges several: KUBECONFIG=~/.kube/config:other.",
        )
