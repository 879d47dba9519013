"""Whether the rules of a CRD's schema can be compiled, and whether they talk about fields that exist.

Upstream also infers the type of every part of a rule and estimates what it costs to evaluate. Neither happens here:
a rule that is of the wrong type fails when it is evaluated.
"""

from __future__ import annotations

from typing import Any

import orjson

from holokube.apiserver.crds.cel_syntax import located, mentions, tokens_of
from holokube.apiserver.crds.rules import (
    Expression,
    RuleError,
    compile_rule,
    escaped,
    has_rules,
    is_installed,
)
from holokube.apiserver.crds.structural import META_FIELDS, Structural
from holokube.apiserver.field_errors import FieldErrors
from holokube.kube.errors import Cause
from holokube.kube.types import JsonObject


def check_rules(
    node: Structural, path: str, errors: FieldErrors, *, uncorrelatable: str = "", root: bool = True
) -> None:
    """Report rules that cannot be compiled, or that compare with an old value where nobody knows it."""
    if not has_rules(node):
        return
    for index, rule in enumerate(node.source.get("x-kubernetes-validations") or ()):
        at = f"{path}.x-kubernetes-validations[{index}]"
        _check_rule(rule, node, at, errors, root=root)
        if mentions(rule["rule"], "oldSelf"):
            if uncorrelatable:
                text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
                errors.invalid(f"{at}.rule", rule["rule"], text)
        elif rule.get("optionalOldSelf") is not None:
            text = "may not be set if oldSelf is not used in rule"
            errors.invalid(f"{at}.optionalOldSelf", rule["optionalOldSelf"], text)
    for name, part in node.properties.items():
        check_rules(part, f"{path}.properties[{name}]", errors, uncorrelatable=uncorrelatable, root=False)
    if node.additional is not None:
        at = f"{path}.additionalProperties"
        check_rules(node.additional, at, errors, uncorrelatable=uncorrelatable, root=False)
    if node.items is not None:
        lost = uncorrelatable or ("" if node.list_type == "map" else path)
        check_rules(node.items, f"{path}.items", errors, uncorrelatable=lost, root=False)


def _check_rule(rule: JsonObject, node: Structural, path: str, errors: FieldErrors, *, root: bool) -> None:
    if not is_installed():
        return
    try:
        compile_rule({**rule, "messageExpression": ""}, node)
        _check_fields(rule["rule"], node, root=root)
    except RuleError as problem:
        _add(errors, f"{path}.rule", rule, str(problem))
    message = str(rule.get("messageExpression") or "").strip()
    if message:
        try:
            Expression(message)
            _check_fields(message, node, root=root)
        except RuleError as problem:
            _add(errors, f"{path}.messageExpression", rule, f"messageExpression {problem}")


def _add(errors: FieldErrors, path: str, rule: JsonObject, detail: str) -> None:
    """The value is shown as upstream's own type prints it."""
    shown: dict[str, Any] = {
        "Rule": rule["rule"],
        "Message": rule.get("message") or "",
        "MessageExpression": rule.get("messageExpression") or "",
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath") or "",
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    message = f"Invalid value: {orjson.dumps(shown).decode()}: {detail}"
    errors.causes.append(Cause("FieldValueInvalid", message, path))


def _check_fields(text: str, node: Structural, *, root: bool) -> None:
    """Follow ``self.a.b`` through the schema as far as it is plain."""
    tokens = tokens_of(text)
    for index, token in enumerate(tokens):
        if token.text not in ("self", "oldSelf") or token.kind != "name":
            continue
        if index > 0 and tokens[index - 1].text in (".", ".?"):
            continue
        at: Structural | None = node
        at_root = root
        position = index + 1
        while at is not None and position + 1 < len(tokens) and tokens[position].text in (".", ".?"):
            name = tokens[position + 1]
            if position + 2 < len(tokens) and tokens[position + 2].text == "(":
                break
            if (at_root or at.embedded) and name.text in META_FIELDS:
                break
            if at.type != "object" or not at.properties:
                break
            fields = {escaped(key): part for key, part in at.properties.items()}
            if name.text not in fields:
                raise RuleError(
                    f"compilation failed: {located(text, tokens[position].at, f'undefined field {name.text!r}')}"
                )
            at, at_root = fields[name.text], False
            position += 2
