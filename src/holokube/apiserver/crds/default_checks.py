"""Whether the defaults in a schema are values that the schema would accept."""

from __future__ import annotations

from holokube.apiserver.crds.embedded import check_embedded
from holokube.apiserver.crds.json_schema import Check
from holokube.apiserver.crds.rules import compile_rules
from holokube.apiserver.crds.shaping import prune
from holokube.apiserver.crds.structural import ABSENT, META_FIELDS, Structural
from holokube.apiserver.decode import fresh
from holokube.apiserver.field_errors import FieldErrors


def check_defaults(node: Structural, path: str, errors: FieldErrors, *, root: bool = True) -> None:
    """Report defaults with unknown fields, or of the wrong type, or that break a rule."""
    if not node.has_defaults:
        return
    if node.default is not ABSENT:
        _check_default(node, f"{path}.default", errors)
    if node.items is not None:
        check_defaults(node.items, f"{path}.items", errors, root=False)
    for name, part in node.properties.items():
        # Defaults of apiVersion, kind and metadata are refused elsewhere, whatever they say.
        if not (root and name in META_FIELDS):
            check_defaults(part, f"{path}.properties[{name}]", errors, root=False)


def _check_default(node: Structural, path: str, errors: FieldErrors) -> None:
    pruned = fresh(node.default)
    prune(pruned, node)
    if pruned != node.default:
        errors.invalid(path, node.default, "must not have unknown fields")
    own = FieldErrors()
    check_embedded(node.default, node, own, path)
    if not own:
        Check(node.source).report(node.default, own, prefix=path)
    if not own:
        rules = compile_rules(node)
        if rules is not None:
            rules.evaluate(node.default, node.default, own, path)
            if not own:
                rules.evaluate(node.default, None, own, path)
    errors.causes.extend(own.causes)
