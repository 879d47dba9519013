"""The files that a plan is made from."""

from __future__ import annotations

from pathlib import Path

from holokube.base.errors import UsageError

_SUFFIXES = (".json", ".yaml", ".yml", ".json.gz", ".yaml.gz", ".yml.gz")


def paths_of(files: tuple[str, ...]) -> list[str]:
    """The files, in the order given; those of a folder by name."""
    paths: list[str] = []
    for name in files:
        if name == "-" or not Path(name).is_dir():
            paths.append(name)
            continue
        inside = sorted(str(path) for path in Path(name).iterdir() if path.name.endswith(_SUFFIXES))
        if not inside:
            raise UsageError(f"folder {name} has no .json or .yaml files", hint="Name the files themselves.")
        paths += inside
    return paths
