"""Every line of the contract of node-specific sizing, by name."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from holokube.kube.resources import pod_requests
from holokube.kube.sizing import (
    ENABLED_LABEL,
    ORIGINAL_ANNOTATION,
    PREFIX,
    STATUS_ANNOTATION,
    SizingProblem,
    check,
    is_enabled,
    is_sized_on_arrival,
    node_name_of,
    size,
    sized_pod,
    sized_requests,
)
from tests.builders import pod
from tests.kube.sizing.pods import annotated, container, daemon, resources_of, sized_node

JsonObject = dict[str, Any]
GI = 2**30


def table_pod(**annotations: str) -> JsonObject:
    """C1, C2 and C3 of the table: 1/2, 2/2 and 3/5 of both resources."""
    amounts = {"c1": ("1", "2"), "c2": ("2", "2"), "c3": ("3", "5")}
    containers = [
        container(name, {"cpu": mr, "memory": f"{mr}Gi"}, {"cpu": ml, "memory": f"{ml}Gi"})
        for name, (mr, ml) in amounts.items()
    ]
    return daemon(*containers, **annotations)


def all_fractions(fraction: str) -> dict[str, str]:
    return {f"{kind}_{resource}_fraction": fraction for kind in ("request", "limit") for resource in ("cpu", "memory")}


def problem_of(given: JsonObject, node: JsonObject | None = None) -> SizingProblem:
    with pytest.raises(SizingProblem) as caught:
        size(given, node or sized_node())
    return caught.value


# Who takes part


def test_only_the_string_true_opts_in() -> None:
    for value, wanted in {"true": True, "True": False, "1": False, "yes": False, "": False}.items():
        assert is_enabled({"metadata": {"labels": {ENABLED_LABEL: value}}}) is wanted
    assert not is_enabled({"metadata": {}})
    assert not is_enabled({"metadata": {"annotations": {ENABLED_LABEL: "true"}}})


def test_the_node_comes_from_the_affinity_to_its_name() -> None:
    assert node_name_of({**daemon(node="worker-7")}) == "worker-7"


def test_the_affinity_wins_over_the_node_name() -> None:
    given = daemon(node="worker-7")
    given["spec"]["nodeName"] = "other"
    assert node_name_of(given) == "worker-7"


def test_without_such_an_affinity_the_node_name_counts() -> None:
    assert node_name_of(pod(node="worker-7")) == "worker-7"
    assert node_name_of(pod()) == ""


def test_an_affinity_to_several_nodes_names_none() -> None:
    given = daemon(node="a")
    required = given["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    required["nodeSelectorTerms"].append(
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    )
    assert node_name_of(given) == ""


def test_pods_of_daemon_sets_are_sized_on_arrival_and_others_are_not() -> None:
    assert is_sized_on_arrival(daemon(container("c")))
    template = daemon(container("c"))
    del template["spec"]["affinity"]
    assert is_sized_on_arrival(template)
    del template["metadata"]["ownerReferences"]
    assert not is_sized_on_arrival(template)
    without = daemon(container("c"))
    without["metadata"]["labels"] = {}
    assert not is_sized_on_arrival(without)


# The algorithm


def test_the_table_of_the_originals_documentation() -> None:
    """Relative values of .16 .33 .50 for requests and .22 .22 .55 for limits."""
    sized = sized_pod(table_pod(**all_fractions("0.1")), sized_node("180", "180Gi"))
    # A tenth is 18 cores and 18Gi, which 6 and 9 divide.
    assert resources_of(sized, "requests", "cpu") == ["3", "6", "9"]
    assert resources_of(sized, "limits", "cpu") == ["4", "6", "10"]
    assert resources_of(sized, "requests", "memory") == ["3Gi", "6Gi", "9Gi"]
    # C2's limit would be 4, below its request of 6, and is raised; the others keep theirs.
    assert resources_of(sized, "limits", "memory") == ["4Gi", "6Gi", "10Gi"]


def test_the_base_is_allocatable_not_capacity() -> None:
    sized = sized_pod(daemon(container("c", {"cpu": "1"}), request_cpu_fraction="0.5"), sized_node(cpu="8"))
    assert resources_of(sized, "requests", "cpu") == ["4"]


def test_cpu_is_shared_in_whole_millicores_that_add_up_to_the_budget() -> None:
    three = [container(name, {"cpu": "1"}) for name in "abc"]
    sized = sized_pod(daemon(*three, request_cpu_fraction="0.1"), sized_node(cpu="1"))
    assert resources_of(sized, "requests", "cpu") == ["34m", "33m", "33m"]


def test_memory_is_shared_in_whole_bytes_that_add_up_to_the_budget() -> None:
    three = [container(name, {"memory": "1Mi"}) for name in "abc"]
    sized = sized_pod(daemon(*three, request_memory_fraction="0.1"), sized_node(memory="1000"))
    assert resources_of(sized, "requests", "memory") == ["34", "33", "33"]


def test_the_budget_is_never_above_the_fraction() -> None:
    sized = sized_pod(daemon(container("c", {"cpu": "1"}), request_cpu_fraction="0.3333"), sized_node(cpu="1"))
    assert resources_of(sized, "requests", "cpu") == ["333m"]


def test_excluded_containers_keep_theirs_and_leave_the_rest_to_the_others() -> None:
    given = daemon(
        container("a", {"cpu": "1"}),
        container("b", {"cpu": "3"}),
        container("proxy", {"cpu": "200m"}),
        request_cpu_fraction="0.1", exclude_containers="proxy",
    )  # fmt: skip
    # A tenth of ten cores, less the proxy's 200m.
    assert resources_of(sized_pod(given, sized_node()), "requests", "cpu") == ["200m", "600m", "200m"]


def test_several_containers_are_excluded_with_spaces_or_without() -> None:
    given = daemon(
        container("a", {"cpu": "1"}),
        container("b", {"cpu": "100m"}),
        container("c", {"cpu": "100m"}),
        request_cpu_fraction="0.1", exclude_containers=" b , c,",
    )  # fmt: skip
    assert resources_of(sized_pod(given, sized_node()), "requests", "cpu") == ["800m", "100m", "100m"]


def test_an_excluded_container_need_not_have_the_tunable() -> None:
    given = daemon(
        container("a", {"cpu": "1"}), container("b"), request_cpu_fraction="0.1", exclude_containers="b"
    )
    assert resources_of(sized_pod(given, sized_node()), "requests", "cpu") == ["1", None]


@pytest.mark.parametrize(("bound", "value", "wanted"), [
    ("minimum", "1500m", "1500m"), ("minimum", "500m", "1"), ("maximum", "500m", "500m"), ("maximum", "1500m", "1"),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["request", "limit"])
def test_budgets_are_clamped_by_minimum_and_maximum(kind: str, bound: str, value: str, wanted: str) -> None:
    given = daemon(
        container("c", {"cpu": "0"}, {"cpu": "1"}) if kind == "limit" else container("c", {"cpu": "1"}),
        **{f"{kind}_cpu_fraction": "0.1", f"{bound}_cpu_{kind}": value},
    )
    assert resources_of(sized_pod(given, sized_node()), f"{kind}s", "cpu") == [wanted]


@pytest.mark.parametrize("kind", ["request", "limit"])
@pytest.mark.parametrize(("bound", "value", "wanted"), [("minimum", "2Gi", "2Gi"), ("maximum", "512Mi", "512Mi")])
def test_memory_is_clamped_as_well(kind: str, bound: str, value: str, wanted: str) -> None:
    amounts = ({"memory": "0"}, {"memory": "1Gi"}) if kind == "limit" else ({"memory": "1Gi"}, None)
    given = daemon(
        container("c", *amounts), **{f"{kind}_memory_fraction": "0.1", f"{bound}_memory_{kind}": value}
    )
    assert resources_of(sized_pod(given, sized_node()), f"{kind}s", "memory") == [wanted]


def test_the_short_names_of_upstream_clamp_request_and_limit_alike() -> None:
    given = daemon(container("c", {"cpu": "1"}, {"cpu": "2"}), **all_cpu("0.1"), maximum_cpu="300m")
    sized = sized_pod(given, sized_node())
    assert resources_of(sized, "requests", "cpu") == ["300m"]
    assert resources_of(sized, "limits", "cpu") == ["300m"]


def all_cpu(fraction: str) -> dict[str, str]:
    return {"request_cpu_fraction": fraction, "limit_cpu_fraction": fraction}


@pytest.mark.parametrize("short", ["minimum_cpu", "maximum_cpu", "minimum_memory", "maximum_memory"])
def test_all_four_short_names_are_read(short: str) -> None:
    resource = short.rpartition("_")[2]
    value = {"minimum_cpu": "2", "maximum_cpu": "500m", "minimum_memory": "2Gi", "maximum_memory": "512Mi"}[short]
    given = daemon(
        container("c", {resource: "1"}), **{f"request_{resource}_fraction": "0.1", short: value}
    )
    wanted = {"minimum_memory": 2 * GI, "maximum_memory": GI // 2}.get(short)
    sized = resources_of(sized_pod(given, sized_node()), "requests", resource)
    assert sized == [value if wanted is None else str(wanted)]


def test_the_specific_clamp_wins_over_the_short_one() -> None:
    given = daemon(
        container("c", {"cpu": "1"}, {"cpu": "2"}), **all_cpu("0.1"), maximum_cpu="300m", maximum_cpu_limit="700m"
    )
    sized = sized_pod(given, sized_node())
    assert resources_of(sized, "requests", "cpu") == ["300m"]
    assert resources_of(sized, "limits", "cpu") == ["700m"]


def test_clamps_come_after_the_exclusion() -> None:
    given = daemon(
        container("a", {"cpu": "1"}), container("b", {"cpu": "400m"}),
        request_cpu_fraction="0.1", exclude_containers="b", minimum_cpu_request="800m",
    )  # fmt: skip
    assert resources_of(sized_pod(given, sized_node()), "requests", "cpu") == ["800m", "400m"]


def test_a_minimum_is_rounded_up_and_a_maximum_down() -> None:
    low = daemon(container("c", {"cpu": "1"}), request_cpu_fraction="0.1", minimum_cpu_request="1.2341")
    high = daemon(container("c", {"cpu": "1"}), request_cpu_fraction="0.1", maximum_cpu_request="0.2349")
    assert resources_of(sized_pod(low, sized_node()), "requests", "cpu") == ["1235m"]
    assert resources_of(sized_pod(high, sized_node()), "requests", "cpu") == ["234m"]


def test_a_limit_below_its_request_is_raised_to_it() -> None:
    given = daemon(
        container("c", {"cpu": "1"}, {"cpu": "1"}), request_cpu_fraction="0.2", limit_cpu_fraction="0.1"
    )
    sized = sized_pod(given, sized_node())
    assert resources_of(sized, "limits", "cpu") == resources_of(sized, "requests", "cpu") == ["2"]


def test_a_limit_without_a_fraction_is_raised_too_if_its_request_grows_past_it() -> None:
    given = daemon(container("c", {"cpu": "1"}, {"cpu": "1500m"}), request_cpu_fraction="0.2")
    sized = sized_pod(given, sized_node())
    assert resources_of(sized, "limits", "cpu") == ["2"]


def test_tunables_without_a_fraction_stay_as_they_are() -> None:
    given = daemon(
        container("c", {"cpu": "1", "memory": "100Mi", "ephemeral-storage": "1Gi"}, {"cpu": "7", "memory": "200Mi"}),
        request_cpu_fraction="0.1",
    )
    resources = sized_pod(given, sized_node())["spec"]["containers"][0]["resources"]
    assert resources == {
        "requests": {"cpu": "1", "memory": "100Mi", "ephemeral-storage": "1Gi"},
        "limits": {"cpu": "7", "memory": "200Mi"},
    }


def test_native_sidecars_take_part_and_ordinary_init_containers_do_not() -> None:
    given = daemon(
        container("main", {"cpu": "1"}),
        sidecars=(
            container("init", {"cpu": "5"}),
            container("side", {"cpu": "1"}, restartPolicy="Always"),
        ),
        request_cpu_fraction="0.1",
    )
    sized = sized_pod(given, sized_node())
    assert resources_of(sized, "requests", "cpu") == ["500m", "500m"]
    assert sized["spec"]["initContainers"][0] == given["spec"]["initContainers"][0]


def test_pod_level_resources_are_scaled_to_the_budget_too() -> None:
    both = [container(name, {"cpu": "1"}, {"cpu": "1"}) for name in "ab"]
    given = daemon(*both, **all_cpu("0.1"))
    given["spec"]["resources"] = {"requests": {"cpu": "3", "memory": "1Gi"}, "limits": {"cpu": "4"}}
    sized = sized_pod(given, sized_node(cpu="8"))
    assert resources_of(sized, "requests", "cpu") == ["400m", "400m"]
    assert sized["spec"]["resources"] == {"requests": {"cpu": "800m", "memory": "1Gi"}, "limits": {"cpu": "800m"}}


def test_pod_level_resources_hold_what_excluded_containers_have() -> None:
    given = daemon(
        container("a", {"cpu": "1"}), container("b", {"cpu": "300m"}),
        request_cpu_fraction="0.1", exclude_containers="b",
    )  # fmt: skip
    given["spec"]["resources"] = {"requests": {"cpu": "2"}}
    sized = sized_pod(given, sized_node())
    assert resources_of(sized, "requests", "cpu") == ["700m", "300m"]
    assert sized["spec"]["resources"] == {"requests": {"cpu": "1"}}


def test_pod_level_resources_alone_take_the_whole_budget() -> None:
    given = daemon(container("a"), container("b"), request_memory_fraction="0.5")
    given["spec"]["resources"] = {"requests": {"memory": "1Gi"}}
    sized = sized_pod(given, sized_node())
    assert sized["spec"]["resources"] == {"requests": {"memory": "5Gi"}}


def test_pod_level_resources_stay_large_enough_for_init_containers() -> None:
    """The API server would refuse the pod otherwise."""
    given = daemon(
        container("a", {"cpu": "1"}, {"cpu": "1"}),
        sidecars=(container("init", {"cpu": "3"}, {"cpu": "4"}),),
        **all_cpu("0.1"),
    )
    given["spec"]["resources"] = {"requests": {"cpu": "4"}, "limits": {"cpu": "4"}}
    sized = sized_pod(given, sized_node())
    assert sized["spec"]["resources"] == {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}


def test_a_request_that_is_left_out_is_its_limit() -> None:
    given = daemon(container("c", None, {"cpu": "1"}), **all_cpu("0.2"))
    sized = sized_pod(given, sized_node())
    assert resources_of(sized, "requests", "cpu") == ["2"] == resources_of(sized, "limits", "cpu")


@pytest.mark.parametrize(("written", "wanted"), [
    ("1Gi", "2560Mi"), ("100Mi", "2560Mi"), ("1G", "2684354560"), ("1073741824", "2684354560"), ("1e9", "2684354560"),
])  # fmt: skip
def test_memory_keeps_the_suffixes_of_the_input(written: str, wanted: str) -> None:
    given = daemon(container("c", {"memory": written}), request_memory_fraction="0.25")
    assert resources_of(sized_pod(given, sized_node()), "requests", "memory") == [wanted]


def test_decimal_memory_is_written_with_decimal_suffixes() -> None:
    given = daemon(container("c", {"memory": "1G"}), request_memory_fraction="0.5")
    assert resources_of(sized_pod(given, sized_node(memory="8G")), "requests", "memory") == ["4G"]


# What is noted on the pod


def test_the_status_tells_what_was_applied() -> None:
    given = daemon(
        container("a", {"cpu": "1", "memory": "1Gi"}, {"cpu": "2"}), container("b", {"cpu": "100m"}),
        request_cpu_fraction="0.1", request_memory_fraction="0.2", exclude_containers="b",
    )  # fmt: skip
    status = json.loads(sized_pod(given, sized_node())["metadata"]["annotations"][STATUS_ANNOTATION])
    assert status == {
        "node": "n",
        "allocatable": {"cpu": "10", "memory": "10Gi"},
        "requests": {"cpu": "900m", "memory": "2Gi"},
        "excluded": ["b"],
    }


def test_sizing_a_sized_pod_changes_nothing() -> None:
    once = sized_pod(table_pod(**all_fractions("0.07")), sized_node("7", "7777777777"))
    assert sized_pod(once, sized_node("7", "7777777777")) == once


def test_a_pod_that_moves_to_another_size_is_as_if_it_had_never_been_smaller() -> None:
    """Three bytes hold no proportions; what was written does."""
    given = table_pod(**all_fractions("0.1"))
    small, large = sized_node("20m", "60"), sized_node("448", "24Ti")
    with pytest.raises(SizingProblem):
        size(given, sized_node("10m", "10"))
    assert sized_pod(sized_pod(given, small), large) == sized_pod(given, large)


def test_a_sidecar_injected_later_shares_as_if_it_had_been_there() -> None:
    given = daemon(container("a", {"cpu": "1"}), container("b", {"cpu": "2"}), request_cpu_fraction="0.1")
    injected = container("mesh", {"cpu": "1"})
    first = sized_pod(given, sized_node())
    first["spec"]["containers"].append(injected)
    together = copy.deepcopy(given)
    together["spec"]["containers"].append(injected)
    assert sized_pod(first, sized_node()) == sized_pod(together, sized_node())
    assert resources_of(sized_pod(first, sized_node()), "requests", "cpu") == ["250m", "500m", "250m"]


def test_taking_the_fractions_away_gives_back_what_was_written() -> None:
    sized = sized_pod(table_pod(**all_fractions("0.1")), sized_node("180", "180Gi"))
    kept = {k: v for k, v in sized["metadata"]["annotations"].items() if k in (STATUS_ANNOTATION, ORIGINAL_ANNOTATION)}
    sized["metadata"]["annotations"] = kept
    assert sized_pod(sized, sized_node())["spec"] == table_pod()["spec"]


@pytest.mark.parametrize("note", [
    "", "{", "[]", "null", '{"containers": 7}', '{"containers": {"c": {"requests": {"cpu": "x"}}}}',
    '{"containers": {"c": {"requests": {"cpu": "-1"}}}}',
])  # fmt: skip
def test_a_note_that_cannot_be_read_is_as_good_as_none(note: str) -> None:
    given = daemon(container("c", {"cpu": "1"}), request_cpu_fraction="0.1")
    given["metadata"]["annotations"][ORIGINAL_ANNOTATION] = note
    assert resources_of(sized_pod(given, sized_node()), "requests", "cpu") == ["1"]


def test_the_pod_given_is_left_as_it_is() -> None:
    given = table_pod(**all_fractions("0.1"), exclude_containers="c3")
    before = copy.deepcopy(given)
    sized_pod(given, sized_node())
    assert given == before


# Trouble: the pod stays as it is, and the problem says which annotation and what to write instead


@pytest.mark.parametrize("text", ["", "a tenth", "10%", "0", "0.0", "1.0001", "2", "-0.1", "1e-1", "NaN", "0,1", "."])
def test_a_fraction_that_is_no_number_or_out_of_range(text: str) -> None:
    problem = problem_of(daemon(container("c", {"cpu": "1"}), request_cpu_fraction=text))
    assert problem.reason == "BadFraction"
    assert PREFIX + "request-cpu-fraction" in problem.text and '"0.1"' in problem.hint


@pytest.mark.parametrize("text", ["1", "1.0", "0.1", ".1", " 0.25 ", "0.000001", "1."])
def test_fractions_that_are_fine(text: str) -> None:
    size(daemon(container("c", {"memory": "1Gi"}), request_memory_fraction=text), sized_node())


def test_nothing_to_distribute() -> None:
    for containers in ([container("c")], [container("c", {"cpu": "0"})], [container("c", {"memory": "1Gi"})]):
        problem = problem_of(daemon(*containers, request_cpu_fraction="0.1"))
        assert problem.reason == "NothingToDistribute" and "request-cpu-fraction" in problem.text


def test_nothing_is_left_to_distribute_if_all_are_excluded() -> None:
    given = daemon(container("c", {"cpu": "1"}), request_cpu_fraction="0.5", exclude_containers="c")
    assert problem_of(given).reason == "NothingToDistribute"


def test_some_containers_with_and_others_without() -> None:
    problem = problem_of(daemon(container("a", {"cpu": "1"}), container("b"), request_cpu_fraction="0.1"))
    assert problem.reason == "PartialTunable"
    assert "others have none: b" in problem.message and "exclude-containers" in problem.hint


def test_a_minimum_above_the_maximum() -> None:
    problem = problem_of(
        daemon(container("c", {"cpu": "1"}), request_cpu_fraction="0.1", minimum_cpu="2", maximum_cpu_request="1")
    )
    assert problem.reason == "MinimumAboveMaximum"
    assert "minimum-cpu is 2" in problem.text and "maximum-cpu-request, which is 1" in problem.text


@pytest.mark.parametrize("text", ["much", "-1", "1e30", ""])
def test_a_clamp_that_is_no_quantity(text: str) -> None:
    problem = problem_of(daemon(container("c", {"cpu": "1"}), request_cpu_fraction="0.1", minimum_cpu_request=text))
    assert problem.reason == "BadClamp" and "minimum-cpu-request" in problem.text and "500m" in problem.hint


def test_a_budget_that_is_not_above_zero() -> None:
    eaten = daemon(
        container("a", {"cpu": "1"}), container("b", {"cpu": "2"}), request_cpu_fraction="0.1", exclude_containers="b"
    )
    assert problem_of(eaten).reason == "BudgetNotPositive"
    capped = daemon(container("a", {"cpu": "1"}), request_cpu_fraction="0.1", maximum_cpu_request="0")
    assert problem_of(capped).reason == "BudgetNotPositive"


def test_a_minimum_can_save_the_budget() -> None:
    eaten = daemon(
        container("a", {"cpu": "1"}), container("b", {"cpu": "2"}),
        request_cpu_fraction="0.1", exclude_containers="b", minimum_cpu_request="50m",
    )  # fmt: skip
    assert resources_of(sized_pod(eaten, sized_node()), "requests", "cpu") == ["50m", "2"]


def test_a_limit_never_becomes_zero_which_would_lift_it() -> None:
    given = daemon(
        container("a", {"cpu": "0"}, {"cpu": "1m"}), container("b", {"cpu": "0"}, {"cpu": "9"}),
        limit_cpu_fraction="0.1",
    )  # fmt: skip
    assert problem_of(given, sized_node(cpu="10m")).reason == "BudgetTooSmall"


def test_an_unknown_excluded_container() -> None:
    problem = problem_of(daemon(container("c", {"cpu": "1"}), request_cpu_fraction="0.1", exclude_containers="ghost"))
    assert problem.reason == "UnknownContainer"
    assert "exclude-containers" in problem.text and '"ghost"' in problem.text


def test_an_ordinary_init_container_may_be_named_among_the_excluded() -> None:
    given = daemon(
        container("c", {"cpu": "1"}), sidecars=(container("istio-init", {"cpu": "2"}),),
        request_cpu_fraction="0.1", exclude_containers="istio-init",
    )  # fmt: skip
    assert resources_of(sized_pod(given, sized_node()), "requests", "cpu") == ["1"]


def test_a_node_that_has_not_said_what_it_has() -> None:
    given = daemon(container("c", {"cpu": "1"}), request_cpu_fraction="0.1")
    assert problem_of(given, {"metadata": {"name": "new"}}).reason == "NoAllocatable"


def test_a_bad_tunable_leaves_the_whole_pod_as_it_is() -> None:
    given = table_pod(request_cpu_fraction="0.1", request_memory_fraction="a lot")
    assert sized_pod(given, sized_node()) == given


def test_negative_amounts_are_named() -> None:
    assert problem_of(daemon(container("c", {"cpu": "-1"}), request_cpu_fraction="0.1")).reason == "BadQuantity"


def test_all_warnings_fit_into_what_clients_show() -> None:
    long = "x" * 300
    for wrong in (
        {"request_memory_fraction": long}, {"request_memory_fraction": "0.1", "minimum_memory_request": long},
        {"request_memory_fraction": "0.1", "exclude_containers": long},
        {"request_memory_fraction": "0.1", "minimum_memory_request": "2Gi", "maximum_memory_request": "1Gi"},
    ):  # fmt: skip
        assert len(problem_of(daemon(container("c", {"memory": "1Gi"}), **wrong)).text) <= 256


def test_templates_are_checked_without_a_node() -> None:
    check(table_pod(**all_fractions("0.1")))
    with pytest.raises(SizingProblem, match="others have none"):
        check(daemon(container("a", {"cpu": "1"}), container("b"), request_cpu_fraction="0.1"))


def test_what_is_probably_not_meant_is_noted_but_stands_in_nobodys_way() -> None:
    typo = size(daemon(container("c", {"cpu": "1"}), request_cpu_fraction="0.1", maximun_cpu="1"), sized_node())
    assert "did you mean" in typo.notes[0] and "maximum-cpu" in typo.notes[0]
    nothing = size(daemon(container("c", {"cpu": "1"})), sized_node())
    assert "nothing says what to size" in nothing.notes[0] and not nothing.annotations


# What autoscalers count


def test_requests_are_counted_as_they_will_be_on_that_node() -> None:
    given = daemon(container("c", {"cpu": "1"}), request_cpu_fraction="0.1")
    given["spec"]["overhead"] = {"cpu": "50m"}
    assert sized_requests(given, sized_node("40"))["cpu"] == 4050
    assert sized_requests(given, sized_node("4"))["cpu"] == 450


def test_a_pod_that_cannot_be_sized_counts_as_written() -> None:
    bad = daemon(container("c", {"cpu": "1"}), request_cpu_fraction="tenth")
    assert sized_requests(bad, sized_node()) == pod_requests(bad)
    out = daemon(container("c", {"cpu": "1"}), request_cpu_fraction="0.5")
    out["metadata"]["labels"] = {}
    assert sized_requests(out, sized_node()) == {"cpu": 1000}


def test_annotations_are_named_with_their_prefix() -> None:
    assert annotated(request_cpu_fraction="1") == {"node-specific-sizing.manomano.tech/request-cpu-fraction": "1"}
