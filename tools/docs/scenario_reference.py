"""Writes docs/scenario.md, the reference of scenario files, from the types that read them.

python tools/docs/scenario_reference.py            writes the file
python tools/docs/scenario_reference.py --check    ends with 1 if the file is not what would be written
"""

from __future__ import annotations

import sys
from pathlib import Path

from holokube.lab.scenario.reference import reference

TARGET = Path(__file__).resolve().parents[2] / "docs" / "scenario.md"


def main(arguments: list[str]) -> int:
    page = reference()
    if arguments == ["--check"]:
        if TARGET.read_text() == page:
            return 0
        print(f"{TARGET.name} is out of date: run `python tools/docs/scenario_reference.py`", file=sys.stderr)
        return 1
    TARGET.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
