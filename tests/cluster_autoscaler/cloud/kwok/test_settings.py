"""What annotations of a template say about its group, and what is said about wrong ones."""

from __future__ import annotations

from typing import Any

import pytest

from holokube.cluster_autoscaler.cloud.kwok.faults import Faults, Window
from holokube.cluster_autoscaler.cloud.kwok.problems import Problems
from holokube.cluster_autoscaler.cloud.kwok.settings import OPTIONS, GroupSettings, read_settings
from holokube.cluster_autoscaler.cloud.provider import GroupOptions
from tests.cluster_autoscaler.cloud.kwok.worlds import template

PREFIX = "cluster-autoscaler.kwok.nodegroup/"


def read(**settings: Any) -> GroupSettings:
    problems = Problems()
    found = read_settings(template(**settings), "node worker", problems)
    assert problems.errors == [] and problems.warnings == []
    return found


def errors(**settings: Any) -> list[str]:
    problems = Problems()
    read_settings(template(**settings), "node worker", problems)
    return problems.errors


def test_a_template_without_annotations_has_upstreams_defaults() -> None:
    assert read() == GroupSettings(min_size=0, max_size=200, desired_size=0)
    bare = template()
    bare["metadata"].pop("annotations")
    assert read_settings(bare, "x", Problems()) == GroupSettings()
    bare["metadata"]["annotations"] = None
    assert read_settings(bare, "x", Problems()) == GroupSettings()


def test_sizes_are_read() -> None:
    found = read(min_count=2, max_count=9, desired_count=4)
    assert (found.min_size, found.max_size, found.desired_size) == (2, 9, 4)


def test_a_group_begins_with_its_minimum_unless_told() -> None:
    assert read(min_count=2).desired_size == 2


def test_an_empty_annotation_is_none() -> None:
    assert read(min_count="", price_per_hour="", boot_delay="") == GroupSettings()


@pytest.mark.parametrize("key", ["min_count", "max_count", "desired_count", "stock", "increase_limit"])
@pytest.mark.parametrize("value", ["x", "-1", "1.5", "1e3", " 3", "٣"])
def test_a_count_that_is_none_is_an_error_that_names_node_key_and_value(key: str, value: str) -> None:
    (text,) = errors(**{key: value})
    assert text.startswith(f"node worker: annotation {PREFIX}{key.replace('_', '-')} is {value!r}: ")


def test_sizes_that_contradict_each_other_are_errors() -> None:
    assert errors(min_count=5, max_count=3) == [f"node worker: {PREFIX}max-count 3 is below {PREFIX}min-count 5"]
    (low,) = errors(min_count=5, desired_count=3)
    assert f"{PREFIX}desired-count 3 is not between the minimum 5 and maximum 200" in low
    assert len(errors(max_count=5, desired_count=6)) == 1


def test_an_unknown_annotation_of_ours_is_told_with_the_one_that_was_meant() -> None:
    problems = Problems()
    read_settings(template(max_cout=3), "node worker", problems)
    assert problems.errors == []
    (text,) = problems.warnings
    assert text == f"node worker: annotation {PREFIX}max-cout means nothing (did you mean max-count?)"


def test_every_option_of_a_group_can_be_set() -> None:
    found = read(
        scale_down_utilization_threshold=0.7,
        scale_down_gpu_utilization_threshold=0.6,
        scale_down_unneeded_time="1m",
        scale_down_unready_time="2m30s",
        max_node_provision_time="5m",
        max_node_startup_time="90s",
        zero_or_max_node_scaling="true",
        allow_non_atomic_scale_up_to_max="true",
        ignore_daemonsets_utilization="true",
    )
    assert found.options(GroupOptions()) == GroupOptions(0.7, 0.6, 60.0, 150.0, 300.0, 90.0, True, True, True)
    assert len(OPTIONS) == len(GroupOptions.__dataclass_fields__)


def test_options_that_are_not_set_stay_as_the_flags_say() -> None:
    defaults = GroupOptions(scale_down_unneeded_time_s=7.0, max_node_startup_time_s=8.0)
    found = read(scale_down_unneeded_time="1m").options(defaults)
    assert found == GroupOptions(scale_down_unneeded_time_s=60.0, max_node_startup_time_s=8.0)
    assert read().options(defaults) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("scale_down_utilization_threshold", "1.5"),
        ("scale_down_unneeded_time", "10"),
        ("scale_down_unneeded_time", "-1m"),
        ("zero_or_max_node_scaling", "yes"),
        ("price_per_hour", "-1"),
        ("price_per_hour", "nan"),
        ("price_per_hour", "free"),
        ("boot_delay", "90s..30s"),
        ("boot_delay", "soon"),
        ("boot_failure_probability", "2"),
        ("boot_failure_mode", "loud"),
        ("stock_out", "10m"),
        ("stock_out", "20m..10m"),
        ("stock_out", "10m..2026-01-01T00:00:00Z"),
        ("stock_out_mode", "never"),
    ],
)
def test_a_value_that_makes_no_sense_is_an_error(key: str, value: str) -> None:
    (text,) = errors(**{key: value})
    assert f"annotation {PREFIX}{key.replace('_', '-')} is {value!r}" in text


def test_faults_are_read() -> None:
    found = read(
        boot_delay="30s..90s",
        boot_failure_probability="0.25",
        boot_failure_mode="silent",
        stock=7,
        stock_out="10m..30m, 2h.., ..1m, 2026-01-01T00:10:00Z..2026-01-01T00:20:00Z, ..2026-01-01T00:00:00Z",
        stock_out_mode="call",
        increase_limit=3,
    ).faults
    windows = (
        Window(600.0, 1800.0, is_absolute=False),
        Window(7200.0, float("inf"), is_absolute=False),
        Window(0.0, 60.0, is_absolute=False),
        Window(1767226200.0, 1767226800.0, is_absolute=True),
        Window(0.0, 1767225600.0, is_absolute=True),
    )
    assert found == Faults((30.0, 90.0), 0.25, "silent", 7, windows, "call", 3)
