"""Which policy a command line means."""

from __future__ import annotations

from pathlib import Path

import pytest

from holokube.base.errors import UsageError
from holokube.cli.policy_option import choose_policy
from holokube.cluster.cluster_autoscaler_policy import ClusterAutoscalerPolicy
from holokube.cluster.karpenter_policy import KarpenterPolicy
from holokube.cluster.optimal_policy import OptimalPolicy

NODE = """
apiVersion: v1
kind: Node
metadata: {name: big, annotations: {cluster-autoscaler.kwok.nodegroup/max-count: "3"}}
status: {capacity: {cpu: "64"}}
"""


def test_no_policy_is_a_policy() -> None:
    assert choose_policy("none", "", "") is None


@pytest.mark.parametrize(("flags", "groups", "named"), [("--expander=price", "", "--policy-flags"),
                                                        ("", "f.yaml", "--node-groups")])
def test_settings_of_a_policy_that_is_not_there_are_refused(flags: str, groups: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        choose_policy("none", flags, groups)


def test_flags_have_upstreams_names(tmp_path: Path) -> None:
    (tmp_path / "groups.yaml").write_text(NODE)
    policy = choose_policy(
        "cluster-autoscaler", "--scan-interval=2s --expander 'price,most-pods'", str(tmp_path / "groups.yaml")
    )
    assert isinstance(policy, ClusterAutoscalerPolicy)
    assert policy.options.scan_interval_s == 2.0
    assert policy.options.expander == ("price", "most-pods")
    assert [node["metadata"]["name"] for node in policy.templates] == ["big"]


def test_a_flag_that_nobody_knows_is_refused() -> None:
    with pytest.raises(UsageError, match="scan-intervall"):
        choose_policy("cluster-autoscaler", "--scan-intervall=2s", "")


def test_a_quote_left_open_is_refused() -> None:
    with pytest.raises(UsageError, match="No closing quotation"):
        choose_policy("cluster-autoscaler", "--expander='price", "")


def test_a_file_without_nodes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "groups.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n")
    with pytest.raises(UsageError, match="holds no Node"):
        choose_policy("cluster-autoscaler", "", str(tmp_path / "groups.yaml"))


def test_karpenter_takes_its_own_flags_and_no_groups() -> None:
    policy = choose_policy("karpenter", "--batch-idle-duration=2s", "")
    assert isinstance(policy, KarpenterPolicy) and policy.settings.batch_idle_duration_s == 2.0
    with pytest.raises(UsageError, match="--node-groups is for cluster-autoscaler"):
        choose_policy("karpenter", "", "groups.yaml")
    with pytest.raises(UsageError, match="expander"):
        choose_policy("karpenter", "--expander=price", "")


def test_optimal_is_karpenter_with_another_name_and_takes_its_flags() -> None:
    policy = choose_policy("optimal", "--batch-idle-duration=3s", "")
    assert isinstance(policy, OptimalPolicy)
    assert policy.name == "optimal"
    assert policy.settings.batch_idle_duration_s == 3.0
    with pytest.raises(UsageError, match="--node-groups"):
        choose_policy("optimal", "", "groups.yaml")
