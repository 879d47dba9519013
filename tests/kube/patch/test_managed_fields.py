from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.patch.fieldset import FieldSet
from holokube.kube.patch.managed_fields import field_set, record_update, without_time_changes
from holokube.kube.schema import Schema

from .schemas import DEPLOYMENT, POD, SERVICE, WIDGET, deployment, pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STATUS = FieldSet.of_fields("status")
ALL_BUT_STATUS = FieldSet.of_fields("spec", "metadata.deletionTimestamp", "metadata.ownerReferences")


def write(
    live: dict[str, Any] | None,
    new: dict[str, Any],
    manager: str = "kubectl-edit",
    *,
    at_s: int = 0,
    schema: Schema = POD,
    **rest: Any,
) -> dict[str, Any]:
    """One update; the object gets a uid as a stored one has."""
    before = copy.deepcopy((live, new))
    now = NOW + timedelta(seconds=at_s)
    out = record_update(live, new, manager, new["apiVersion"], now=now, schema=schema, **rest)
    assert (live, new) == before
    return {**out, "metadata": {**out["metadata"], "uid": "u-1"}}


def entries(obj: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = obj["metadata"].get("managedFields", [])
    return found


def fields_of(obj: dict[str, Any], manager: str) -> Any:
    found = [entry["fieldsV1"] for entry in entries(obj) if entry["manager"] == manager]
    assert len(found) == 1, f"{manager} has {len(found)} entries"
    return found[0]


def changed(obj: dict[str, Any], **parts: dict[str, Any]) -> dict[str, Any]:
    """The object with its top-level parts updated one level deep."""
    return {**obj, **{key: {**obj.get(key, {}), **value} for key, value in parts.items()}}


def test_create_owns_what_was_sent_in_upstreams_form() -> None:
    created = write(None, pod(
        metadata={"labels": {"b": "2", "a": "1"}, "finalizers": ["f"], "uid": "u-1", "generation": 1},
        spec={"containers": [{
            "name": "app", "image": "nginx", "args": ["x"],
            "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
            "resources": {"requests": {"cpu": "1"}},
        }], "tolerations": [{"key": "x"}], "nodeSelector": {"a": "b"}},
        status={"phase": "Pending"},
    ), "kubectl-create", ignore=STATUS)  # fmt: skip
    assert entries(created) == [{
        "manager": "kubectl-create", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:metadata": {
                "f:finalizers": {".": {}, 'v:"f"': {}},
                "f:labels": {".": {}, "f:a": {}, "f:b": {}},
            },
            "f:spec": {
                "f:containers": {'k:{"name":"app"}': {
                    ".": {}, "f:args": {}, "f:image": {}, "f:name": {},
                    "f:ports": {
                        ".": {},
                        'k:{"containerPort":53,"protocol":"UDP"}': {
                            ".": {}, "f:containerPort": {}, "f:protocol": {}
                        },
                        'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}},
                    },
                    "f:resources": {".": {}, "f:requests": {".": {}, "f:cpu": {}}},
                }},
                "f:nodeSelector": {},
                "f:tolerations": {},
            },
        },
    }]  # fmt: skip
    assert list(entries(created)[0]) == [
        "manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"
    ]  # fmt: skip
    assert list(entries(created)[0]["fieldsV1"]["f:metadata"]["f:labels"]) == [".", "f:a", "f:b"]


def test_structs_that_are_always_there_are_not_owned_but_their_empty_copies_in_new_items_are() -> None:
    created = write(None, deployment(replicas=1, template={"spec": {"containers": [{"name": "a"}]}}), schema=DEPLOYMENT)
    assert entries(created)[0]["fieldsV1"] == {"f:spec": {
        "f:replicas": {},
        "f:template": {"f:spec": {
            "f:containers": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:resources": {}}},
        }},
    }}  # fmt: skip


def test_containers_of_custom_resources_are_owned() -> None:
    widget = {
        "apiVersion": "lab/v1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"size": 1, "parts": ["a"], "free": {"x": {"y": [1]}, "z": None}, "unknown": {"q": 1}},
    }  # fmt: skip
    assert entries(write(None, widget, schema=WIDGET))[0]["fieldsV1"] == {"f:spec": {
        ".": {}, "f:free": {".": {}, "f:x": {".": {}, "f:y": {}}, "f:z": {}},
        "f:parts": {}, "f:size": {}, "f:unknown": {".": {}, "f:q": {}},
    }}  # fmt: skip


def test_objects_without_a_schema_are_owned_field_by_field() -> None:
    out = write(None, {"apiVersion": "x/v1", "kind": "X", "a": {"b": [1]}}, schema=Schema(WIDGET.shape))
    assert entries(out)[0]["fieldsV1"] == {"f:a": {".": {}, "f:b": {}}}


def test_a_changed_field_goes_over_to_the_writer() -> None:
    live = write(None, pod(spec={"nodeName": "n", "restartPolicy": "Never"}), "one")
    out = write(live, changed(live, spec={"nodeName": "m"}), "two", at_s=1)
    assert fields_of(out, "two") == {"f:spec": {"f:nodeName": {}}}
    assert "f:nodeName" not in fields_of(out, "one")["f:spec"]
    assert "f:restartPolicy" in fields_of(out, "one")["f:spec"]
    assert [entry["time"] for entry in entries(out)] == ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"]


def test_a_removed_field_is_taken_from_everybody() -> None:
    live = write(None, pod(metadata={"labels": {"a": "1", "b": "2"}}), "one")
    gone = {**live, "metadata": {**live["metadata"], "labels": {"b": "2"}}}
    out = write(live, gone, "two")
    assert fields_of(out, "one")["f:metadata"] == {"f:labels": {".": {}, "f:b": {}}}
    assert [entry["manager"] for entry in entries(out)] == ["one"]


def test_a_manager_that_owns_nothing_disappears() -> None:
    live = write(None, pod(), "one")
    live = write(live, changed(live, spec={"nodeName": "n"}), "two")
    out = write(live, changed(live, spec={"nodeName": "m"}), "three")
    assert [entry["manager"] for entry in entries(out)] == ["one", "three"]


def test_a_write_that_changes_nothing_moves_no_time() -> None:
    live = write(None, pod(), "one")
    again = write(live, copy.deepcopy(live), "two", at_s=60)
    assert again == live
    assert entries(again)[0] is entries(live)[0] or entries(again) == entries(live)


def test_the_same_manager_keeps_one_entry_and_gets_a_new_time() -> None:
    live = write(None, pod(spec={"nodeName": "n"}), "one")
    out = write(live, changed(live, spec={"nodeName": "m", "hostNetwork": True}), "one", at_s=5)
    assert len(entries(out)) == 1
    assert entries(out)[0]["time"] == "2026-01-01T00:00:05Z"
    assert set(entries(out)[0]["fieldsV1"]["f:spec"]) == {"f:containers", "f:hostNetwork", "f:nodeName"}


def test_subresources_and_versions_have_entries_of_their_own() -> None:
    live = write(None, pod(), "one")
    out = write(
        live, changed(live, status={"phase": "Running"}, spec={"nodeName": "sneaky"}), "one",
        subresource="status", ignore=ALL_BUT_STATUS,
    )  # fmt: skip
    assert [entry.get("subresource") for entry in entries(out)] == [None, "status"]
    assert entries(out)[1]["fieldsV1"] == {"f:status": {"f:phase": {}}}
    assert list(entries(out)[1])[-1] == "subresource"


def test_conditions_are_owned_one_by_one() -> None:
    conditions = [{"type": "Ready", "status": "False"}, {"type": "Initialized", "status": "True"}]
    live = write(None, pod(status={"conditions": conditions}), "kubelet")
    ready = [{"type": "Ready", "status": "True"}, conditions[1], {"type": "Mine", "status": "True"}]
    out = write(live, changed(live, status={"conditions": ready}), "other")
    assert fields_of(out, "other") == {"f:status": {"f:conditions": {
        'k:{"type":"Mine"}': {".": {}, "f:status": {}, "f:type": {}},
        'k:{"type":"Ready"}': {"f:status": {}},
    }}}  # fmt: skip
    kept = fields_of(out, "kubelet")["f:status"]["f:conditions"]
    assert kept['k:{"type":"Ready"}'] == {".": {}, "f:type": {}}


def test_a_status_that_appears_does_not_make_its_writer_own_the_status() -> None:
    live = write(None, pod(), "one")
    out = write(live, {**live, "status": {"phase": "Running"}}, "kubelet", subresource="status")
    assert fields_of(out, "kubelet") == {"f:status": {"f:phase": {}}}


def test_items_that_share_a_key_are_owned_as_one_piece() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    live = write(None, pod(spec={"containers": [{"name": "a", "env": env}]}), "one")
    key = 'k:{"name":"a"}'
    assert fields_of(live, "one")["f:spec"]["f:containers"][key]["f:env"] == {".": {}, 'k:{"name":"A"}': {}}
    single = pod(metadata=live["metadata"], spec={"containers": [{"name": "a", "env": env[:1]}]})
    out = write(live, single, "two")
    assert fields_of(out, "two")["f:spec"]["f:containers"][key]["f:env"] == {
        'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}
    }


def test_an_object_that_breaks_its_list_type_loses_its_managed_fields() -> None:
    live = write(None, pod(), "one")
    assert entries(write(live, changed(live, spec={"containers": [{"image": "x"}]}), "two")) == []


@pytest.mark.parametrize("reset", [[], [{}]])
def test_a_reset_ends_the_tracking(reset: list[Any]) -> None:
    live = write(None, pod(), "one")
    out = write(live, changed(live, metadata={"managedFields": reset}), "two")
    assert "managedFields" not in out["metadata"]
    later = write(out, changed(out, spec={"nodeName": "n"}), "three")
    assert "managedFields" not in later["metadata"]


def test_missing_managed_fields_in_a_request_mean_the_live_ones() -> None:
    live = write(None, pod(), "one")
    sent = pod(metadata={"uid": "u-1"}, spec={"nodeName": "n"})
    assert [entry["manager"] for entry in entries(write(live, sent, "two"))] == ["one", "two"]


def test_a_request_may_set_managed_fields_itself_but_not_through_a_subresource() -> None:
    live = write(None, pod(), "one")
    mine = [{
        "manager": "me", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "time": "2026-01-01T02:00:00+02:00", "fieldsV1": {"f:spec": {"f:nodeName": {".": {}}}},
    }]  # fmt: skip
    sent = changed(live, metadata={"managedFields": mine})
    out = write(live, sent, "two")
    assert entries(out) == [{**mine[0], "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:nodeName": {}}}}]
    assert entries(write(live, sent, "two", subresource="status")) == entries(live)


@pytest.mark.parametrize(
    "broken",
    [
        {"operation": "Frob"}, {"apiVersion": ""}, {"fieldsType": "V2"}, {"fieldsType": ""},
        {"fieldsV1": {"zzz": {}}}, {"fieldsV1": []}, {"time": "yesterday"},
    ],
)  # fmt: skip
def test_managed_fields_that_cannot_be_read_are_ignored(broken: dict[str, Any]) -> None:
    live = write(None, pod(), "one")
    entry = {**entries(live)[0], "manager": "me", "fieldsV1": {"f:spec": {}}, **broken}
    if broken == {"fieldsV1": []}:
        entry["fieldsV1"] = [1]
    assert entries(write(live, changed(live, metadata={"managedFields": [entry]}), "two")) == entries(live)


def test_a_nameless_manager_is_unknown() -> None:
    assert entries(write(None, pod(), ""))[0]["manager"] == "unknown"


def test_more_than_ten_updaters_become_ancient_changes() -> None:
    live = write(None, pod(), "m00")
    for number in range(1, 13):
        labels = {**live["metadata"].get("labels", {}), f"l{number:02}": "x"}
        live = write(live, changed(live, metadata={"labels": labels}), f"m{number:02}", at_s=number)
    managers = [entry["manager"] for entry in entries(live)]
    assert managers == ["ancient-changes", *(f"m{number:02}" for number in range(4, 13))]
    ancient = entries(live)[0]
    assert ancient["time"] == "2026-01-01T00:00:03Z"
    assert ancient["fieldsV1"]["f:metadata"]["f:labels"] == {".": {}, "f:l01": {}, "f:l02": {}, "f:l03": {}}
    assert "f:spec" in ancient["fieldsV1"]


def test_an_applied_configuration_claims_fields_but_not_their_structs() -> None:
    config = pod(
        metadata={"labels": {"a": "1"}, "annotations": {}},
        spec={"containers": [{"name": "a", "ports": [{"containerPort": 80}], "env": []}], "volumes": None},
    )
    assert field_set(config, POD).to_json() == {
        "f:apiVersion": {}, "f:kind": {},
        "f:metadata": {"f:annotations": {}, "f:labels": {"f:a": {}}, "f:name": {}, "f:namespace": {}},
        "f:spec": {
            "f:containers": {'k:{"name":"a"}': {
                ".": {}, "f:name": {},
                "f:ports": {'k:{"containerPort":80,"protocol":"TCP"}': {".": {}, "f:containerPort": {}}},
            }},
            "f:volumes": {},
        },
    }  # fmt: skip


def test_service_ports_are_told_apart_by_port_and_protocol() -> None:
    ports = [{"port": 53, "protocol": "UDP"}, {"port": 53}]
    fields = field_set({"spec": {"ports": ports}}, SERVICE).to_json()
    assert list(fields["f:spec"]["f:ports"]) == [
        'k:{"port":53,"protocol":"TCP"}', 'k:{"port":53,"protocol":"UDP"}'
    ]  # fmt: skip


def test_a_write_that_only_moves_times_is_none() -> None:
    live = write(None, pod(), "one")
    later = [{**entries(live)[0], "time": "2026-01-01T01:00:00Z"}]
    touched = changed(live, metadata={"managedFields": later})
    assert without_time_changes(live, touched) == live
    other = changed(touched, spec={"nodeName": "n"})
    assert without_time_changes(live, other) is other


TEXT = st.sampled_from(["x", "y"])
NAMES = st.sampled_from("abc")
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES},
        optional={
            "image": TEXT,
            "args": st.lists(TEXT, min_size=1, max_size=2),
            "env": st.lists(
                st.fixed_dictionaries({"name": NAMES}, optional={"value": TEXT}),
                min_size=1, max_size=3, unique_by=lambda each: each["name"],
            ),
        },
    ),
    min_size=1, max_size=3, unique_by=lambda each: each["name"],
)  # fmt: skip
PODS = st.builds(
    lambda metadata, spec: pod(metadata=metadata, spec=spec),
    st.fixed_dictionaries(
        {}, optional={
            "labels": st.dictionaries(NAMES, TEXT, min_size=1, max_size=3),
            "finalizers": st.lists(NAMES, unique=True, min_size=1, max_size=3),
        },
    ),
    st.fixed_dictionaries({"containers": CONTAINERS}, optional={"nodeName": TEXT, "hostNetwork": st.booleans()}),
)  # fmt: skip


@given(states=st.lists(st.tuples(PODS, st.sampled_from(["one", "two", "three"])), min_size=1, max_size=5))
@settings(deadline=None)
def test_every_field_has_one_owner_whatever_happens(states: list[tuple[dict[str, Any], str]]) -> None:
    live: dict[str, Any] | None = None
    for state, manager in states:

        sent = state if live is None else {**state, "metadata": {**state["metadata"], "uid": "u-1"}}
        live = write(live, sent, manager)
        sets = [FieldSet.from_json(entry["fieldsV1"]) for entry in entries(live)]
        for position, owned in enumerate(sets):
            assert owned
            assert not any(owned.leaves() & other for other in sets[position + 1 :])
        everybody = FieldSet()
        for owned in sets:
            everybody |= owned
        # Setting the whole object anew, from nothing, owns exactly what all writers together own.
        assert everybody == FieldSet(entries(write(None, state))[0]["fieldsV1"])


def test_items_that_share_a_key_change_hands_together() -> None:
    def with_env(*values: str) -> dict[str, Any]:
        env = [{"name": "A", "value": value} for value in values]
        return pod(metadata={"uid": "u-1"}, spec={"containers": [{"name": "a", "env": env}]})

    live = write(None, with_env("1", "2"), "one")
    out = write(live, with_env("1", "3"), "two")
    assert fields_of(out, "two") == {"f:spec": {"f:containers": {'k:{"name":"a"}': {"f:env": {'k:{"name":"A"}': {}}}}}}
    assert entries(write(live, with_env("1", "2"), "two")) == entries(live)
    both = write(write(None, with_env("1"), "one"), with_env("1", "2"), "two")
    assert 'k:{"name":"A"}' not in str(fields_of(both, "one"))


def widget(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "lab/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "u-1"}, "spec": spec}


def test_one_and_one_point_nought_are_the_same_but_true_is_not() -> None:
    live = write(None, widget(size=1, free={"deep": {"x": [1]}}), "one", schema=WIDGET)
    same = write(live, widget(size=1.0, free={"deep": {"x": [1.0]}}), "two", schema=WIDGET)
    assert entries(same) == entries(live)
    other = write(live, widget(size=True, free={"deep": {"x": [True]}}), "two", schema=WIDGET)
    assert fields_of(other, "two") == {"f:spec": {"f:free": {"f:deep": {"f:x": {}}}, "f:size": {}}}
