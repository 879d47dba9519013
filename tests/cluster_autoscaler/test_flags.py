"""Upstream's flags."""

from __future__ import annotations

from dataclasses import fields

import pytest

from holokube.base.errors import UsageError
from holokube.cluster_autoscaler.flag_table import FLAGS, Fate
from holokube.cluster_autoscaler.flags import ProcessOptions, default_options, parse_flags
from holokube.cluster_autoscaler.options import AutoscalerOptions


def test_the_defaults_of_the_table_are_those_of_the_options() -> None:
    assert default_options() == AutoscalerOptions()
    assert parse_flags([]).options == AutoscalerOptions()


def test_every_flag_has_a_name_of_its_own_and_a_field_to_fill() -> None:
    assert len({flag.name for flag in FLAGS}) == len(FLAGS)
    options = {field.name for field in fields(AutoscalerOptions)}
    process = {field.name for field in fields(ProcessOptions)}
    for flag in FLAGS:
        if flag.fate is Fate.OPTION:
            assert flag.target in options, flag.name
        elif flag.fate is Fate.PROCESS:
            assert flag.target in process, flag.name
        else:
            assert flag.why, flag.name


def test_every_option_can_be_set_by_a_flag_unless_it_is_our_own() -> None:
    targets = {flag.target for flag in FLAGS if flag.fate is Fate.OPTION}
    assert {field.name for field in fields(AutoscalerOptions)} - targets == {"extra", "size_daemons"}


def test_values_are_read_as_go_reads_them() -> None:
    options = parse_flags([
        "--scan-interval=1m30s", "--max-nodes-total", "7", "--balance-similar-node-groups", "--scale-up-from-zero=f",
        "--scale-down-utilization-threshold=0.65", "--expander=priority,least-waste", "--cores-total=2:64",
        "--memory-total=0:256", "--gpu-total=nvidia-tesla-k80:0:4", "--gpu-total=tpu:1:2",
        "--startup-taint=a", "--startup-taint=b", "--bypassed-scheduler-names=x,y",
        "--drain-priority-config=100:20,0:60", "--salvo_scale_up_budget=5s",
    ]).options
    assert options.scan_interval_s == 90.0 and options.max_nodes_total == 7
    assert options.balance_similar_node_groups and not options.scale_up_from_zero
    assert options.scale_down_utilization_threshold == 0.65
    assert options.expander == ("priority", "least-waste")
    assert options.cores_total == (2, 64) and options.memory_total_gib == (0, 256)
    assert options.gpu_total == (("nvidia-tesla-k80", 0, 4), ("tpu", 1, 2))
    assert options.startup_taint == ("a", "b") and options.bypassed_scheduler_names == ("x", "y")
    assert options.drain_priority_config == ((0, 60), (100, 20))
    assert options.salvo_scale_up_time_budget_s == 5.0


def test_what_is_given_twice_counts_the_last_time() -> None:
    assert parse_flags(["--max-nodes-total=1", "--max-nodes-total=2"]).options.max_nodes_total == 2


@pytest.mark.parametrize(("flags", "message"), [
    (["--scan-interval=10"], "--scan-interval=10"),
    (["--max-nodes-total=many"], "'many' is no whole number"),
    (["--max-nodes-total"], "--max-nodes-total needs a value"),
    (["--balance-similar-node-groups=perhaps"], "neither true nor false"),
    (["--cores-total=64"], "no colon"),
    (["--cores-total=-1:4"], "below zero"),
    (["--cores-total=8:4"], "below the least"),
    (["--gpu-total=k80:4"], "not a type"),
    (["--drain-priority-config=100"], "not a priority and seconds"),
    (["--expander=cheapest"], "there is no expander 'cheapest'"),
    (["--expander=random,random"], "twice"),
    (["--expander=grpc"], "needs --grpc-expander-url"),
    (["--balancing-label=a", "--balancing-ignore-label=b"], "exclude each other"),
    (["--drain-priority-config=0:60", "--max-graceful-termination-sec=60"], "exclude each other"),
    (["--bypassed-scheduler-names=a", "--allowed-scheduler-names=b"], "does not"),
    (["--estimator=magic"], "binpacking is the only estimator"),
    (["--enable-provisioning-requests"], "not possible"),
    (["--node-group-auto-discovery=asg:tag=x"], "discovers groups"),
    (["scan-interval"], "is no flag"),
])
def test_what_makes_no_sense_is_refused_with_a_hint(flags: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        parse_flags(flags)
    assert refused.value.hint


def test_a_slip_of_the_pen_is_recognised() -> None:
    with pytest.raises(UsageError) as refused:
        parse_flags(["--scan-intervall=10s"])
    assert refused.value.hint == "Did you mean --scan-interval?"


def test_what_is_not_offered_may_stay_at_its_default() -> None:
    assert not parse_flags(["--enable-provisioning-requests=false", "--estimator=binpacking"]).warnings


def test_dead_flags_are_accepted_with_a_warning() -> None:
    parsed = parse_flags(["--scale-down-candidates-pool-ratio=0.5", "--v=4", "--scale-down-enabled=false"])
    assert [warning.split()[0] for warning in parsed.warnings] == [
        "--scale-down-candidates-pool-ratio", "--v", "--scale-down-enabled"]
    assert parsed.options.extra == {"scale-down-candidates-pool-ratio": "0.5", "v": "4"}
    assert not parsed.options.scale_down_enabled


def test_the_first_turn_has_as_long_as_any_other() -> None:
    parsed = parse_flags(["--max-failing-time=1h"])
    assert parsed.options.max_startup_time_s == 3600.0 and len(parsed.warnings) == 1


def test_flags_of_the_program_are_kept_apart() -> None:
    process = parse_flags(["--cloud-provider=kwok", "--address=:9", "--leader-elect=false", "--nodes=0:3:a",
                           "--leader-elect-lease-duration=20s"]).process
    assert process.cloud_provider == "kwok" and process.address == ":9" and not process.leader_elect
    assert process.nodes == ("0:3:a",) and process.leader_elect_lease_duration_s == 20.0
