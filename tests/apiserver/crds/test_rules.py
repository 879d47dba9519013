from __future__ import annotations

from typing import Any

import pytest

from holokube.apiserver.crds import rules as rules_module
from holokube.apiserver.crds.cel_syntax import mentions, rewrite
from holokube.apiserver.crds.rules import RuleError, compile_rules, escaped
from holokube.apiserver.crds.structural import structural
from holokube.apiserver.field_errors import FieldErrors
from tests.apiserver.crds.steps import GROUP, LAB, PLURAL, ask_create, define, definition, widget, with_spec
from tests.apiserver.worlds import World, in_world

pytest.importorskip("cel")
OBJECT: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def broken(
    rule: str, value: Any, old: Any = None, schema: dict[str, Any] | None = None, **more: Any
) -> list[str]:
    """What is reported about a value under one rule."""
    source = {**(schema or OBJECT), "x-kubernetes-validations": [{"rule": rule, **more}]}
    rules_module.compile_rule(source["x-kubernetes-validations"][0], structural(source))
    tree = compile_rules(structural(source))
    assert tree is not None
    errors = FieldErrors()
    tree.evaluate(value, old, errors, "spec")
    return [f"{cause.field}: {cause.message}" for cause in errors.causes]


@pytest.mark.parametrize(
    "rule",
    [
        "self.?a.?b.orValue(5) == 5",
        "self.?m.x.orValue(0) == 1",
        "self.m[?'x'].orValue(0) == 1",
        "self.?m.hasValue() && !self.?q.hasValue()",
        "cel.bind(v, self.m.x + 1, v * v) == 4",
        "cel.bind(v, self.l, cel.bind(w, v[0], w)) == 3",
        "self.l.isSorted() == false && self.l.sum() == 6 && self.l.min() == 1 && self.l.max() == 3",
        "self.l.indexOf(1) == 1 && self.l.lastIndexOf(2) == 2 && 'abc'.indexOf('c') == 2",
        "quantity('1Gi').isGreaterThan(quantity('1G')) && isQuantity('5m') && !isQuantity('x')",
        "quantity('1').add(quantity('500m')).compareTo(quantity('1500m')) == 0",
        "quantity('3').asInteger() == 3 && quantity('1500m').isInteger() == false && quantity('-1').sign() == -1",
        "isIP('10.0.0.1') && !isIP('x') && ip('::1').family() == 6 && ip('127.0.0.1').isLoopback()",
        "cidr('10.0.0.0/8').containsIP('10.1.2.3') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "cidr('10.1.0.0/16').prefixLength() == 16 && isCIDR('10.0.0.0') == false",
        "isURL('https://a.b:8/c') && url('https://a.b:8/c').getHost() == 'a.b:8' && url('https://a/c').getPort() == ''",
        "semver('1.2.3').isLessThan(semver('1.10.0')) && isSemver('1.0') == false && semver('2.0.1').major() == 2",
        "'a1b22'.find('[0-9]+') == '1' && 'a1b22'.findAll('[0-9]+') == ['1', '22']",
        "format.dns1123Label().validate('a-b').hasValue() == false && format.dns1123Label().validate('A').hasValue()",
        "'%s-%d-%.2f'.format(['a', 3, 1.5]) == 'a-3-1.50'",
        "size(self.s) == 2 && self.s.size() == 2",
        "'AbC'.lowerAscii() == 'abc' && 'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'",
        "sets.contains([1, 2], [1]) && math.greatest(1, 3) == 3",
        "self.l.all(x, x > 0) && self.m.exists(k, k == 'x') && self.l.exists_one(x, x == 1)",
    ],
)
def test_kubernetes_additions_to_cel_are_understood(rule: str) -> None:
    assert broken(rule, {"m": {"x": 1}, "l": [3, 1, 2], "s": "äö"}) == []


def test_a_broken_rule_is_reported_with_its_message_reason_and_field() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert broken("self.a > 1", {"a": 1}, schema=schema) == ["spec: Invalid value: failed rule: self.a > 1"]
    found = broken("self.a > 1", {"a": 1}, schema=schema, message="too small", fieldPath=".a",
                   reason="FieldValueForbidden")  # fmt: skip
    assert found == ["spec.a: Forbidden: too small"]
    found = broken("self.a > 1", {"a": 1}, schema=schema, messageExpression="'a is ' + string(self.a)")
    assert found == ["spec: Invalid value: a is 1"]
    found = broken("self.a > 1", {"a": 1}, schema=schema, messageExpression="self.a", message="plain")
    assert found == ["spec: Invalid value: plain"]


def test_scalars_are_shown_and_containers_are_not() -> None:
    assert broken("self > 1", 1, schema={"type": "integer"}) == [
        "spec: Invalid value: 1: failed rule: self > 1"
    ]


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("self.zz == 1", "no such key: zz evaluating rule: self.zz == 1"),
        ("1 / self.n == 1", "division by zero evaluating rule: 1 / self.n == 1"),
        (
            "duration('x') == duration('1s')",
            "type conversion error from 'string' to 'google.protobuf.Duration'",
        ),
        ("self.n > 'a'", "'no such overload': call arguments did not match a supported operator"),
    ],
)
def test_a_rule_that_cannot_be_evaluated_is_broken(rule: str, text: str) -> None:
    found = broken(rule, {"n": 0})
    assert len(found) == 1
    assert found[0].startswith('spec: Invalid value: "object": ')
    assert text in found[0]


def test_transition_rules_hold_only_between_two_values() -> None:
    schema = {"type": "string"}
    assert broken("self == oldSelf", "a", schema=schema) == []
    assert broken("self == oldSelf", "a", "a", schema=schema) == []
    assert len(broken("self == oldSelf", "a", "b", schema=schema)) == 1


def test_an_optional_old_value_is_there_or_not() -> None:
    schema = {"type": "string"}
    rule = "oldSelf.hasValue() ? self == oldSelf.value() : self == 'first'"
    assert broken(rule, "first", schema=schema, optionalOldSelf=True) == []
    assert len(broken(rule, "other", schema=schema, optionalOldSelf=True)) == 1
    assert broken(rule, "b", "b", schema=schema, optionalOldSelf=True) == []


def test_a_broken_rule_about_something_that_did_not_change_does_not_count() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    assert broken("self.a > 1", {"a": 1}, {"a": 1}, schema=schema) == []
    assert len(broken("self.a > 1", {"a": 1, "b": 2}, {"a": 1}, schema=schema)) == 1


def test_elements_of_a_map_list_are_compared_with_their_own_past() -> None:
    item = {
        "type": "object",
        "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.v >= oldSelf.v"}],
    }
    source = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"],
        "items": item,
    }
    tree = compile_rules(structural(source))
    assert tree is not None
    errors = FieldErrors()
    old = [{"k": "a", "v": 1}, {"k": "b", "v": 5}]
    tree.evaluate([{"k": "b", "v": 4}, {"k": "a", "v": 2}, {"k": "new", "v": 0}], old, errors, "spec.l")
    assert [cause.field for cause in errors.causes] == ["spec.l[0]"]


def test_times_and_durations_are_typed_and_odd_names_are_escaped() -> None:
    schema = {
        "type": "object",
        "properties": {
            "when": {"type": "string", "format": "date-time"},
            "wait": {"type": "string", "format": "duration"},
            "day": {"type": "string", "format": "date"},
            "ratio": {"type": "number"},
            "in": {"type": "integer"},
            "a-b.c/d__e": {"type": "integer"},
        },
    }
    value = {
        "when": "2020-01-01T00:00:00Z",
        "wait": "90s",
        "day": "2020-02-03",
        "ratio": 1,
        "in": 3,
        "a-b.c/d__e": 4,
    }
    rule = (
        "self.when < timestamp('2021-01-01T00:00:00Z') && self.wait > duration('1m') && self.day.getMonth() == 1 "
        "&& self.ratio / 2.0 == 0.5 && self.__in__ == 3 && self.a__dash__b__dot__c__slash__d__underscores__e == 4"
    )
    assert broken(rule, value, schema=schema) == []
    assert escaped("namespace") == "__namespace__"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("self ==", "Syntax error: mismatched input '<EOF>'"),
        (
            "foo == 1",
            "ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')\n | foo == 1\n | ^",
        ),
        ("self.nofunc()", "ERROR: <input>:1:12: undeclared reference to 'nofunc'"),
        ("self.all(x, y > 0)", "undeclared reference to 'y'"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(rule: str, text: str) -> None:
    with pytest.raises(RuleError) as caught:
        broken(rule, {})
    assert text in str(caught.value)


def test_texts_without_optional_syntax_are_left_alone() -> None:
    text = "self.a == '.?b' || self.b"
    assert rewrite("self.a == 1") == "self.a == 1"
    assert mentions("oldSelf == 'x'", "oldSelf")
    assert not mentions("self.oldSelf == 'oldSelf'", "oldSelf")
    assert "'.?b'" in rewrite(text)


def test_without_the_evaluator_rules_are_stored_and_the_writer_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules_module, "_evaluator", lambda: None)

    async def test(world: World) -> None:
        rule = {"rule": "self == 'a'"}
        crd = definition(with_spec(a={"type": "string", "x-kubernetes-validations": [rule]}))
        answer = await ask_create(world, GROUP, PLURAL, crd)
        assert answer.code == 201
        assert [text for text in answer.warnings if "holokube[cel]" in text]
        stored = await define(world, crd)
        schema = stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert schema["properties"]["spec"]["properties"]["a"]["x-kubernetes-validations"] == [rule]
        await world.create("widgets", widget(a="b"), LAB)

    in_world(test)


def test_a_rule_about_a_value_alone_is_asked_once_and_one_about_its_past_each_time() -> None:
    source = {
        "type": "integer",
        "x-kubernetes-validations": [{"rule": "type(self) == int && self > 0"}, {"rule": "self >= oldSelf"}],
    }
    tree = compile_rules(structural({"type": "object", "properties": {"size": source}}))
    assert tree is not None

    def causes(value: Any, old: Any = None) -> int:
        errors = FieldErrors()
        tree.evaluate({"size": value}, None if old is None else {"size": old}, errors)
        return len(errors.causes)

    for _ in range(2):
        assert [causes(2), causes(2, old=1), causes(2, old=3), causes(-1), causes(-1, old=-1)] == [0, 0, 1, 1, 0]
    # True is 1 to Python, and a rule that 1 keeps may not be kept by it.
    assert [causes(1), causes(True), causes(1.0), causes("1")] == [0, 1, 1, 1]


def test_a_rule_about_the_past_is_asked_once_of_a_value_that_takes_the_place_of_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    evaluate = rules_module.Expression.evaluate

    def noting(self: Any, value: Any, *args: Any, **options: Any) -> Any:
        asked.append(value)
        return evaluate(self, value, *args, **options)

    monkeypatch.setattr(rules_module.Expression, "evaluate", noting)
    tree = compile_rules(structural({**OBJECT, "x-kubernetes-validations": [{"rule": "self.a < oldSelf.b"}]}))
    assert tree is not None

    def causes(value: Any, old: Any) -> int:
        errors = FieldErrors()
        tree.evaluate(value, old, errors)
        return len(errors.causes)

    keeps, breaks = {"a": 1, "b": 2}, {"a": 1, "b": 1}
    assert [causes(keeps, keeps), causes(keeps, keeps), len(asked)] == [0, 0, 1]
    # What is broken is told each time, and that a value keeps a rule by itself says nothing of it after another one.
    assert [causes(breaks, breaks), causes(breaks, breaks), len(asked)] == [1, 1, 3]
    assert [causes(keeps, {"a": 1, "b": 0}), causes(keeps, breaks), len(asked)] == [1, 1, 5]
    again = {"a": 1, "b": 2}
    assert [causes(again, again), len(asked)] == [0, 5]
