"""Writes what the table covers and every known difference into docs/compatibility.md.

`python -m tests.conformance.render` rewrites what is between the markers; a test fails when it is old.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from .cases import ALL_CASES
from .known_differences import KNOWN_DIFFERENCES

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
BEGIN = "<!-- conformance:begin, written by python -m tests.conformance.render -->"
END = "<!-- conformance:end -->"


def section() -> str:
    """The generated part, without its markers."""
    totals = Counter(case.topic for case in ALL_CASES)
    known = Counter(name.split("/", 1)[0] for name in KNOWN_DIFFERENCES)
    lines = [
        f"{len(ALL_CASES)} behaviours are compared; {len(ALL_CASES) - len(KNOWN_DIFFERENCES)} are the same.",
        "",
        "| topic | behaviours | known differences |",
        "|---|---:|---:|",
        *(f"| {topic} | {count} | {known[topic] or ''} |" for topic, count in sorted(totals.items())),
        "",
    ]
    if KNOWN_DIFFERENCES:
        lines += ["| behaviour | how the embedded server differs, and why |", "|---|---|"]
        lines += [f"| `{name}` | {_cell(reason)} |" for name, reason in sorted(KNOWN_DIFFERENCES.items())]
    else:
        lines.append("No difference is known.")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def rendered(page: str) -> str:
    """The page with its generated part made new."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(
            f"{PAGE.name} lacks the markers {BEGIN!r} and {END!r}; put them where the table belongs"
        )
    return f"{before}{BEGIN}\n{section()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text()))
