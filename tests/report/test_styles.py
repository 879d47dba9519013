from __future__ import annotations

import re

import pytest

from holokube.report.page import asset

PAIR = re.compile(r"--([a-z0-9]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
COLOURS = {name: (light, dark) for name, light, dark in PAIR.findall(asset("report.css"))}


def luminance(colour: str) -> float:
    parts = [int(colour[place:place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("name", ["ink", "muted", "accent", "good", "bad"])
@pytest.mark.parametrize("ground", ["paper", "panel"])
def test_text_can_be_read(theme: int, name: str, ground: str) -> None:
    assert contrast(COLOURS[name][theme], COLOURS[ground][theme]) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("number", range(8))
def test_lines_can_be_seen(theme: int, number: int) -> None:
    assert contrast(COLOURS[f"c{number}"][theme], COLOURS["paper"][theme]) >= 3


def test_each_run_has_a_dash_of_its_own() -> None:
    dashes = re.findall(r"\.p[0-7] \{[^}]*--dash: ([^;]+);", asset("report.css"))
    assert len(dashes) == len(set(dashes)) == 8
