"""Stages that cannot be used say which file, which stage, what is wrong, and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest

from holokube.hollow.stages.errors import StageError
from holokube.hollow.stages.loading import load_stages, parse_stages
from tests.hollow.stages.samples import DELETE, INITIALIZE, START, stage

ANY = "selector: {matchLabels: {a: b}}\n"


@pytest.mark.parametrize(
    ("body", "what", "hint"),
    [
        (ANY + "next: {sing: true}", "unknown field `sing`", "resourceRef"),
        (ANY + "color: red", "unknown field `color`", "immediateNextStage"),
        (ANY + "next: {statusTemplate: '{{ Sing }}'}", "statusTemplate: line 1: function 'Sing'", "PodIPWith"),
        (ANY + "next: {statusTemplate: '{{ if }}'}", "a value is missing", "range"),
        (ANY + "next: {statusTemplate: '{{ NodePort }}'}", "function 'NodePort'", "PodIPsWith"),
        (ANY + "steps: [{apply: {template: x}}]", "steps[0]: apply is not supported", "patch"),
        (ANY + "steps: [{patch: {template: x, type: funny}}]", "Invalid enum value 'funny'", "steps"),
        (ANY + "weightFrom: {expressionFrom: '.a | map(.b)'}", "weightFrom: jq expression", "select"),
        (ANY + "weightFrom: {cel: {expression: '1'}}", "weightFrom: cel is not supported", "jq"),
        (ANY + "delay: {durationFrom: {}}", "delay.durationFrom: there is no expression", "expressionFrom"),
        (ANY + "next: {event: {type: Bad}}", "type 'Bad'", "Warning"),
        ("selector: {matchExpressions: [{key: .a, operator: In}]}", "In has no values", "values"),
        ("selector: {matchExpressions: [{key: .a, operator: Exists, values: [x]}]}", "takes no values", "values"),
        ("selector: {matchExpressions: [{key: .a, operator: Near}]}", "Invalid enum value 'Near'", "selector"),
        ("selector: {matchExpressions: [{operator: Exists}]}", "key and operator are missing", "key"),
        ("selector: {matchExpressions: [{cel: {expression: 'true'}}]}", "[0]: cel is not supported", "jq"),
        ("selector: {matchExpressions: [{key: '.a = 1', operator: Exists}]}", "jq expression '.a = 1'", "select"),
    ],
)  # fmt: skip
def test_mistakes_are_named_before_anything_runs(body: str, what: str, hint: str) -> None:
    with pytest.raises(StageError) as caught:
        parse_stages(stage("mine", body).encode(), "file.yaml")
    assert caught.value.message.startswith("file.yaml: stage mine: ")
    assert what in caught.value.message and hint in caught.value.hint


def test_other_kinds_of_objects_are_refused() -> None:
    with pytest.raises(StageError, match="PersistentVolume is not a kind"):
        parse_stages(stage("pv", ANY, kind="PersistentVolume").encode(), "f")
    with pytest.raises(StageError, match="v1 Pod is not a Stage"):
        parse_stages(b"{apiVersion: v1, kind: Pod, metadata: {name: p}}", "f")
    for text in (b"- 1", b"a: [", b"{apiVersion: kwok.x-k8s.io/v9, kind: Stage, metadata: {name: x}}"):
        with pytest.raises(StageError):
            parse_stages(text, "f")


def test_kwoks_configuration_beside_the_stages_is_noted() -> None:
    config = "apiVersion: config.kwok.x-k8s.io/v1alpha1\nkind: KwokConfiguration\noptions: {}\n"
    found = parse_stages((config + START + stage("nobody", "next: {delete: true}")).encode(), "kwok.yaml")
    assert list(found.stages) == ["start"]
    assert found.ignored == ["kwok.yaml: KwokConfiguration is not used", "kwok.yaml: stage nobody has no selector"]


def test_folders_and_files_are_read_and_later_ones_win(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(START + INITIALIZE)
    (tmp_path / "b.yml").write_text(DELETE.replace("name: delete", "name: start"))
    (tmp_path / "notes.txt").write_text("{{")
    found = load_stages([tmp_path])
    assert sorted(found.stages) == ["initialize", "start"]
    assert found.stages["start"].steps[0].delete
    assert [stage.name for stage in found.of_kind("Node")] == ["initialize"]


def test_missing_files_and_empty_folders_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="cannot be read"):
        load_stages([tmp_path / "none.yaml"])
    with pytest.raises(StageError, match="has no YAML"):
        load_stages([tmp_path])
