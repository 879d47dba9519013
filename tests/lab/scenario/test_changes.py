from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holokube.lab.scenario.changes import apply_overrides, merge_variant, parse_override
from holokube.lab.scenario.curves import Diurnal
from holokube.lab.scenario.document import parse_document, read_document
from holokube.lab.scenario.errors import ScenarioError
from holokube.lab.scenario.reading import build_scenario, read_scenario
from tests.lab.scenario.texts import HEAD, spec, workload, written

BASE = workload("curve: {kind: diurnal, low: 1, high: 9, peak: 14:30}\n")


def overridden(overrides: dict[str, Any], text: str = BASE) -> Any:
    return apply_overrides(parse_document(text, "base.yaml"), overrides).root.plain


def the_problem(overrides: dict[str, Any]) -> str:
    with pytest.raises(ScenarioError) as caught:
        build_scenario(apply_overrides(parse_document(BASE, "base.yaml"), overrides))
    return str(caught.value)


def test_a_value_is_changed_by_its_path() -> None:
    assert overridden({"spec.workloads[0].curve.high": 40})["spec"]["workloads"][0]["curve"]["high"] == 40


def test_a_part_of_a_list_is_found_by_its_name() -> None:
    assert overridden({"spec.workloads[web].curve.high": 40})["spec"]["workloads"][0]["curve"]["high"] == 40


def test_a_field_that_is_not_there_yet_is_added() -> None:
    assert overridden({"spec.cluster.nodes": 3})["spec"]["cluster"] == {"nodes": 3}


def test_a_field_is_taken_away_by_nothing() -> None:
    assert "curve" not in overridden({"spec.workloads[0].curve": None})["spec"]["workloads"][0]


def test_a_name_with_dots_is_quoted() -> None:
    path = 'spec.workloads[0].manifests[0].metadata.labels["app.kubernetes.io/name"]'
    found = overridden({path: "web"})["spec"]["workloads"][0]["manifests"][0]
    assert found["metadata"]["labels"] == {"app.kubernetes.io/name": "web"}


def test_a_list_may_be_given_whole() -> None:
    assert overridden({"spec.policies": ["karpenter"]})["spec"]["policies"] == ["karpenter"]


def test_the_document_that_was_given_stays_as_it_was() -> None:
    document = parse_document(BASE, "base.yaml")
    before = document.root.plain
    apply_overrides(document, {"spec.workloads[0].curve.high": 40})
    assert document.root.plain == before


def test_without_overrides_the_text_stays_as_it_was_written() -> None:
    assert apply_overrides(parse_document(BASE, "base.yaml"), {}).text == BASE


def test_the_text_of_a_changed_scenario_says_the_same(tmp_path: Path) -> None:
    changed = read_scenario(written(tmp_path, BASE), overrides={"spec.workloads[0].curve.high": 40, "spec.seed": 7})
    again = read_scenario(written(tmp_path, changed.text, "again.yaml"))
    assert again.workloads == changed.workloads
    assert again.workloads[0].curve == Diurnal(1, 40, 52_200.0)
    assert again.seed == 7


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"spec.workloads[3].name": 1}, ["--set spec.workloads[3].name: spec.workloads[3]:", "no part 3", "0 to 0"]),
        ({"spec.workloads[wep].name": 1}, ["no part of spec.workloads has the name 'wep'", "mean web?"]),
        ({"spec.workloads[0].name.first": 1}, ["nothing below spec.workloads[0].name", "Shorten"]),
        ({"spec[0]": 1}, ["spec is a mapping", "Name a field"]),
        ({"spec.": 1}, ["is no path", "spec.workloads[0]"]),
        ({".spec": 1}, ["is no path", "spec.workloads[0]"]),
        ({"": 1}, ["path is empty", "spec.duration"]),
        ({"spec.workloads[0].curve.hihg": 4}, ["--set spec.workloads[0].curve.hihg: ", "no such field"]),
        ({"spec.workloads[0].curve.high": "many"}, ["--set ", "spec.workloads[0].curve.high: ", "whole number"]),
    ],
)  # fmt: skip
def test_a_wrong_override_is_told_with_its_path_and_a_remedy(overrides: dict[str, Any], words: list[str]) -> None:
    message = the_problem(overrides)
    for word in words:
        assert word in message


def test_all_wrong_overrides_are_told_at_once() -> None:
    assert len(the_problem({"spec.workloads[3].name": 1, "spec[0]": 1}).splitlines()) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("spec.seed=7", ("spec.seed", 7)),
        ("spec.duration=2h", ("spec.duration", "2h")),
        ("spec.policies=[karpenter, none]", ("spec.policies", ["karpenter", "none"])),
        ("spec.description=a=b", ("spec.description", "a=b")),
        ('a["x=y"].b=1', ('a["x=y"].b', 1)),
        ("spec.catalog=", ("spec.catalog", None)),
        ("spec.start=2026-01-05T00:00:00Z", ("spec.start", "2026-01-05T00:00:00Z")),
    ],
)
def test_an_override_of_the_command_line_is_a_path_and_yaml(text: str, expected: tuple[str, Any]) -> None:
    assert parse_override(text) == expected


@pytest.mark.parametrize("text", ["spec.seed", "=3", "spec.seed=[1"])
def test_an_override_without_path_or_value_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="--set"):
        parse_override(text)


def merged(variant: str) -> Any:
    return merge_variant(parse_document(BASE, "base.yaml"), parse_document(variant, "variant.yaml")).root.plain


def test_a_variant_is_merged_field_by_field() -> None:
    found = merged(spec("seed: 3\ncluster: {nodes: 4}\n"))
    assert found["spec"]["seed"] == 3
    assert found["spec"]["duration"] == "1h"
    assert found["spec"]["cluster"] == {"nodes": 4}


def test_parts_with_names_are_merged_by_them() -> None:
    found = merged(spec("workloads:\n- name: web\n  curve: {high: 30}\n- name: more\n  manifests: [{file: a.yaml}]\n"))
    web, more = found["spec"]["workloads"]
    assert web["curve"] == {"kind": "diurnal", "low": 1, "high": 30, "peak": "14:30"}
    assert len(web["manifests"]) == 1
    assert more["name"] == "more"


def test_lists_without_names_are_replaced() -> None:
    found = merged(spec("workloads:\n- name: web\n  manifests: [{file: other.yaml}]\n"))
    assert found["spec"]["workloads"][0]["manifests"] == [{"file": "other.yaml"}]


def test_a_field_without_a_value_takes_the_base_s_away() -> None:
    assert "curve" not in merged(spec("workloads:\n- name: web\n  curve:\n"))["spec"]["workloads"][0]


def test_the_variant_s_name_is_the_scenario_s() -> None:
    found = merged(HEAD.replace("trial", "changed").replace("spec:\n", "spec: {}\n"))
    assert found["metadata"]["name"] == "changed"


def test_a_mistake_in_a_variant_is_told_with_the_variant_s_line(tmp_path: Path) -> None:
    base = written(tmp_path, BASE)
    variant = written(tmp_path, spec("workloads:\n- name: web\n  curve:\n    high: lots\n"), "variant.yaml")
    with pytest.raises(ScenarioError) as caught:
        read_scenario(base, variants=[variant])
    assert str(caught.value).startswith(f"{variant}:8:13: spec.workloads[0].curve.high: a whole number")


def test_files_of_a_variant_are_relative_to_it(tmp_path: Path) -> None:
    base = written(tmp_path, BASE)
    folder = tmp_path / "variants"
    folder.mkdir()
    (folder / "extra.yaml").write_text("{apiVersion: v1, kind: Namespace, metadata: {name: extra}}\n")
    variant = written(folder, spec("cluster: {manifests: [extra.yaml]}\n"), "more.yaml")
    (obj,) = read_scenario(base, variants=[variant]).cluster.objects
    assert obj["metadata"]["name"] == "extra"


def test_what_is_written_does_not_tell_where_the_files_lay(tmp_path: Path) -> None:
    texts = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        base, variant = folder / "base.yaml", folder / "variant.yaml"
        base.write_text("metadata: {name: s}\nspec: {seed: 1}\n")
        variant.write_text("metadata: {name: v}\n")
        merged = merge_variant(read_document(base), read_document(variant))
        assert merged.text.startswith("# base.yaml with variant.yaml\n")
        texts.append(apply_overrides(merged, {"spec.seed": 2}).text)
    assert texts[0] == texts[1]
    assert texts[0].startswith("# base.yaml with spec.seed=2\n")
