"""The documentation tells the truth: links lead somewhere, commands exist, the reference is up to date."""

from __future__ import annotations

import gzip
import importlib.util
import re
import shlex
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from holokube.cli.main import COMMANDS, program
from holokube.kube.timeformat import parse_duration
from holokube.lab.scenario.reading import read_scenario

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "holokube"
PAGES = sorted([
    *ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("designs/*.md"), *ROOT.glob("examples/**/*.md"),
])  # fmt: skip
LAYERS = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE_BLOCK = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
# Names of files in running text: `apiserver/kinds/` or `tests/conformance/cases/`.
NAMED_PATH = re.compile(
    rf"`((?:src|tests|tools|docs|examples|deploy|benchmarks|designs|{'|'.join(LAYERS)}|"
    r"http|crds|admission|subresources|kinds)/[\w./*-]*)`"
)


def ids(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, made as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", CODE_BLOCK.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(CODE_BLOCK.sub("", page.read_text())):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert target.is_relative_to(ROOT), f"{link} leaves the repository"
        if anchor:
            assert anchor in anchors(target), f"{link}: no such heading"


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_files_that_are_named_exist(page: Path) -> None:
    for name in NAMED_PATH.findall(page.read_text()):
        if not name.endswith("/") and "." not in name:
            continue  # The name of a conformance case.
        places = (ROOT, PACKAGE, PACKAGE / "apiserver")
        assert any(list(place.glob(name.rstrip("/"))) for place in places), f"`{name}` does not exist"


def shell_lines(page: Path) -> Iterator[str]:
    for block in re.findall(r"^```console\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("$ "):
                # What the shell keeps to itself: comments, and where the output goes.
                yield line[2:].partition("  #")[0].partition(" > ")[0].strip()


def test_commands_in_the_documentation_can_be_parsed() -> None:
    context = click.Context(program)
    checked = 0
    for page in PAGES:
        for line in shell_lines(page):
            words = shlex.split(line)
            if words[0].rpartition("/")[2] != "holokube":
                continue
            assert words[1] in COMMANDS, f"{page.name}: {line}"
            command = program.get_command(context, words[1])
            assert command is not None
            command.make_context(words[1], words[2:])
            checked += 1
    assert checked >= 3


def test_targets_in_the_documentation_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    for page in PAGES:
        for words in re.findall(r"(?:`|^\$ )make ([a-z ]+)", page.read_text(), re.MULTILINE):
            assert set(words.split()) <= targets, f"{page.name}: make {words}"


def test_the_reference_of_commands_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location(
        "cli_reference", ROOT / "tools" / "docs" / "cli_reference.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (ROOT / "docs" / "cli.md").read_text() == module.reference(), (
        "run python tools/docs/cli_reference.py"
    )


def test_python_blocks_compile_and_their_imports_exist() -> None:
    checked = 0
    for page in PAGES:
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            compile(block, page.name, "exec")
            for line in block.splitlines():
                if line.startswith("from holokube"):
                    exec(line, {})
                    checked += 1
    assert checked >= 4


def test_the_picture_is_well_formed() -> None:
    root = ElementTree.parse(ROOT / "docs" / "holokube.svg").getroot()
    assert root.tag.endswith("svg")
    assert root.find("{http://www.w3.org/2000/svg}title") is not None


def test_every_design_says_context_choice_and_what_was_rejected() -> None:
    designs = sorted((ROOT / "designs").glob("[0-9]*.md"))
    assert [int(path.name[:4]) for path in designs] == list(range(1, len(designs) + 1))
    for path in designs:
        text = path.read_text()
        for part in ("**Context.**", "**Choice.**", "**Rejected.**"):
            assert part in text, f"{path.name} lacks {part}"


def test_the_tutorial_changes_its_scenario_in_ways_that_can_be_run(tmp_path: Path) -> None:
    """A reader puts each piece over the quick start: a fault after its end, say, would be refused."""
    quick_start = ROOT / "examples" / "quick-start" / "scenario.yaml"
    page = (ROOT / "docs" / "tutorial.md").read_text()
    node = b'{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}'
    (tmp_path / "cluster.json.gz").write_bytes(gzip.compress(node))
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    for number, block in enumerate(blocks):
        variant = tmp_path / f"{number}.yaml"
        variant.write_text(block)
        read_scenario(quick_start, variants=[variant])
    moments = re.findall(r"--at (\S+)", page.replace("`--at`", ""))
    assert moments
    assert all(parse_duration(one) < read_scenario(quick_start).duration_s for one in moments)


def test_the_readme_counts_the_examples() -> None:
    words = ["six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    count = len(list((ROOT / "examples").glob("*/scenario.yaml")))
    assert f"[{words[count - 6]} examples](examples)" in (ROOT / "README.md").read_text()
    listed = re.findall(r"^\| \[[\w-]+\]\(([\w-]+)\)", (ROOT / "examples" / "README.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(path.parent.name for path in (ROOT / "examples").glob("*/scenario.yaml"))


def test_all_exit_codes_of_the_program_are_in_the_reference() -> None:
    told = re.search(r"Exit codes: (.*?)\.$", " ".join((program.help or "").split()))
    assert told is not None
    codes = re.findall(r"(?:^|, )(\d+) ", told[1])
    table = (ROOT / "docs" / "cli.md").read_text()
    assert [code for code in codes if f"| {code} |" not in table] == []


def test_every_layer_is_in_the_architecture() -> None:
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE)
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == LAYERS
