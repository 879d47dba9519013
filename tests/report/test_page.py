from __future__ import annotations

import base64
import hashlib
import html
import re
from importlib import resources

import pytest

from holokube.report.page import asset, page

ASSETS = sorted(entry.name for entry in (resources.files("holokube.report") / "assets").iterdir())
PAGE = page("A <title>", "<main></main>", scripts=("base.js", "axes.js"), blocks={"one": "QUJD"})


def policy() -> dict[str, str]:
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', PAGE)
    assert found is not None
    parts = (part.strip().partition(" ") for part in html.unescape(found[1]).split(";"))
    return {name: value for name, _, value in parts}


def digest(source: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() + "'"


def test_nothing_may_be_fetched_and_only_our_own_script_and_style_may_run() -> None:
    script = re.findall(r"<script>(.*?)</script>", PAGE, re.DOTALL)
    style = re.findall(r"<style>(.*?)</style>", PAGE, re.DOTALL)
    assert len(script) == len(style) == 1
    assert policy() == {
        "default-src": "'none'", "script-src": digest(script[0]), "style-src": digest(style[0]), "img-src": "data:",
        "base-uri": "'none'", "form-action": "'none'",
    }


def test_the_policy_comes_before_anything_it_should_hold_for() -> None:
    assert PAGE.index("Content-Security-Policy") < min(PAGE.index("<style"), PAGE.index("<script"), PAGE.index("<link"))


def test_the_title_is_escaped_and_blocks_stand_as_plain_text() -> None:
    assert "<title>A &lt;title&gt;</title>" in PAGE
    assert '<script type="text/plain" id="one">QUJD</script>' in PAGE


@pytest.mark.parametrize("name", ASSETS)
def test_an_asset_refers_to_nothing_outside_and_closes_no_tag(name: str) -> None:
    source = asset(name)
    addresses = set(re.findall(r"""(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}""", source)) - {"http://www.w3.org"}
    assert not addresses
    assert "</script" not in source and "</style" not in source
    assert not re.search(r"@import|\beval\(|innerHTML|insertAdjacentHTML|document\.write|\sstyle=|\son[a-z]+=", source)
