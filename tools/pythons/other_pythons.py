"""Virtual environments of the other Pythons on this machine: ``.venv-3.12`` and so on, beside ``.venv``.

Holokube's results are the same bytes with every Python it runs on, which tests can show only where there is another.
A version that is not there, or whose packages cannot be had at the moment, is told and left out: never an error.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13")
EXTRAS = ".[cel,optimal]"


def main() -> int:
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    for version in VERSIONS:
        if version != here:
            print(f"Python {version}: {make(version)}", flush=True)
    return 0


def make(version: str) -> str:
    """Makes the environment of a version, and says what became of it."""
    python = interpreter(version)
    if python is None:
        return "not found, neither on the PATH nor with pyenv"
    place = ROOT / f".venv-{version}"
    if not (place / "bin" / "python").exists():
        made = subprocess.run([python, "-m", "venv", str(place)], capture_output=True, text=True, check=False)
        if made.returncode:
            return f"{python} makes no virtual environment: {_last_line(made.stderr)}"
    installed = subprocess.run(
        [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-e", EXTRAS,
         "-r", "tools/pythons/requirements.txt"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if installed.returncode:
        return f"packages could not be installed: {_last_line(installed.stderr)}"
    return f"ready in {place.name}"


def interpreter(version: str) -> str | None:
    """Where a version of Python is."""
    on_path = shutil.which(f"python{version}")
    # pyenv puts a program of that name on the PATH for every version it has, and it fails for those not switched on.
    if on_path is not None and _is_version(on_path, version):
        return on_path
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found = [one for one in versions.glob(f"{version}.*/bin/python") if _is_version(str(one), version)]
    return str(max(found, key=_numbers)) if found else None


def _is_version(python: str, version: str) -> bool:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    told = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return told.returncode == 0 and told.stdout.strip() == version


def _numbers(python: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", python.parts[-3])]


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no reason given"])[-1]


if __name__ == "__main__":
    sys.exit(main())
