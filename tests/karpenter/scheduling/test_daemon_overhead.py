from __future__ import annotations

from holokube.karpenter.scheduling.problem import SolveOptions
from holokube.kube.resources import parse_resources
from tests.karpenter.scheduling.builders import (
    ARCH,
    CPU_LABEL,
    failed,
    instance_type,
    need,
    pod,
    pods,
    pool,
    required_nodes,
    solve,
    state_node,
)

LABEL = "node-specific-sizing.manomano.tech/enabled"
FRACTION = "node-specific-sizing.manomano.tech/request-cpu-fraction"


def _names(results: object) -> list[str]:
    return [one.name for one in results.new_claims[0].instance_types]  # type: ignore[attr-defined]  # of one claim


def test_daemons_that_do_not_tolerate_a_pool_or_fit_its_labels_take_nothing() -> None:
    tainted = pool(taints=[{"key": "x", "effect": "NoSchedule"}], labels={"disk": "fast"})
    bearing = pods(1, cpu="1", tolerations=[{"operator": "Exists"}])
    selecting = pod("d", "1", nodeSelector={"disk": "slow"}, tolerations=[{"operator": "Exists"}])
    for daemon in (pod("d", "1"), selecting):
        assert _names(solve(bearing, pools=[tainted], daemon_pods=[daemon])) == ["m-1", "m-2", "m-4", "m-8"]
    fitting = pod("d", "1", nodeSelector={"disk": "fast"}, tolerations=[{"operator": "Exists"}])
    assert _names(solve(bearing, pools=[tainted], daemon_pods=[fitting])) == ["m-2", "m-4", "m-8"]


def test_daemons_do_not_mind_nodes_that_prefer_no_pods() -> None:
    avoided = pool(taints=[{"key": "x", "effect": "PreferNoSchedule"}])
    assert _names(solve(pods(1, cpu="1"), pools=[avoided], daemon_pods=[pod("d", "1")])) == ["m-2", "m-4", "m-8"]


def test_daemons_for_nodes_that_have_come_up_count() -> None:
    daemon = pod("d", "1", nodeSelector={"karpenter.sh/initialized": "true"})
    assert _names(solve(pods(1, cpu="1"), daemon_pods=[daemon])) == ["m-2", "m-4", "m-8"]


def test_an_alternative_that_did_not_fit_one_type_is_not_tried_for_the_next() -> None:
    types = [instance_type("amd", 4), instance_type("arm", 4, arch="arm64")]
    alternatives = required_nodes([need(ARCH, "In", "arm64")], [need(ARCH, "In", "amd64")])
    results = solve(pods(1, cpu="3500m"), types=types, daemon_pods=[pod("d", "1", affinity=alternatives)])
    # The daemon would run on both, but after the first type only its second alternative is left.
    assert _names(results) == ["arm"]


def test_daemons_with_resource_claims_do_not_count_while_those_are_ignored() -> None:
    daemon = pod("d", "1", resourceClaims=[{"name": "gpu"}])
    assert _names(solve(pods(1, cpu="1"), daemon_pods=[daemon]))[0] == "m-1"
    minding = SolveOptions(ignore_dra_requests=False)
    assert _names(solve(pods(1, cpu="1"), daemon_pods=[daemon], options=minding))[0] == "m-2"


def test_daemons_sized_by_their_node_count_with_the_size_they_would_get() -> None:
    daemon = pod("d", "100m", "0")
    daemon["metadata"]["labels"] = {LABEL: "true"}
    daemon["metadata"]["annotations"] = {FRACTION: "0.5"}
    wanted = pods(1, cpu="1500m", memory="0")
    assert _names(solve(wanted, daemon_pods=[daemon]))[0] == "m-4"
    assert solve(wanted, daemon_pods=[daemon]).new_claims[0].requests["cpu"] == 3500
    as_written = SolveOptions(size_daemons=False)
    assert _names(solve(wanted, daemon_pods=[daemon], options=as_written))[0] == "m-2"
    assert not solve(pods(1, cpu="2500m"), daemon_pods=[daemon], state_nodes=[state_node("n", cpu="4")]).existing
    assert solve(pods(1, cpu="1900m"), daemon_pods=[daemon], state_nodes=[state_node("n", cpu="4")]).existing


def test_the_least_over_groups_has_only_what_all_of_them_have() -> None:
    large = required_nodes([need(CPU_LABEL, "Gt", "4")])
    gpu = pod("gpu", "300m", "0", affinity=large)
    gpu["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "300m", "example.com/gpu": "1"}
    types = [instance_type("small", 4), instance_type("large", 8, resources={"example.com/gpu": "1"})]
    results = solve([pod("p", "1", "0")], types=types, daemon_pods=[gpu])
    assert _names(results) == ["small", "large"]
    # The small type has no daemon at all, and counts for nothing rather than for zero, as upstream has it.
    assert results.new_claims[0].requests == parse_resources({
        "cpu": "1300m", "example.com/gpu": "1", "pods": "2",
    })  # fmt: skip


def test_a_type_that_daemons_fill_completely_is_no_use() -> None:
    assert failed(solve(pods(1), types=[instance_type("tiny", 1)], daemon_pods=[pod("d", "2")])) == {"p0"}
