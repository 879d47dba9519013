from __future__ import annotations

import shlex
from dataclasses import replace

from holokube.report.reproduce import (
    as_csv,
    file_name,
    is_grid,
    policies_of,
    run_command,
    run_section,
    sweep_command,
    sweep_section,
)
from tests.report.outline import Outline
from tests.report.samples import SCENARIO_TEXT, run_result

RUN = run_result("karpenter", nodes=4, hours=1)
NAMED = "spec:\n  policies:\n  - karpenter\n  - {kind: cluster-autoscaler, name: eager}\n"


def words(source: str) -> str:
    return "".join(Outline(source).words)


def test_a_command_is_safe_to_paste() -> None:
    name = file_name("a b; rm -rf *")
    shell = run_command(name, ["it's $HOME"], 7)
    assert shlex.split(shell) == [
        "holokube", "run", "a-b--rm--rf.yaml", "--policy", "it's $HOME", "--seed", "7", "--report", "report.html"]
    assert file_name("../..") == "scenario.yaml"


def test_policies_are_chosen_by_name_or_kind() -> None:
    assert policies_of(NAMED, ["karpenter", "eager", "none", "eager"]) == ["karpenter", "eager", "none"]


def test_the_label_of_a_variant_is_no_policy() -> None:
    assert policies_of(NAMED, ["karpenter/with-affinity", "eager/with-affinity"]) == ["karpenter", "eager"]
    assert policies_of(NAMED, ["with-affinity"]) == []


def test_a_text_that_is_no_scenario_leaves_the_kinds() -> None:
    for source in ("", "{", "- a", "spec: 1", "spec: {policies: [1, {name: 2}]}"):
        assert policies_of(source, ["karpenter"]) == ["karpenter"]
        assert policies_of(source, ["eager"]) == []


def test_variants_get_files_of_their_own() -> None:
    variant = replace(RUN, policy="with-affinity", scenario_text=SCENARIO_TEXT + "# changed")
    said = words(run_section([RUN, variant], ["karpenter", "with-affinity"]))
    assert "holokube run shop-day-karpenter.yaml --policy karpenter --seed 7 --report report.html" in said
    assert "holokube run shop-day-with-affinity.yaml --seed 7 --report report.html" in said
    assert "# changed" in said


def test_a_grid_is_told_from_a_list() -> None:
    grid = [{"a": one, "b": other} for one in "12" for other in "xyz"]
    assert is_grid(grid) and not is_grid(grid[1:]) and not is_grid([*grid[1:], {"a": "1"}])
    assert is_grid([{}])
    assert sweep_command("s.yaml", grid, ["ca"]) == (
        "holokube sweep s.yaml --set a=1,2 --set b=x,y,z --policy ca --report sweep.html")
    assert sweep_command("s.yaml", grid[1:], []) == "holokube sweep s.yaml --list settings.csv --report sweep.html"


def test_a_list_is_shown_as_the_file_that_the_command_reads() -> None:
    settings = [{"a": "1", "b": "x,y"}, {"a": "2"}]
    assert as_csv(settings) == 'a,b\n1,"x,y"\n2,\n'
    assert as_csv(settings) in words(sweep_section([RUN, RUN], settings))


def test_a_sweep_shows_one_scenario_however_often_its_values_change() -> None:
    other = replace(RUN, scenario_text=SCENARIO_TEXT + "# changed")
    assert words(sweep_section([RUN, other], [{"a": "1"}, {"a": "2"}])).count("kind: Scenario") == 1


FILES = SCENARIO_TEXT + "# node-pool.yaml is named here\nmore: cluster.json.gz node-pool.yaml\n\n" + (
    "# --- node-pool.yaml ---\n# kind: NodePool\n# spec: {}\n\n# --- cluster.json.gz ---\n"
    f"# 70000 bytes, too much to be shown here; SHA-256 {'0' * 64}\n")


def test_files_that_a_scenario_names_are_files_of_their_own_again() -> None:
    section = run_section([replace(RUN, scenario_text=FILES)], ["karpenter"])
    said = words(section)
    assert "as shop-day.yaml, beside it the file below, and cluster.json.gz, which is too large to be in here" in said
    assert "(70000 bytes, SHA-256 000" in said
    assert "kind: NodePool\nspec: {}\n" in said and "# kind: NodePool" not in said
    assert section.count('data-name="node-pool.yaml"') == 1 and section.count('data-name="shop-day.yaml"') == 1


def test_a_scenario_without_files_asks_for_none() -> None:
    assert "as shop-day.yaml, then" in words(run_section([RUN], ["karpenter"]))
