"""The checker finds what is wrong with a plan, and nothing where nothing is."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.karpenter.checker import check_world
from tests.karpenter.checker_inputs import check_answer, world_of_answer
from tests.karpenter.checker_world import (
    CAPACITY_TYPE,
    ZONE,
    Deal,
    Kind,
    Place,
    Pool,
    Storage,
    Values,
    Violation,
    World,
    accepts,
    values_by_key,
)

Json = dict[str, Any]
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _type(name: str, cpu: int, price: float, zones: tuple[str, ...] = ("a", "b")) -> Json:
    offerings = [
        {"zone": zone, "capacityType": kind, "price": price * (1.0 if kind == "on-demand" else 0.5)}
        for zone in zones for kind in ("on-demand", "spot")
    ]  # fmt: skip
    resources = {"cpu": str(cpu), "memory": f"{4 * cpu}Gi", "pods": "20"}
    return {"name": name, "architecture": "amd64", "operatingSystems": ["linux"], "resources": resources,
            "offerings": offerings}  # fmt: skip


CATALOG = [_type("small", 2, 0.1), _type("large", 8, 0.4)]


def _pod(name: str, cpu: str = "500m", **spec: Any) -> Json:
    app = spec.pop("app", "web")
    container: Json = {"name": "app", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    if "host_port" in spec:
        container["ports"] = [{"hostPort": spec.pop("host_port"), "containerPort": 80}]
    return {"metadata": {"name": name, "namespace": "default", "labels": {"app": app}},
            "spec": {"containers": [container], **spec}}  # fmt: skip


def _pool(**spec: Any) -> Json:
    template = {"requirements": spec.pop("requirements", []), "taints": spec.pop("taints", [])}
    return {"metadata": {"name": "default"}, "spec": {"template": {"spec": template}, **spec}}


def _claim(pods: list[str], *, zone: str = "a", types: tuple[str, ...] = ("large",), **fields: Any) -> Json:
    price = {"small": 0.1, "large": 0.4}[types[0]]
    return {
        "nodePool": "default", "instanceType": types[0], "zone": zone, "capacityType": "on-demand", "price": price,
        "numInstanceTypeOptions": len(types), "instanceTypeOptions": list(types),
        "requirements": [f"{CAPACITY_TYPE} In [on-demand]", f"{ZONE} In [{zone}]"],
        "pods": [f"default/{name}" for name in pods], **fields,
    }  # fmt: skip


def _node(name: str, pods: list[Json] | None = None, *, zone: str = "a", cpu: str = "4", **spec: Any) -> Json:
    labels = {HOST: name, ZONE: zone, "karpenter.sh/nodepool": "default"}
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "20"}
    return {
        "node": {"metadata": {"name": name, "labels": labels}, "spec": spec,
                 "status": {"capacity": amounts, "allocatable": amounts}},
        "nodeClaim": None, "pods": pods or [],
    }  # fmt: skip


def _check(
    pods: list[Json], claims: list[Json], *, existing: dict[str, list[str]] | None = None, pool: Json | None = None,
    **problem: Any,
) -> list[Violation]:
    given = {"nodePools": [pool or _pool()], "pods": pods, **problem}
    placed = {node: [f"default/{name}" for name in names] for node, names in (existing or {}).items()}
    return check_answer(given, {"newNodeClaims": claims, "existingNodes": placed, "podErrors": {}}, CATALOG)


def _rules(found: list[Violation]) -> set[str]:
    return {violation.rule for violation in found}


def test_a_good_plan_has_no_violations() -> None:
    pods = [_pod("one"), _pod("two")]
    assert _check(pods, [_claim(["one"])], existing={"node": ["two"]}, existingNodes=[_node("node")]) == []


def test_too_much_on_a_new_node_is_found() -> None:
    found = _check([_pod("one", "4"), _pod("two", "3950m")], [_claim(["one", "two"])])
    assert _rules(found) == {"resources"}
    assert "cpu 7950 of 7900" in str(found[0])


def test_every_instance_type_of_a_claim_must_have_room() -> None:
    found = _check([_pod("one", "4")], [_claim(["one"], types=("small", "large"))])
    assert [violation.place for violation in found] == ["new-000 as small"]


def test_too_much_on_an_existing_node_is_found() -> None:
    node = _node("node", [_pod("there", "3500m")])
    assert _rules(_check([_pod("one", "501m")], [], existing={"node": ["one"]}, existingNodes=[node])) == {"resources"}
    assert _check([_pod("one", "500m")], [], existing={"node": ["one"]}, existingNodes=[node]) == []


def test_daemons_need_room_too() -> None:
    daemon = _pod("agent", "1")
    pods = [_pod("one", "7")]
    assert _rules(_check(pods, [_claim(["one"])], daemonSetPods=[daemon])) == {"resources"}
    elsewhere = _pod("agent", "1", nodeSelector={"kubernetes.io/arch": "arm64"})
    assert _check(pods, [_claim(["one"])], daemonSetPods=[elsewhere]) == []


def test_a_daemon_that_runs_already_is_not_counted_twice() -> None:
    daemon = _pod("agent", "1")
    running = copy.deepcopy(daemon)
    running["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "agent"}]
    pods = [_pod("one", "3")]
    assert _check(pods, [], existing={"node": ["one"]}, daemonSetPods=[daemon],
                  existingNodes=[_node("node", [running])]) == []  # fmt: skip
    assert _check(pods, [], existing={"node": ["one"]}, daemonSetPods=[daemon], existingNodes=[_node("node")]) == []
    more = [_pod("one", "3001m")]
    assert _rules(_check(more, [], existing={"node": ["one"]}, daemonSetPods=[daemon],
                         existingNodes=[_node("node")])) == {"resources"}  # fmt: skip


def test_a_pod_that_does_not_tolerate_a_taint_is_found() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    pool = _pool(taints=[taint])
    assert _rules(_check([_pod("one")], [_claim(["one"])], pool=pool)) == {"taints"}
    tolerant = _pod("one", tolerations=[{"key": "gpu", "operator": "Equal", "value": "yes"}])
    assert _check([tolerant], [_claim(["one"])], pool=pool) == []
    other = _pod("one", tolerations=[{"key": "gpu", "operator": "Equal", "value": "no"}])
    assert _rules(_check([other], [], existing={"node": ["one"]},
                         existingNodes=[_node("node", taints=[taint])])) == {"taints"}  # fmt: skip


def test_a_preferred_taint_is_no_violation() -> None:
    pool = _pool(taints=[{"key": "slow", "effect": "PreferNoSchedule"}])
    assert _check([_pod("one")], [_claim(["one"])], pool=pool) == []


def test_a_node_selector_must_hold_wherever_the_claim_comes_up() -> None:
    pod = _pod("one", nodeSelector={ZONE: "a"})
    assert _check([pod], [_claim(["one"], zone="a")]) == []
    assert _rules(_check([pod], [_claim(["one"], zone="b")])) == {"node-affinity"}
    undecided = _claim(["one"], requirements=[f"{CAPACITY_TYPE} In [on-demand]"])
    assert _rules(_check([pod], [undecided])) == {"node-affinity"}


def test_one_of_several_affinity_terms_is_enough() -> None:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]} for zone in ("x", "b")]
    pod = _pod("one", affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}})
    assert _check([pod], [_claim(["one"], zone="b")]) == []
    assert _rules(_check([pod], [_claim(["one"], zone="a")])) == {"node-affinity"}


def test_a_label_that_no_node_has_is_found() -> None:
    assert _rules(_check([_pod("one", nodeSelector={"team": "red"})], [_claim(["one"])])) == {"node-affinity"}


def test_two_pods_with_one_host_port_are_found() -> None:
    pods = [_pod("one", host_port=80), _pod("two", host_port=80)]
    assert _rules(_check(pods, [_claim(["one", "two"])])) == {"ports"}
    assert _check(pods, [_claim(["one"]), _claim(["two"])]) == []
    assert _rules(_check(pods[:1], [_claim(["one"])], daemonSetPods=[_pod("agent", host_port=80)])) == {"ports"}


def _spread(key: str, skew: int = 1, **more: Any) -> list[Json]:
    return [{"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule",
             "labelSelector": {"matchLabels": {"app": "web"}}, **more}]  # fmt: skip


def test_a_skew_over_zones_is_found() -> None:
    pods = [_pod(name, topologySpreadConstraints=_spread(ZONE)) for name in ("one", "two", "three")]
    assert _check(pods, [_claim(["one", "two"]), _claim(["three"], zone="b")]) == []
    assert _rules(_check(pods, [_claim(["one", "two"])])) == {"spread"}
    assert _rules(_check(pods, [_claim(["one", "two", "three"])])) == {"spread"}


def test_pods_that_run_count_for_the_skew() -> None:
    pod = _pod("one", topologySpreadConstraints=_spread(ZONE))
    node = _node("node", [_pod("there")], zone="a")
    assert _rules(_check([pod], [_claim(["one"], zone="a")], existingNodes=[node])) == {"spread"}
    assert _check([pod], [_claim(["one"], zone="b")], existingNodes=[node]) == []
    ended = _pod("there")
    ended["status"] = {"phase": "Succeeded"}
    assert _check([pod], [_claim(["one"], zone="a")], existingNodes=[_node("node", [ended])]) == []


def test_a_skew_that_was_there_before_is_not_the_plans() -> None:
    pod = _pod("one", topologySpreadConstraints=_spread(ZONE))
    nodes = [_node("node", [_pod("x"), _pod("y"), _pod("z")], zone="a")]
    assert _check([pod], [_claim(["one"], zone="b")], existingNodes=nodes) == []


def test_a_zone_that_is_not_settled_cannot_be_spread_over() -> None:
    pod = _pod("one", topologySpreadConstraints=_spread(ZONE))
    found = _check([pod], [_claim(["one"], requirements=[f"{CAPACITY_TYPE} In [on-demand]"])])
    assert "is not settled" in str(found[0])


def test_a_skew_over_hosts_is_found() -> None:
    pods = [_pod(name, topologySpreadConstraints=_spread(HOST)) for name in ("one", "two")]
    assert _rules(_check(pods, [_claim(["one", "two"])])) == {"spread"}
    assert _check(pods, [_claim(["one"]), _claim(["two"])]) == []


def test_too_few_domains_mean_that_the_least_is_nothing() -> None:
    pods = [_pod(name, topologySpreadConstraints=_spread(ZONE, minDomains=3)) for name in "wxyz"]
    claims = [_claim(["w", "x"]), _claim(["y", "z"], zone="b")]
    assert _rules(_check(pods, claims)) == {"spread"}


def test_a_preferred_spread_is_no_violation() -> None:
    wish = _spread(HOST)
    wish[0]["whenUnsatisfiable"] = "ScheduleAnyway"
    pods = [_pod(name, topologySpreadConstraints=wish) for name in ("one", "two")]
    assert _check(pods, [_claim(["one", "two"])]) == []


def _term(app: str, key: str = ZONE) -> list[Json]:
    return [{"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}]


def test_shunned_pods_together_are_found() -> None:
    shy = _pod("shy", app="shy", affinity={"podAntiAffinity": {REQUIRED: _term("web")}})
    assert _rules(_check([shy, _pod("one")], [_claim(["shy", "one"])])) == {"anti-affinity"}
    assert _rules(_check([shy, _pod("one")], [_claim(["shy"]), _claim(["one"])])) == {"anti-affinity"}
    assert _check([shy, _pod("one")], [_claim(["shy"]), _claim(["one"], zone="b")]) == []


def test_a_pod_that_runs_and_shuns_the_newcomer_is_found() -> None:
    shy = _pod("shy", app="shy", affinity={"podAntiAffinity": {REQUIRED: _term("web")}})
    node = _node("node", [shy], zone="a")
    assert _rules(_check([_pod("one")], [_claim(["one"], zone="a")], existingNodes=[node])) == {"anti-affinity"}
    assert _check([_pod("one")], [_claim(["one"], zone="b")], existingNodes=[node]) == []


def test_pods_that_shun_their_like_need_a_host_each() -> None:
    pods = [_pod(name, affinity={"podAntiAffinity": {REQUIRED: _term("web", HOST)}}) for name in ("one", "two")]
    assert _rules(_check(pods, [_claim(["one", "two"])])) == {"anti-affinity"}
    assert _check(pods, [_claim(["one"]), _claim(["two"])]) == []


def test_another_namespace_is_not_meant() -> None:
    shy = _pod("shy", app="shy", affinity={"podAntiAffinity": {REQUIRED: _term("web")}})
    stranger = _pod("there")
    stranger["metadata"]["namespace"] = "elsewhere"
    assert _check([shy], [_claim(["shy"])], existingNodes=[_node("node", [stranger])]) == []
    shy["spec"]["affinity"]["podAntiAffinity"][REQUIRED][0]["namespaceSelector"] = {}
    assert _rules(_check([shy], [_claim(["shy"])], existingNodes=[_node("node", [stranger])])) == {"anti-affinity"}


def test_a_pod_without_the_company_it_wants_is_found() -> None:
    fond = _pod("fond", app="fond", affinity={"podAffinity": {REQUIRED: _term("web")}})
    node = _node("node", [_pod("there")], zone="a")
    assert _check([fond], [_claim(["fond"], zone="a")], existingNodes=[node]) == []
    assert _rules(_check([fond], [_claim(["fond"], zone="b")], existingNodes=[node])) == {"affinity"}
    assert _rules(_check([fond], [_claim(["fond"])])) == {"affinity"}


def test_the_first_of_its_kind_may_be_alone_and_the_second_may_not() -> None:
    pods = [_pod(name, affinity={"podAffinity": {REQUIRED: _term("web")}}) for name in ("one", "two")]
    assert _check(pods[:1], [_claim(["one"])]) == []
    assert _check(pods, [_claim(["one"]), _claim(["two"])]) == []
    assert _rules(_check(pods, [_claim(["one"]), _claim(["two"], zone="b")])) == {"affinity"}


def test_one_who_cannot_go_where_the_others_are_may_start_anew() -> None:
    bound = _pod("one", affinity={"podAffinity": {REQUIRED: _term("web")}}, nodeSelector={ZONE: "b"})
    node = _node("node", [_pod("there")], zone="a")
    assert _check([bound], [_claim(["one"], zone="b")], existingNodes=[node]) == []


def test_a_machine_that_is_not_offered_is_found() -> None:
    assert _rules(_check([_pod("one")], [_claim(["one"], zone="z")])) >= {"offering"}
    assert _rules(_check([_pod("one")], [_claim(["one"], instanceType="small")])) == {"offering"}
    assert _rules(_check([_pod("one")], [_claim(["one"], price=0.2)])) == {"offering"}
    assert _rules(_check([_pod("one")], [_claim(["one"], nodePool="other")])) == {"offering"}


def test_a_machine_that_the_pool_excludes_is_found() -> None:
    pool = _pool(requirements=[{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["small"]}])
    assert _rules(_check([_pod("one")], [_claim(["one"])], pool=pool)) == {"offering"}


def test_a_dearer_machine_than_needed_is_found() -> None:
    dear = _claim(["one"], types=("large", "small"))
    assert _rules(_check([_pod("one")], [dear])) == {"price"}


def test_limits_are_kept() -> None:
    pods = [_pod("one"), _pod("two")]
    claims = [_claim(["one"]), _claim(["two"])]
    assert _check(pods, claims, pool=_pool(limits={"cpu": "16"})) == []
    assert _rules(_check(pods, claims, pool=_pool(limits={"cpu": "15"}))) == {"limits"}
    assert _rules(_check(pods, claims, pool=_pool(limits={"cpu": "16"}), existingNodes=[_node("node")])) == {"limits"}
    assert _rules(_check(pods, claims, pool=_pool(limits={"nodes": "1"}), existingNodes=[_node("node")])) == {"limits"}


def test_a_claim_counts_as_large_as_it_may_become() -> None:
    claims = [_claim(["one"], types=("small", "large"))]
    assert _rules(_check([_pod("one")], claims, pool=_pool(limits={"cpu": "4"}))) == {"limits"}


def test_too_few_values_to_choose_from_are_found() -> None:
    wish = {"key": "node.kubernetes.io/instance-type", "operator": "Exists", "minValues": 2}
    pool = _pool(requirements=[wish])
    assert _rules(_check([_pod("one")], [_claim(["one"])], pool=pool)) == {"min-values"}
    assert _check([_pod("one")], [_claim(["one"], types=("small", "large"))], pool=pool) == []
    untold = _claim(["one"], numInstanceTypeOptions=7)
    assert _check([_pod("one")], [untold], pool=pool) == [], "not all of them are listed"


def test_a_pod_in_two_places_is_found() -> None:
    assert _rules(_check([_pod("one")], [_claim(["one"]), _claim(["one"])])) == {"pods"}


def test_a_pod_with_a_place_and_an_error_is_found() -> None:
    given = {"nodePools": [_pool()], "pods": [_pod("one")]}
    answer = {"newNodeClaims": [_claim(["one"])], "podErrors": {"default/one": "no"}}
    assert _rules(check_answer(given, answer, CATALOG)) == {"pods"}


def test_a_node_that_is_going_takes_no_pods() -> None:
    node = _node("node")
    node["node"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert _rules(_check([_pod("one")], [], existing={"node": ["one"]}, existingNodes=[node])) == {"pods"}


def _with_storage(zone: str, storage: Storage, **place: Any) -> list[Violation]:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    pods, nodes = [_pod("one", volumes=volumes)], [_node("node", zone=zone)]
    problem = {"nodePools": [_pool()], "pods": pods, "existingNodes": nodes}
    world = world_of_answer(problem, {"existingNodes": {"node": ["default/one"]}}, CATALOG)
    changed = Place(**{**world.places[0].__dict__, **place})
    return check_world(World(**{**world.__dict__, "places": (changed,), "storage": storage}))


def _volume_claim(**spec: Any) -> dict[tuple[str, str], Json]:
    return {("default", "data"): {"metadata": {"name": "data", "namespace": "default"}, "spec": spec}}


def test_a_volume_that_is_elsewhere_is_found() -> None:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}
    volume = {"spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}}
    storage = Storage(_volume_claim(volumeName="disk"), {"disk": volume})
    assert _with_storage("a", storage) == []
    assert _rules(_with_storage("b", storage)) == {"volumes"}


def test_a_volume_that_cannot_be_made_here_is_found() -> None:
    topology = {"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}
    storage = Storage(_volume_claim(storageClassName="fast"), {}, {"fast": {"allowedTopologies": [topology]}})
    assert _with_storage("a", storage) == []
    assert _rules(_with_storage("b", storage)) == {"volumes"}


def test_more_volumes_than_can_be_attached_are_found() -> None:
    storage = Storage(_volume_claim(storageClassName="fast"), {}, {"fast": {"provisioner": "csi.example"}})
    assert _with_storage("a", storage, attach_limits={"csi.example": 1}) == []
    assert _rules(_with_storage("a", storage, attach_limits={"csi.example": 0})) == {"volumes"}


def test_a_reservation_that_is_used_twice_is_found() -> None:
    labels = {ZONE: Values.of("a"), CAPACITY_TYPE: Values.of("reserved")}
    deal = Deal(labels, 0.0, {"cpu": 4000, "memory": 2**40, "pods": 10_000}, reservation="r", reservation_capacity=1)
    kind = Kind("small", labels, {"cpu": 4000}, (deal,))
    pool = Pool("default", {}, kinds=(kind,))

    def claim(name: str) -> Place:
        return Place(name, "default", True, labels, (), options=(kind,))

    assert check_world(World((claim("x"),), {"default": pool}, ())) == []
    assert _rules(check_world(World((claim("x"), claim("y")), {"default": pool}, ()))) == {"reservation"}


@pytest.mark.parametrize(
    ("operator", "values", "label", "expected"),
    [
        ("In", ["a", "b"], Values.of("a"), True),
        ("In", ["a"], Values.of("a", "b"), False),
        ("In", ["a"], None, False),
        ("In", ["a"], Values(frozenset(), True), False),
        ("NotIn", ["a"], None, True),
        ("NotIn", ["a"], Values.of("b"), True),
        ("NotIn", ["a"], Values.of("a", "b"), False),
        ("NotIn", ["a"], Values(frozenset({"a"}), True), True),
        ("NotIn", ["a"], Values(frozenset(), True), False),
        ("Exists", [], Values.of("a"), True),
        ("Exists", [], None, False),
        ("DoesNotExist", [], None, True),
        ("DoesNotExist", [], Values(frozenset()), True),
        ("DoesNotExist", [], Values.of("a"), False),
        ("Gt", ["4"], Values.of("5"), True),
        ("Gt", ["4"], Values.of("4"), False),
        ("Lt", ["4"], Values.of("3", "x"), False),
        ("Gte", ["4"], Values(frozenset(), True, 4, None), True),
        ("Lte", ["4"], Values(frozenset(), True, 4, None), False),
    ],
)  # fmt: skip
def test_an_expression_holds_only_if_it_holds_for_every_value(
    operator: str, values: list[str], label: Values | None, expected: bool
) -> None:
    assert accepts({"key": "k", "operator": operator, "values": values}, label) is expected


def test_requirements_on_one_key_are_met_together() -> None:
    found = values_by_key([
        {"key": "cpu", "operator": "Gt", "values": ["2"]},
        {"key": "cpu", "operator": "In", "values": ["2", "3", "9"]},
        {"key": "cpu", "operator": "Lte", "values": ["8"]},
        {"key": "beta.kubernetes.io/arch", "operator": "NotIn", "values": ["arm64"]},
    ])  # fmt: skip
    assert found == {"cpu": Values.of("3"), "kubernetes.io/arch": Values(frozenset({"arm64"}), True)}
