"""The comparison itself: what is forgiven, what is not."""

from __future__ import annotations

import pytest

from .model import RESOURCES, get, post, resolve
from .normalize import MISSING, Normalizer, causes_of, dig
from .render import BEGIN, END, rendered
from .runner import differences
from .target import substitute


def test_a_short_path_is_completed_by_kind_and_scope() -> None:
    assert resolve("pods/p/status?dryRun=All") == "/api/v1/namespaces/{ns}/pods/p/status?dryRun=All"
    assert resolve("*deployments?limit=1") == "/apis/apps/v1/deployments?limit=1"
    assert resolve("nodes") == "/api/v1/nodes"
    assert resolve("/version") == "/version"
    assert "pods" in RESOURCES


def test_a_path_reads_fields_items_and_keys() -> None:
    value = {"a": [{"name": "x", "v": 1}, {"name": "y", "v": 2}], "b": {"c/d": 3, "a": 0}}
    assert dig(value, "a[1].v") == 2
    assert dig(value, "a[-1].name") == "y"
    assert dig(value, "a[name=x].v") == 1
    assert dig(value, "a[name=z].v") == MISSING
    assert dig(value, "a.*.name") == ["x", "y"]
    assert dig(value, 'b["c/d"]') == 3
    assert dig(value, "b.keys()") == ["a", "c/d"]
    assert dig(value, "b.none.more") == MISSING
    assert dig(value, "") is value


def test_versions_and_uids_are_compared_by_first_appearance() -> None:
    normal = Normalizer({"ns-1": "{ns}"})
    uid = "11111111-2222-3333-4444-555555555555"
    first = normal.value({"metadata": {"resourceVersion": "7", "uid": uid, "namespace": "ns-1"}})
    again = normal.value({"metadata": {"resourceVersion": "7", "uid": uid}})
    moved = normal.value({"metadata": {"resourceVersion": "9"}})
    assert first["metadata"] == {"resourceVersion": "<rv1>", "uid": "<uid1>", "namespace": "{ns}"}
    assert again["metadata"]["resourceVersion"] == "<rv1>"
    assert moved["metadata"]["resourceVersion"] == "<rv2>"


def test_only_times_of_this_run_are_forgiven() -> None:
    normal = Normalizer({})
    now = normal._now.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert normal.value({"a": now, "b": "2001-01-01T00:00:00Z"}) == {
        "a": "<time>",
        "b": "2001-01-01T00:00:00Z",
    }
    assert normal.value({"a": None}) == {"a": None}


def test_a_generated_name_is_forgiven_wherever_it_appears() -> None:
    normal = Normalizer({})
    made = normal.value({"metadata": {"generateName": "web-", "name": "web-x2bcd"}, "ref": "web-x2bcd"})
    assert made == {"metadata": {"generateName": "web-", "name": "web-<5>"}, "ref": "web-<5>"}
    wrong = Normalizer({}).value({"metadata": {"generateName": "web-", "name": "web-aeiou"}})
    assert wrong["metadata"]["name"] == "web-aeiou"


def test_managed_fields_are_compared_without_their_order() -> None:
    entries: list[dict[str, object]] = [
        {"manager": name, "operation": "Update", "fieldsV1": {"f:data": {}}} for name in ("b", "a")
    ]
    normal = Normalizer({}).answer({"metadata": {"managedFields": entries}}, managed=True)
    assert [entry["manager"] for entry in normal["metadata"]["managedFields"]] == ["a", "b"]
    assert Normalizer({}).answer({"metadata": {"managedFields": entries}}, managed=False) == {"metadata": {}}


def test_versions_of_answers_that_do_not_count_are_forgotten() -> None:
    normal = Normalizer({})
    normal.answer({"metadata": {"resourceVersion": "3"}}, managed=False, counts=False)
    assert normal.version("9") == "<rv1>"


def test_causes_are_a_set() -> None:
    cause = {"reason": "FieldValueInvalid", "field": "spec.a"}
    assert causes_of({"details": {"causes": [cause, cause]}}) == [("FieldValueInvalid", "spec.a")]
    assert causes_of({}) == []


def test_differences_name_the_step_and_the_path() -> None:
    left = [{"step": "1: GET /a", "code": 200, "body": {"x": [1, {"y": 2}]}}]
    right = [{"step": "1: GET /a", "code": 200, "body": {"x": [1, {"y": 3}]}}]
    assert differences(left, left) == []
    assert differences(left, right) == ["1: GET /a: body.x[1].y: expected 2 got 3"]
    assert differences(left, []) == ["1: GET /a: no answer"]
    assert differences([], left) == ["1: GET /a: not recorded"]


def test_true_and_one_are_different() -> None:
    assert differences([{"step": "s", "a": True}], [{"step": "s", "a": 1}])


def test_names_are_put_into_texts_and_whole_values() -> None:
    names = {"u": "u1", "count": 3, "obj": {"a": 1}}
    assert substitute({"{u}": ["x-{u}", "{count}", "{obj}", "{other}"]}, names) == {
        "u1": ["x-u1", 3, {"a": 1}, "{other}"]
    }


def test_expected_codes_follow_the_verb() -> None:
    assert get("pods").code == 200
    assert post("pods", {}).code == 201


def test_the_page_needs_its_markers() -> None:
    assert rendered(f"a\n{BEGIN}\nold\n{END}\nb\n").endswith(f"{END}\nb\n")
    assert "old" not in rendered(f"{BEGIN}\nold\n{END}")
    with pytest.raises(ValueError, match="lacks the markers"):
        rendered("nothing")
