from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.errors import ApiError, Cause
from holokube.kube.patch import PatchError, PatchTypeError
from holokube.kube.patch.apply import LAST_APPLIED, ApplyConflict, apply
from holokube.kube.patch.fieldset import FieldSet
from holokube.kube.patch.managed_fields import field_set, record_update
from holokube.kube.schema import Schema

from .schemas import DEPLOYMENT, POD, SERVICE, STR, WIDGET, deployment, mapping, obj, pod
from .test_managed_fields import PODS, entries, fields_of, widget

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CONTAINERS = {"f:labels", "f:finalizers", "f:containers", "f:env", "f:resources"}


def run(
    live: dict[str, Any] | None,
    config: dict[str, Any],
    manager: str = "me",
    *,
    force: bool = False,
    at_s: int = 0,
    schema: Schema = DEPLOYMENT,
    **rest: Any,
) -> dict[str, Any]:
    """One apply; the object gets a uid as a stored one has."""
    before = copy.deepcopy((live, config))
    now = NOW + timedelta(seconds=at_s)
    out = apply(live, config, manager, config["apiVersion"], force=force, now=now, schema=schema, **rest)
    assert (live, config) == before
    return out if out is live else {**out, "metadata": {**out["metadata"], "uid": "u-1"}}


def update(
    live: dict[str, Any] | None, new: dict[str, Any], manager: str, schema: Schema = DEPLOYMENT, **rest: Any
) -> dict[str, Any]:
    out = record_update(live, new, manager, new["apiVersion"], now=NOW, schema=schema, **rest)
    return {**out, "metadata": {**out["metadata"], "uid": "u-1"}}


def containers(*items: dict[str, Any]) -> dict[str, Any]:
    return {"spec": {"containers": list(items)}}


def test_apply_creates_an_object() -> None:
    created = run(None, deployment(replicas=2, selector={"matchLabels": {"a": "b"}}))
    assert created["spec"] == {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}}
    assert entries(created) == [{
        "manager": "me", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}, "f:selector": {}}},
    }]  # fmt: skip


def test_applying_the_same_again_changes_nothing_at_all() -> None:
    config = deployment(replicas=2, template=containers({"name": "a", "ports": [{"containerPort": 80}]}))
    live = run(None, config)
    live = {**live, "status": {"replicas": 2}}
    assert run(live, config, at_s=60) is live


def test_a_field_that_is_no_longer_applied_goes() -> None:
    live = run(None, deployment(replicas=2, paused=True))
    out = run(live, deployment(replicas=2), at_s=5)
    assert out["spec"] == {"replicas": 2}
    assert entries(out)[0]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    assert entries(out)[0]["time"] == "2026-01-01T00:00:05Z"


def test_a_field_that_another_manager_also_owns_stays() -> None:
    live = run(None, deployment(replicas=2, paused=True), "one")
    live = run(live, deployment(replicas=2), "two")
    out = run(live, deployment(paused=True), "one")
    assert out["spec"] == {"replicas": 2, "paused": True}
    assert fields_of(out, "one") == {"f:spec": {"f:paused": {}}}


def test_a_co_owner_of_unchanged_values_has_no_time() -> None:
    live = run(None, deployment(replicas=2), "one")
    out = run(live, deployment(replicas=2), "two", at_s=9)
    assert [(entry["manager"], entry.get("time")) for entry in entries(out)] == [
        ("two", None), ("one", "2026-01-01T00:00:00Z"),
    ]  # fmt: skip


def test_fields_nobody_applied_are_left_alone() -> None:
    live = run(None, deployment(replicas=2, strategy={"type": "Recreate"}))
    defaulted = {**live, "spec": {**live["spec"], "paused": False, "strategy": {
        "type": "Recreate", "rollingUpdate": {"maxSurge": 1},
    }}}  # fmt: skip
    out = run(defaulted, deployment(strategy={"type": "Recreate"}))
    assert out["spec"] == {"paused": False, "strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}


def test_a_change_of_somebody_elses_field_is_a_conflict() -> None:
    live = update(None, deployment(replicas=2), "kubectl-client-side-apply")
    with pytest.raises(ApplyConflict) as caught:
        run(live, deployment(replicas=3))
    error = caught.value
    assert error.message == (
        'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas'
    )
    assert isinstance(error, ApiError)
    assert error.to_status()["code"] == 409
    assert error.to_status()["reason"] == "Conflict"
    assert error.causes == [Cause(
        "FieldManagerConflict", 'conflict with "kubectl-client-side-apply" using apps/v1', ".spec.replicas"
    )]  # fmt: skip


def test_several_conflicts_are_listed_by_manager() -> None:
    live = run(None, deployment(paused=True, template=containers({"name": "x", "image": "a"})), "first")
    live = update(live, {**live, "spec": {**live["spec"], "replicas": 2}}, "scaler", subresource="scale")
    config = deployment(replicas=3, paused=False, template=containers({"name": "x", "image": "b"}))
    with pytest.raises(ApplyConflict) as caught:
        run(live, config)
    assert caught.value.message == (
        'Apply failed with 3 conflicts: conflicts with "first":\n'
        "- .spec.paused\n"
        '- .spec.template.spec.containers[name="x"].image\n'
        'conflicts with "scaler" with subresource "scale" using apps/v1:\n'
        "- .spec.replicas"
    )
    assert [conflict.field for conflict in caught.value.conflicts] == [
        ".spec.paused", '.spec.template.spec.containers[name="x"].image', ".spec.replicas"
    ]  # fmt: skip


def test_force_takes_the_fields() -> None:
    live = update(None, deployment(replicas=2, paused=True), "other")
    out = run(live, deployment(replicas=3), force=True)
    assert out["spec"] == {"replicas": 3, "paused": True}
    assert fields_of(out, "other") == {"f:spec": {"f:paused": {}}}
    assert fields_of(out, "me") == {"f:spec": {"f:replicas": {}}}


def test_equal_values_are_no_conflict() -> None:
    live = update(None, deployment(replicas=2), "other")
    assert len(entries(run(live, deployment(replicas=2)))) == 2


def test_updates_and_applies_of_one_name_are_different_managers() -> None:
    live = update(None, deployment(replicas=2), "me")
    with pytest.raises(ApplyConflict):
        run(live, deployment(replicas=3), "me")


def test_list_items_are_merged_by_all_their_keys() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "dns"}}
    live = run(
        None, {**service, "spec": {"ports": [{"port": 53, "protocol": "UDP"}]}}, "one", schema=SERVICE
    )
    out = run(live, {**service, "spec": {"ports": [{"port": 53, "name": "tcp"}]}}, "two", schema=SERVICE)
    assert out["spec"]["ports"] == [{"port": 53, "protocol": "UDP"}, {"port": 53, "name": "tcp"}]
    gone = run(out, {**service, "spec": {}}, "one", schema=SERVICE)
    assert gone["spec"]["ports"] == [{"port": 53, "name": "tcp"}]


def test_an_item_goes_with_its_last_owner_but_stays_for_others() -> None:
    live = run(None, deployment(template=containers({"name": "a"}, {"name": "b", "image": "x"})), "one")
    live = run(live, deployment(template=containers({"name": "b", "tty": True})), "two")
    out = run(live, deployment(template=containers({"name": "a"})), "one")
    assert out["spec"]["template"]["spec"]["containers"] == [{"name": "a"}, {"name": "b", "tty": True}]
    out = run(out, deployment(), "two")
    assert out["spec"]["template"]["spec"]["containers"] == [{"name": "a"}]


@pytest.mark.parametrize(
    ("live", "applied", "expected"),
    [
        ("abc", "c", "abc"), ("abc", "d", "abcd"), ("abc", "cba", "cba"), ("abc", "ca", "bca"),
        ("abc", "xbx2"[:2], "axbc"), ("ab", "ba", "ba"), ("", "ba", "ba"), ("abcd", "db", "acdb"),
        ("abc", "xa", "xabc"),
    ],
)  # fmt: skip
def test_applied_items_come_in_applied_order_and_live_ones_keep_their_place(
    live: str, applied: str, expected: str
) -> None:
    def spec(names: str) -> dict[str, Any]:
        return deployment(template=containers(*({"name": name} for name in names)))

    out = run(update(None, spec(live), "other"), spec(applied))
    names = [item["name"] for item in out["spec"]["template"]["spec"]["containers"]]
    assert "".join(names) == expected


def test_sets_are_merged_and_pruned_value_by_value() -> None:
    live = update(None, pod(metadata={"finalizers": ["live", "shared"]}), "other", POD)
    out = run(live, pod(metadata={"finalizers": ["mine", "shared"]}), schema=POD)
    assert out["metadata"]["finalizers"] == ["live", "mine", "shared"]
    out = run(out, pod(), schema=POD)
    assert out["metadata"]["finalizers"] == ["live", "shared"]


def test_atomic_values_are_replaced_as_a_whole() -> None:
    live = run(None, pod(spec={"nodeSelector": {"a": "1"}, "tolerations": [{"key": "a"}]}), schema=POD)
    out = run(live, pod(spec={"nodeSelector": {"b": "1"}, "tolerations": [{"key": "b"}]}), schema=POD)
    assert out["spec"]["nodeSelector"] == {"b": "1"}
    assert out["spec"]["tolerations"] == [{"key": "b"}]
    with pytest.raises(ApplyConflict, match=r"2 conflicts"):
        run(out, pod(spec={"nodeSelector": {}, "tolerations": []}), "other", schema=POD)


def test_the_last_label_takes_the_labels_along_unless_they_are_owned() -> None:
    config = pod(metadata={"labels": {"a": "1"}})
    live = run(None, config, schema=POD)
    assert "labels" not in run(live, pod(), schema=POD)["metadata"]
    live = update(None, config, "other", POD)
    live = update(live, {**live, "metadata": {**live["metadata"], "labels": {"a": "2"}}}, "third", POD)
    live = run(live, pod(metadata={"labels": {"a": "3"}}), force=True, schema=POD)
    out = run(live, pod(), schema=POD)
    assert "labels" not in out["metadata"]
    assert fields_of(out, "other")["f:metadata"] == {"f:labels": {}}


def test_objects_that_were_never_tracked_get_a_first_owner() -> None:
    live = deployment(replicas=2)
    live["metadata"]["uid"] = "u-1"
    with pytest.raises(ApplyConflict, match=r'conflict with "before-first-apply" using apps/v1: \.spec\.replicas'):
        run(live, deployment(replicas=3))
    out = run(live, deployment(paused=True))
    assert fields_of(out, "before-first-apply") == {"f:spec": {"f:replicas": {}}}
    assert entries(out)[1]["operation"] == "Update"


def test_fields_the_endpoint_does_not_store_are_not_owned() -> None:
    config = {**deployment(replicas=1), "status": {"replicas": 5}}
    out = run(None, config, ignore=FieldSet.of_fields("status"))
    assert entries(out)[0]["fieldsV1"] == {"f:spec": {"f:replicas": {}}}
    out = run(None, config, subresource="status", ignore=FieldSet.of_fields("spec"))
    assert entries(out)[0]["fieldsV1"] == {"f:status": {"f:replicas": {}}}
    assert entries(out)[0]["subresource"] == "status"


def test_a_type_that_became_atomic_is_owned_as_one_piece() -> None:
    def widgets(*, is_atomic: bool) -> Schema:
        return obj(apiVersion=STR, kind=STR, metadata=mapping(STR), spec=obj(box=mapping(STR, atomic=is_atomic)))

    config = {"apiVersion": "lab/v1", "kind": "W", "spec": {"box": {"a": "1"}}}
    live = run(None, config, "one", schema=widgets(is_atomic=False))
    assert fields_of(live, "one") == {"f:spec": {"f:box": {"f:a": {}}}}
    out = run(live, config, "two", schema=widgets(is_atomic=True))
    assert fields_of(out, "one") == {"f:spec": {"f:box": {}}}


def test_custom_resources_merge_untyped_objects_and_replace_untyped_lists() -> None:
    live = run(None, widget(free={"a": {"x": 1}, "l": [1]}), "one", schema=WIDGET)
    out = run(live, widget(free={"a": {"y": 2}, "l": [2]}), "two", force=True, schema=WIDGET)
    assert out["spec"]["free"] == {"a": {"x": 1, "y": 2}, "l": [2]}
    out = run(out, widget(), "one", schema=WIDGET)
    assert out["spec"]["free"] == {"a": {"y": 2}, "l": [2]}


def test_true_is_applied_over_one() -> None:
    live = run(None, widget(free={"a": 1}), schema=WIDGET)
    assert run(live, widget(free={"a": True}), schema=WIDGET)["spec"]["free"]["a"] is True


@pytest.mark.parametrize("managed", [[], [{}]])
def test_a_configuration_may_not_hold_managed_fields(managed: list[Any]) -> None:
    config = deployment(replicas=1)
    config["metadata"]["managedFields"] = managed
    with pytest.raises(PatchError, match=r"metadata\.managedFields must be nil") as caught:
        run(None, config)
    assert caught.value.code == 400


def test_a_configuration_must_have_the_version_of_the_endpoint() -> None:
    with pytest.raises(PatchError, match=r"Specified patch version: apps/v1, expected: apps/v2"):
        apply(None, deployment(), "me", "apps/v2", force=False, now=NOW, schema=DEPLOYMENT)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"replica": 1}, ".spec.replica: field not declared in schema"),
        ({"replicas": "1"}, ".spec.replicas: expected numeric (int or float), got string"),
        ({"paused": "yes"}, ".spec.paused: expected boolean, got &{yes}"),
        ({"strategy": {"type": 1}},
         ".spec.strategy.type: expected string, got &value.valueUnstructured{Value:1}"),
        ({"strategy": []}, ".spec.strategy: expected map, got &{[]}"),
        ({"template": {"spec": {"containers": {}}}}, ".spec.template.spec.containers: expected list, got &{map[]}"),
        ({"template": containers({"name": "a"}, {"name": "a"})},
         '.spec.template.spec.containers: duplicate entries for key [name="a"]'),
        ({"template": containers({"image": "a"})},
         ".spec.template.spec.containers: element 0: associative list with keys has an element that omits all"),
        ({"template": containers({"name": "a", "ports": [{"containerPort": "x"}]})},
         '.spec.template.spec.containers[name="a"].ports[containerPort="x",protocol="TCP"].containerPort: expect'),
    ],
)  # fmt: skip
def test_a_configuration_must_fit_its_type(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(PatchTypeError) as caught:
        run(None, deployment(**spec))
    prefix = "failed to create typed patch object (default/web; apps/v1, Kind=Deployment): "
    assert str(caught.value).startswith(prefix + message)
    assert caught.value.code == 500


def test_several_type_errors_are_listed() -> None:
    with pytest.raises(PatchTypeError, match=r"errors:\n  \.spec\.a: field not declared in schema\n  \.spec\.b: "):
        run(None, deployment(a=1, b=2))


def last_applied(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration as client-side apply would have written it."""
    metadata = {**config["metadata"], "annotations": {LAST_APPLIED: json.dumps(config)}}
    return {**config, "metadata": metadata}


def test_kubectl_takes_over_what_client_side_apply_set() -> None:
    live = update(None, last_applied(deployment(replicas=2)), "kubectl-client-side-apply")
    with pytest.raises(ApplyConflict):
        run(live, deployment(replicas=3), "somebody")
    out = run(live, deployment(replicas=3), "kubectl")
    assert out["spec"]["replicas"] == 3
    assert json.loads(out["metadata"]["annotations"][LAST_APPLIED]) == deployment(replicas=3)
    assert out["metadata"]["annotations"][LAST_APPLIED].endswith("\n")


def test_kubectl_does_not_take_what_changed_after_client_side_apply() -> None:
    live = update(None, last_applied(deployment(replicas=2, paused=True)), "kubectl-client-side-apply")
    live = update(live, {**live, "spec": {**live["spec"], "replicas": 5}}, "scaler")
    with pytest.raises(ApplyConflict) as caught:
        run(live, deployment(replicas=3, paused=False), "kubectl")
    assert [conflict.field for conflict in caught.value.conflicts] == [".spec.replicas"]


@given(
    steps=st.lists(
        st.tuples(PODS, st.sampled_from(["one", "two"]), st.booleans()), min_size=1, max_size=5
    )
)
@settings(deadline=None)
def test_apply_keeps_its_promises_whatever_happens(steps: list[tuple[dict[str, Any], str, bool]]) -> None:
    live: dict[str, Any] | None = None
    for config, manager, is_apply in steps:
        if not is_apply:
            sent = {**config, "metadata": {**config["metadata"], **({"uid": "u-1"} if live else {})}}
            live = update(live, sent, f"updater-{manager}", POD)
            continue
        try:
            out = run(live, config, manager, schema=POD)
        except ApplyConflict:
            out = run(live, config, manager, force=True, schema=POD)
        # The result holds what was applied, the applier owns just that, and applying again is nothing.
        wanted = field_set(config, POD)
        assert not wanted - field_set(out, POD)
        mine = FieldSet(fields_of(out, manager))
        assert mine == wanted - FieldSet.of_fields("apiVersion", "kind", "metadata.name", "metadata.namespace")
        assert run(out, config, manager, schema=POD) is out
        # Whoever owns a field owns one that is there; only containers may have run empty.
        for entry in entries(out):
            for path in FieldSet(entry["fieldsV1"]).leaves().paths():
                assert path[-1] in CONTAINERS or _is_there(out, path), path
        live = out


def _is_there(value: Any, path: tuple[str, ...]) -> bool:
    for step in path:
        kind, rest = step[0], step[2:]
        if kind == "f":
            if not isinstance(value, dict) or rest not in value:
                return False
            value = value[rest]
        elif kind == "v":
            return json.loads(rest) in value
        else:
            keys = json.loads(rest)
            found = [item for item in value if all(item.get(key) == wanted for key, wanted in keys.items())]
            if not found:
                return False
            value = found[0]
    return True
