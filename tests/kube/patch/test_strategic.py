from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.kube.patch import PatchError, PatchNotApplicable, PatchTypeError
from holokube.kube.patch.strategic import apply_strategic
from holokube.kube.patch.strategic_diff import create_two_way

from .schemas import DEPLOYMENT, POD, SERVICE


def patched_spec(spec: dict[str, Any], patch: Any) -> dict[str, Any]:
    before = copy.deepcopy((spec, patch))
    out: dict[str, Any] = apply_strategic({"spec": spec}, {"spec": patch}, POD)["spec"]
    assert (spec, patch) == before
    return out


def named(*names: str, **fields: Any) -> list[dict[str, Any]]:
    return [{"name": name, **fields} for name in names]


def names_of(items: list[dict[str, Any]]) -> list[str]:
    return [item["name"] for item in items]


def test_scalars_and_objects_merge_like_a_merge_patch() -> None:
    doc = {"metadata": {"labels": {"a": "1", "b": "2"}}, "spec": {"nodeName": "n"}}
    patch = {"metadata": {"labels": {"a": None, "c": "3"}}, "spec": {"nodeName": "m"}}
    assert apply_strategic(doc, patch, POD) == {
        "metadata": {"labels": {"b": "2", "c": "3"}}, "spec": {"nodeName": "m"}
    }  # fmt: skip


def test_untouched_subtrees_are_shared() -> None:
    doc = {"spec": {"nodeName": "n"}, "status": {"phase": "Pending"}}
    assert apply_strategic(doc, {"status": {"phase": "Running"}}, POD)["spec"] is doc["spec"]


def test_list_elements_are_merged_by_their_key() -> None:
    out = patched_spec(
        {"containers": [{"name": "a", "image": "x", "tty": True}, {"name": "b", "image": "y"}]},
        {"containers": [{"name": "b", "image": "z"}, {"name": "a", "tty": None}]},
    )
    assert out == {"containers": [{"name": "b", "image": "z"}, {"name": "a", "image": "x"}]}


def test_new_elements_come_first_and_live_ones_keep_their_order() -> None:
    out = patched_spec({"containers": named("a", "b", "c")}, {"containers": named("n")})
    assert names_of(out["containers"]) == ["n", "a", "b", "c"]


def test_live_elements_stay_before_the_known_element_they_preceded() -> None:
    out = patched_spec({"containers": named("a", "b", "c", "d")}, {"containers": named("d", "b")})
    assert names_of(out["containers"]) == ["a", "c", "d", "b"]


def test_nested_lists_are_merged_by_their_own_keys() -> None:
    out = patched_spec(
        {"containers": [{"name": "a", "env": named("A", "B", value="1"), "ports": [{"containerPort": 80}]}]},
        {"containers": [{"name": "a", "env": named("B", value="2"), "ports": [{"containerPort": 80, "name": "w"}]}]},
    )
    assert out["containers"][0]["env"] == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    assert out["containers"][0]["ports"] == [{"containerPort": 80, "name": "w"}]


def test_lists_of_scalars_are_merged_as_sets() -> None:
    doc = {"metadata": {"finalizers": ["a", "b"]}}
    out = apply_strategic(doc, {"metadata": {"finalizers": ["c", "b"]}}, POD)
    assert out["metadata"]["finalizers"] == ["c", "a", "b"]


def test_other_lists_are_replaced() -> None:
    out = patched_spec({"tolerations": [{"key": "a"}, {"key": "b"}]}, {"tolerations": [{"key": "c", "effect": None}]})
    assert out == {"tolerations": [{"key": "c"}]}


def test_values_can_be_taken_out_of_lists_of_scalars() -> None:
    doc = {"metadata": {"finalizers": ["a", "b", "c"]}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["b", "x"]}}
    assert apply_strategic(doc, patch, POD)["metadata"]["finalizers"] == ["a", "c"]
    assert apply_strategic({"metadata": {}}, patch, POD) == {"metadata": {}}


def test_the_patch_can_set_the_order_of_a_list_of_objects() -> None:
    out = patched_spec(
        {"containers": named("a", "b", "c")},
        {"$setElementOrder/containers": named("c", "a"), "containers": [{"name": "a", "image": "x"}]},
    )
    assert out["containers"] == [{"name": "b"}, {"name": "c"}, {"name": "a", "image": "x"}]


def test_an_order_alone_only_moves_elements() -> None:
    out = patched_spec({"containers": named("a", "b")}, {"$setElementOrder/containers": named("b", "a")})
    assert names_of(out["containers"]) == ["b", "a"]


def test_the_patch_can_set_the_order_of_a_list_of_scalars() -> None:
    doc = {"metadata": {"finalizers": ["a", "b", "s"]}}
    patch = {"metadata": {
        "$setElementOrder/finalizers": ["c", "a"], "finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["b"],
    }}  # fmt: skip
    assert apply_strategic(doc, patch, POD)["metadata"]["finalizers"] == ["c", "a", "s"]


def test_an_element_added_where_another_was_deleted_comes_after_live_ones() -> None:
    out = patched_spec(
        {"containers": named("b", "c", "d")},
        {
            "$setElementOrder/containers": named("a", "d"),
            "containers": [{"name": "a"}, {"name": "b", "$patch": "delete"}],
        },
    )
    assert names_of(out["containers"]) == ["c", "a", "d"]


def test_elements_can_be_deleted_and_deleting_nothing_is_fine() -> None:
    patch = {"containers": [{"name": "a", "$patch": "delete"}, {"name": "x", "$patch": "delete"}]}
    assert patched_spec({"containers": named("a", "b")}, patch)["containers"] == named("b")


def test_a_list_can_be_replaced() -> None:
    out = patched_spec({"containers": named("a", "b")}, {"containers": [{"$patch": "replace"}, *named("c")]})
    assert out["containers"] == named("c")


def test_an_object_can_be_replaced_or_emptied() -> None:
    doc = {"metadata": {"labels": {"a": "1"}, "annotations": {"a": "1"}}}
    patch = {"metadata": {"labels": {"$patch": "replace", "b": "2"}, "annotations": {"$patch": "delete"}}}
    assert apply_strategic(doc, patch, POD) == {"metadata": {"labels": {"b": "2"}, "annotations": {}}}


def test_an_element_can_be_replaced_as_a_whole_list_with_that_element() -> None:
    patch = {"volumes": [{"name": "v", "$patch": "replace"}, {"name": "w", "emptyDir": {}}]}
    assert patched_spec({"volumes": named("v", "x")}, patch)["volumes"] == [{"name": "w", "emptyDir": {}}]


def test_directives_for_things_that_are_not_there_leave_nothing_behind() -> None:
    patch = {"containers": [{"name": "x", "$patch": "delete"}, {"name": "a", "env": None, "tty": True}]}
    assert patched_spec({}, patch) == {"containers": [{"name": "a", "tty": True}]}
    assert apply_strategic({}, {"metadata": {"$patch": "delete"}}, POD) == {}


def test_retain_keys_clears_the_fields_that_are_not_listed() -> None:
    doc = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert apply_strategic(doc, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}


def test_a_volume_changes_its_source_with_retain_keys() -> None:
    out = patched_spec(
        {"volumes": [{"name": "v", "emptyDir": {}}]},
        {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]},
    )
    assert out["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_service_ports_are_merged_by_port_alone() -> None:
    doc = {"spec": {"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]}}
    out = apply_strategic(doc, {"spec": {"ports": [{"port": 53, "name": "dns"}]}}, SERVICE)
    assert out["spec"]["ports"][0] == {"port": 53, "protocol": "UDP", "name": "dns"}


@pytest.mark.parametrize(
    ("patch", "error", "message"),
    [
        ({"containers": [{"image": "x"}]}, PatchTypeError,
         "map: map[image:x] does not contain declared merge key: name"),
        ({"containers": [{"$patch": "delete"}]}, PatchTypeError,
         "map: map[$patch:delete] does not contain declared merge key: name"),
        ({"containers": [{"name": "a", "$patch": "merge"}]}, PatchTypeError, "merging lists cannot yet be specified"),
        ({"containers": [{"name": "a", "$patch": "frob"}]}, PatchTypeError, "unknown patch type: frob in map: map["),
        ({"$patch": "frob"}, PatchTypeError, "unknown patch type: frob in map: map[$patch:frob]"),
        ({"$retainKeys": "x"}, PatchError, "invalid patch format of retainKeys"),
        ({"$retainKeys": ["a"], "nodeName": "x"}, PatchError, "invalid patch format of retainKeys"),
        ({"$setElementOrder": [], "containers": []}, PatchError, "invalid patch format of setElementOrder list"),
        ({"$deleteFromPrimitiveList": []}, PatchError, "invalid patch format of primitive list"),
        ({"$setElementOrder/containers": {}}, PatchTypeError, "expected a []interface {}"),
        ({"$setElementOrder/containers": [{"name": "a"}], "containers": [{"name": "b"}]}, PatchTypeError,
         "doesn't match $setElementOrder list"),
        ({"containers": [["x"]]}, PatchNotApplicable, "lists of lists are not supported"),
        ({"containers": ["x"]}, PatchTypeError, "list element types are not identical"),
    ],
)  # fmt: skip
def test_bad_patches_are_refused(patch: Any, error: type[PatchError], message: str) -> None:
    with pytest.raises(error) as caught:
        patched_spec({"containers": named("a")}, patch)
    assert message in str(caught.value)
    assert type(caught.value) is error


@pytest.mark.parametrize("patch", [[], None, "x"])
def test_a_patch_must_be_an_object(patch: Any) -> None:
    with pytest.raises(PatchError) as caught:
        apply_strategic({}, patch, POD)
    assert caught.value.code == 400


def test_a_created_patch_names_what_changed() -> None:
    old = {"spec": {
        "containers": [{"name": "a", "image": "x"}, {"name": "b"}, {"name": "c"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
    }, "metadata": {"finalizers": ["f", "g"]}}  # fmt: skip
    new = {"spec": {
        "containers": [{"name": "d"}, {"name": "a", "image": "y"}, {"name": "b"}],
        "volumes": [{"name": "v", "hostPath": {"path": "/x"}}],
    }, "metadata": {"finalizers": ["g", "h"]}}  # fmt: skip
    assert create_two_way(old, new, POD) == {
        "spec": {
            "containers": [{"name": "d"}, {"name": "a", "image": "y"}, {"name": "c", "$patch": "delete"}],
            "$setElementOrder/containers": named("d", "a", "b"),
            "volumes": [
                {"name": "v", "emptyDir": None, "hostPath": {"path": "/x"}, "$retainKeys": ["hostPath", "name"]}
            ],
            "$setElementOrder/volumes": named("v"),
        },
        "metadata": {
            "finalizers": ["h"],
            "$deleteFromPrimitiveList/finalizers": ["f"],
            "$setElementOrder/finalizers": ["g", "h"],
        },
    }
    assert apply_strategic(old, create_two_way(old, new, POD), POD) == new


def test_equal_objects_need_no_patch() -> None:
    doc = {"spec": {"containers": named("a", "b"), "tolerations": [{"key": "x"}]}}
    assert create_two_way(doc, copy.deepcopy(doc), POD) == {}


def keyed(key: str, values: st.SearchStrategy[str], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    item = st.fixed_dictionaries({key: values}, optional=fields)
    return st.lists(item, max_size=4, unique_by=lambda each: each[key])


NAMES = st.sampled_from("abcd")
TEXT = st.sampled_from(["x", "y"])
SPECS = st.fixed_dictionaries({}, optional={
    "containers": keyed("name", NAMES, image=TEXT, env=keyed("name", NAMES, value=TEXT), args=st.lists(TEXT)),
    "volumes": keyed("name", NAMES, hostPath=st.fixed_dictionaries({"path": TEXT}), emptyDir=st.just({})),
    "tolerations": st.lists(st.fixed_dictionaries({"key": TEXT}), max_size=2),
    "nodeSelector": st.dictionaries(NAMES, TEXT, max_size=2),
    "nodeName": TEXT,
})  # fmt: skip
PODS = st.fixed_dictionaries(
    {"spec": SPECS},
    optional={"metadata": st.fixed_dictionaries({"finalizers": st.lists(NAMES, unique=True, max_size=3)})},
)


@given(old=PODS, new=PODS)
@settings(deadline=None)
def test_creating_and_applying_a_patch_goes_round(old: dict[str, Any], new: dict[str, Any]) -> None:
    before = copy.deepcopy((old, new))
    assert apply_strategic(old, create_two_way(old, new, POD), POD) == new
    assert (old, new) == before


@given(live=PODS, patch=PODS)
@settings(deadline=None)
def test_a_patch_without_directives_applies_once(live: dict[str, Any], patch: dict[str, Any]) -> None:
    once = apply_strategic(live, patch, POD)
    assert apply_strategic(once, patch, POD) == once
    for name in names_of(live["spec"].get("containers", [])):
        assert name in names_of(once["spec"]["containers"])
