from __future__ import annotations

import re
from pathlib import Path

import yaml

from holokube.lab.scenario.curves import ARRIVALS, CURVES
from holokube.lab.scenario.errors import choose_among
from holokube.lab.scenario.faults import FAULTS
from holokube.lab.scenario.model import Scenario
from holokube.lab.scenario.reading import read_scenario
from holokube.lab.scenario.reference import reference
from holokube.lab.scenario.shapes import file_fields
from tests.lab.scenario.texts import DEPLOYMENT, written

PAGE = Path(__file__).parents[3] / "docs" / "scenario.md"


def test_the_reference_of_scenarios_is_up_to_date() -> None:
    assert PAGE.read_text() == reference(), "run python tools/docs/scenario_reference.py"


def test_every_field_is_told_with_its_meaning() -> None:
    rows = [row for row in reference().splitlines() if row.startswith("| `")]
    assert len(rows) > 80
    without = [row for row in rows if row.endswith("|  |") and not re.search(r"\| (usd|count) \|", row)]
    assert without == []


def test_every_kind_and_every_field_of_a_scenario_is_in_the_reference() -> None:
    page = reference()
    for kind in (*CURVES, *ARRIVALS, *FAULTS):
        assert f"`kind: {kind}`" in page
    for one in file_fields(Scenario):
        assert f"| `{one.name}` |" in page


def test_links_of_the_reference_lead_somewhere() -> None:
    page = reference()
    titles = {
        re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")
        for title in re.findall(r"^#+ (.*)$", page, re.MULTILINE)
    }
    for target in re.findall(r"\]\(#([^)]*)\)", page):
        assert target in titles, target
    for target in re.findall(r"\]\(([a-z-]+\.md)\)", page):
        assert (PAGE.parent / target).exists()


def test_the_example_in_the_reference_is_right(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```", reference(), re.MULTILINE | re.DOTALL)
    (tmp_path / "web.yaml").write_text(yaml.safe_dump(yaml.safe_load(DEPLOYMENT)[0]))
    scenario = read_scenario(written(tmp_path, block))
    assert [policy.kind for policy in scenario.policies] == ["karpenter", "cluster-autoscaler"]


def test_suggestions_name_the_nearest_field_or_all_of_them() -> None:
    assert choose_among("hihg", ["low", "high"]) == "Did you mean high?"
    assert choose_among("node_sizing", ["nodeSizing", "nodes"]) == "Did you mean nodeSizing?"
    assert choose_among("SEED", ["seed", "start"]) == "Did you mean seed?"
    assert choose_among("zzz", ["b", "a", "c"]) == "Use a, b or c."
    assert choose_among("zzz", []) == "Leave it out."
