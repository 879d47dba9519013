from __future__ import annotations

from pathlib import Path

import pytest

from holokube.lab.scenario.appendix import NamedFile, appendix, take_apart
from holokube.lab.scenario.reading import read_scenario

EXAMPLES = Path(__file__).parents[3] / "examples"
SCENARIO = "kind: Scenario\nspec:\n  cluster: {manifests: [{file: a.yaml}, {file: b/c.csv}]}\n"


@pytest.mark.parametrize("name", ["zone-failure", "spot-reclaim-storm", "node-affinity"])
def test_a_scenario_and_its_files_can_be_written_anew_from_the_text_of_a_result(name: str, tmp_path: Path) -> None:
    before = read_scenario(EXAMPLES / name / "scenario.yaml")
    text, files = take_apart(before.text)
    assert text == (EXAMPLES / name / "scenario.yaml").read_text()
    assert files
    (tmp_path / "scenario.yaml").write_text(text)
    for file in files:
        assert file.text == (EXAMPLES / name / file.name).read_text()
        (tmp_path / file.name).write_text(file.text or "")
    after = read_scenario(tmp_path / "scenario.yaml")
    assert (after.workloads, after.policies, after.text) == (before.workloads, before.policies, before.text)


def test_empty_lines_and_comments_of_files_stay(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_text("# --- a.yaml ---\na: 1\n\n---\n\nb: 2\n")
    other.write_text("at,replicas\n0,1\n")
    written = appendix({"a.yaml": one, "b/c.csv": other})
    assert take_apart(SCENARIO + written) == (
        SCENARIO, [NamedFile("a.yaml", one.read_text()), NamedFile("b/c.csv", other.read_text())])


def test_a_file_that_is_too_large_or_no_text_is_known_by_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"\xff" * 3)
    _, (found,) = take_apart(SCENARIO + appendix({"a.yaml": path}))
    assert found.text is None
    assert found.size.startswith("3 bytes, SHA-256 ")


@pytest.mark.parametrize("text", [
    "", "kind: Scenario", SCENARIO, f"{SCENARIO}\n# --- what follows ---\n# nothing\n", "# --- a.yaml ---\nspec: {}\n",
])
def test_comments_of_the_scenario_itself_are_no_files(text: str) -> None:
    assert take_apart(text) == (text, [])
