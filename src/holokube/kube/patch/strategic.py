"""Strategic merge patch: a merge patch that knows which lists are maps or sets in disguise.

The schema says how a list is merged (``patch_strategies``, ``patch_merge_key``). A patch may carry orders:

- ``$patch: replace|delete`` in an object or a list element,
- ``$retainKeys`` in an object: fields that are not listed go,
- ``$setElementOrder/<list>``: the order of the elements the patch knows about,
- ``$deleteFromPrimitiveList/<list>``: values to take out of a list of scalars.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any

import orjson

from holokube.kube.patch import PatchError, PatchNotApplicable, PatchTypeError
from holokube.kube.schema import ANYTHING, Schema, Shape

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
SET_ELEMENT_ORDER = "$setElementOrder"
DELETE_FROM_LIST = "$deleteFromPrimitiveList"
_DIRECTIVE_PREFIXES = (RETAIN_KEYS, f"{SET_ELEMENT_ORDER}/", f"{DELETE_FROM_LIST}/")
_BAD_ORDER_LIST = "invalid patch format of setElementOrder list"


def apply_strategic(doc: dict[str, Any], patch: Any, schema: Schema) -> dict[str, Any]:
    """The object after the patch; subtrees are shared with the object, or with the patch, where that is possible."""
    if not isinstance(patch, dict):
        raise PatchError("invalid JSON document: a strategic merge patch must be an object")
    return _merge_object(doc, patch, schema) if _has_orders(patch) else _merge_values(doc, patch, schema)


def _merge_values(original: dict[str, Any], patch: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """As ``_merge_object``, for a patch that gives no orders and removes nothing, as most of those of kubelets."""
    out = dict(original)
    for key, value in patch.items():
        before = out.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            inner = field_schema(schema, key)
            out[key] = value if strategy_of(inner) == "replace" else _merge_values(before, value, inner)
        elif isinstance(before, list) and isinstance(value, list):
            out[key] = _merge_list(before, value, field_schema(schema, key))
        else:
            out[key] = value
    return out


def _has_orders(value: Any) -> bool:
    """Whether a part of a patch may say more than what its value is; in doubt, yes."""
    try:
        text = orjson.dumps(value)
    except TypeError:
        return True
    return b'"$' in text or b"null" in text


def field_schema(schema: Schema, field: str) -> Schema:
    """The type of a field; anything goes below types that do not say."""
    if schema.shape is Shape.MAP:
        return schema.items
    return schema.fields.get(field, ANYTHING)


def strategy_of(schema: Schema) -> str:
    """``merge``, ``replace`` or nothing; ``retainKeys`` is a matter for whoever creates the patch."""
    rest = [strategy for strategy in schema.patch_strategies if strategy and strategy != "retainKeys"]
    if len(rest) > 1:
        raise PatchTypeError(f"unexpected patch strategy: [{' '.join(schema.patch_strategies)}]")
    return rest[0] if rest else ""


def same_scalar(left: Any, right: Any) -> bool:
    """Equality that tells ``true`` from 1, as the wire does."""
    return type(left) is type(right) and bool(left == right)


def go_text(value: Any) -> str:
    """A value as upstream's messages print it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(inner)}' for key, inner in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def missing_merge_key(element: dict[str, Any], key: str) -> PatchTypeError:
    return PatchTypeError(f"map: {go_text(element)} does not contain declared merge key: {key}")


def element_type(*lists: list[Any]) -> type:
    """The one type of all elements; lists of lists and mixed lists cannot be merged."""
    found: type | None = None
    for values in lists:
        for value in values:
            if isinstance(value, list):
                raise PatchNotApplicable("lists of lists are not supported")
            if found is None:
                found = type(value)
            elif type(value) is not found:
                raise PatchTypeError(f"list element types are not identical: {go_text(list(lists))}")
    if found is None:
        raise PatchTypeError("no elements in any of the given slices")
    return found


def _merge_object(original: dict[str, Any], patch: dict[str, Any], schema: Schema) -> dict[str, Any]:
    if DIRECTIVE in patch:
        directive = patch[DIRECTIVE]
        if directive == "replace":
            replaced: dict[str, Any] = _plain(patch)
            return replaced
        if directive == "delete":
            return {}
        raise PatchTypeError(f"unknown patch type: {go_text(directive)} in map: {go_text(patch)}")
    out = dict(original)
    if RETAIN_KEYS in patch:
        _retain_keys(out, patch)
    done = _merge_ordered_lists(out, patch, schema)
    for key, value in patch.items():
        if key in done or key == RETAIN_KEYS or key.startswith(SET_ELEMENT_ORDER):
            continue
        if key.startswith(DELETE_FROM_LIST):
            _delete_from_list(out, key, value)
        else:
            _merge_field(out, key, value, schema)
    return out


def _merge_field(out: dict[str, Any], key: str, value: Any, schema: Schema) -> None:
    if value is None:
        out.pop(key, None)
        return
    before = out.get(key)
    if isinstance(before, dict) and isinstance(value, dict):
        inner = field_schema(schema, key)
        out[key] = _plain(value) if strategy_of(inner) == "replace" else _merge_object(before, value, inner)
    elif isinstance(before, list) and isinstance(value, list):
        out[key] = _merge_list(before, value, field_schema(schema, key))
    elif isinstance(value, dict) and DIRECTIVE in value:
        # A directive for an object that is not there leaves nothing behind.
        out.pop(key, None)
    elif isinstance(value, dict | list):
        out[key] = _new_value(value) if _has_orders(value) else value
    else:
        out[key] = value


def _retain_keys(out: dict[str, Any], patch: dict[str, Any]) -> None:
    keys = patch[RETAIN_KEYS]
    bad = PatchError("invalid patch format of retainKeys")
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise bad
    for key, value in patch.items():
        is_directive = key.startswith((DELETE_FROM_LIST, SET_ELEMENT_ORDER)) or key == RETAIN_KEYS
        if value is not None and not is_directive and key not in keys:
            raise bad
    for key in list(out):
        if key not in keys:
            del out[key]


def _listed_field(key: str, prefix: str, complaint: str) -> str:
    head, separator, field = key.partition("/")
    if not separator or head != prefix:
        raise PatchError(complaint)
    return field


def _delete_from_list(out: dict[str, Any], key: str, values: Any) -> None:
    field = _listed_field(key, DELETE_FROM_LIST, "invalid patch format of primitive list")
    if values is None:
        out.pop(field, None)
        return
    before = out.get(field)
    if not isinstance(before, list) or not isinstance(values, list) or not (before or values):
        return
    if element_type(before, values) is dict:
        raise PatchError("invalid patch format of primitive list")
    out[field] = [item for item in before if not any(same_scalar(item, value) for value in values)]


def _merge_ordered_lists(out: dict[str, Any], patch: dict[str, Any], schema: Schema) -> set[str]:
    """Merge the lists whose order the patch sets; returns the fields that are dealt with."""
    done: set[str] = set()
    for key, order in patch.items():
        if not key.startswith(SET_ELEMENT_ORDER):
            continue
        if not isinstance(order, list):
            raise PatchTypeError(f"expected a []interface {{}}, but received a {type(order).__name__}")
        field = _listed_field(key, SET_ELEMENT_ORDER, _BAD_ORDER_LIST)
        before, values = out.get(field), patch.get(field)
        for each, is_there in ((before, field in out), (values, field in patch)):
            if is_there and not isinstance(each, list):
                raise PatchTypeError(f"expected a []interface {{}}, but received a {type(each).__name__}")
        if before is None and values is None:
            continue
        inner = field_schema(schema, field)
        merge_key = inner.patch_merge_key
        _check_order(values or [], order, merge_key)
        if values is None:
            merged = before or []
        elif before is None:
            merged = [_new_value(value) for value in values if not _has_directive(value)]
        else:
            merged = _merge_list(before, values, inner)
        is_map = element_type(before or [], values or []) is dict
        merge_key = merge_key if is_map else ""
        server_order = _server_order(before or [], values or [], merge_key)
        out[field] = _arranged(merged, order, server_order, merge_key)
        done.add(field)
    return done


def _server_order(before: list[Any], values: list[Any], merge_key: str) -> list[Any]:
    """The live order that server-only elements are held against.

    Upstream reuses the memory of the live list: each deleted element leaves room for one that the patch adds,
    and those then count as live ones behind the rest. Clients see the resulting order, so it is kept.
    """
    deleted = {_hashable(key_of(value, merge_key)) for value in values if _has_directive(value)}
    if not deleted:
        return before
    kept = [item for item in before if _hashable(key_of(item, merge_key)) not in deleted]
    names = _positions(kept, merge_key)
    added = [
        value for value in values
        if not _has_directive(value) and _hashable(key_of(value, merge_key)) not in names
    ]  # fmt: skip
    return kept + added[: len(before) - len(kept)]


def _check_order(values: list[Any], order: list[Any], merge_key: str) -> None:
    """The patch must name its elements in the same order as the order list does."""
    if not values or not order:
        return
    if merge_key and not all(isinstance(value, dict) for value in values):
        raise PatchTypeError("expected a map[string]interface {}, but received a scalar")
    position = 0
    for value in values:
        if _has_directive(value):
            continue
        while position < len(order):
            position += 1
            if _same_element(value, order[position - 1], merge_key):
                break
        else:
            raise PatchTypeError(
                f"The order in patch list:\n{go_text(values)}\n doesn't match {SET_ELEMENT_ORDER} list:\n"
                f"{go_text(order)}\n"
            )


def _same_element(left: Any, right: Any, merge_key: str) -> bool:
    if not merge_key:
        return same_scalar(left, right)
    return same_scalar(key_of(left, merge_key), key_of(right, merge_key))


def key_of(element: Any, merge_key: str) -> Any:
    """The value an element is told apart by: its merge key, or itself."""
    if not merge_key:
        return element
    if not isinstance(element, dict):
        raise PatchTypeError(f"expected a map[string]interface {{}}, but received a {type(element).__name__}")
    if merge_key not in element:
        raise missing_merge_key(element, merge_key)
    return element[merge_key]


def _merge_list(before: list[Any], values: list[Any], schema: Schema) -> list[Any]:
    if strategy_of(schema) != "merge":
        replaced: list[Any] = _plain(values)
        return replaced
    if not before and not values:
        return before
    if element_type(before, values) is not dict:
        unique: list[Any] = []
        for item in [*before, *values]:
            if not any(same_scalar(item, seen) for seen in unique):
                unique.append(item)
        return _arranged(unique, values, before, "")
    merge_key = schema.patch_merge_key
    if not merge_key:
        raise PatchTypeError(f"cannot merge lists without merge key for {schema.items.name or 'struct'}")
    before, values = _apply_element_directives(before, values, merge_key)
    merged = list(before)
    items = schema.items
    places = _positions(before, merge_key)
    for value in values:
        name = _hashable(key_of(value, merge_key))
        position = places.get(name)
        if position is None:
            places[name] = len(merged)
            merged.append(_plain_element(value, merge_key) if _has_orders(value) else value)
        else:
            merged[position] = _merge_object(merged[position], value, items)
    return _arranged(merged, values, before, merge_key)


def _apply_element_directives(
    before: list[Any], values: list[Any], merge_key: str
) -> tuple[list[Any], list[Any]]:
    """Carry out ``$patch`` in list elements; returns the live list and the elements left to merge."""
    rest: list[Any] = []
    replace = False
    for value in values:
        if DIRECTIVE not in value:
            rest.append(value)
            continue
        directive = value[DIRECTIVE]
        if directive == "delete":
            name = key_of(value, merge_key)
            before = [
                item for item in before
                if not (merge_key in item and same_scalar(item[merge_key], name))
            ]  # fmt: skip
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise PatchTypeError("merging lists cannot yet be specified in the patch")
        else:
            raise PatchTypeError(f"unknown patch type: {go_text(directive)} in map: {go_text(value)}")
    return ([_plain_element(value, merge_key) for value in rest], []) if replace else (before, rest)


def _arranged(merged: list[Any], order: list[Any], server_order: list[Any], merge_key: str) -> list[Any]:
    """Elements the patch knows come in its order; the others keep their places relative to them."""
    ranks = _positions(order, merge_key)
    server_ranks = _positions(server_order, merge_key)
    mine: list[tuple[int, int, Any]] = []
    others: list[tuple[int, Any]] = []
    for item in merged:
        name = _hashable(key_of(item, merge_key))
        server_rank = server_ranks.get(name, -1)
        if name in ranks:
            mine.append((ranks[name], server_rank, item))
        else:
            others.append((server_rank, item))
    mine.sort(key=itemgetter(0))
    others.sort(key=itemgetter(0))
    out: list[Any] = []
    left = 0
    for _, mine_at, item in mine:
        while left < len(others) and 0 <= others[left][0] < mine_at:
            out.append(others[left][1])
            left += 1
        out.append(item)
    return out + [item for _, item in others[left:]]


def _positions(items: list[Any], merge_key: str) -> dict[Any, int]:
    """Where each name occurs first."""
    found: dict[Any, int] = {}
    for position, item in enumerate(items):
        found.setdefault(_hashable(key_of(item, merge_key)), position)
    return found


def _hashable(name: Any) -> Any:
    """A name to look up by; ``true`` and 1 are different names."""
    if type(name) is str:
        return name
    return (type(name), go_text(name) if isinstance(name, dict | list) else name)


def _has_directive(value: Any) -> bool:
    return isinstance(value, dict) and DIRECTIVE in value


def _new_value(value: Any) -> Any:
    """A value for a place where nothing was: without nulls, directives, and objects that carry ``$patch``."""
    if isinstance(value, dict):
        return {
            key: _new_value(inner)
            for key, inner in value.items()
            if inner is not None and not key.startswith(_DIRECTIVE_PREFIXES) and not _has_directive(inner)
        }
    if isinstance(value, list):
        return [_new_value(inner) for inner in value if not _has_directive(inner)]
    return value


def _plain_element(element: dict[str, Any], merge_key: str) -> dict[str, Any]:
    """A list element taken over as it is; even a null key stays, for validation to complain about."""
    plain: dict[str, Any] = _plain(element)
    return {**plain, merge_key: element[merge_key]} if merge_key in element else plain


def _plain(value: Any) -> Any:
    """A value taken over as it is; what the decoder behind upstream's patch would drop is dropped here."""
    if isinstance(value, dict):
        return {
            key: _plain(inner)
            for key, inner in value.items()
            if inner is not None and key != DIRECTIVE and not key.startswith(_DIRECTIVE_PREFIXES)
        }
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value
