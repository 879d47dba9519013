"""Walking objects by their type, for ownership of fields and for server-side apply.

Each ``Schema`` is compiled once into a node that knows how its values are owned:

- ``everything(value)``: the tree of a value that has just come or gone, each container included;
- ``compare(left, right, ...)``: which fields were changed or added, which were removed;
- ``mentioned(value)``: what an applied configuration claims (containers of named fields are not claimed);
- ``merge(left, right)``: the applied value merged into the live one;
- ``remove(value, trie)``: the value without some fields.

``None`` stands for every type that is owned as one piece: scalars, atomic lists and atomic maps.
The semantics are those of structured-merge-diff.
"""

from __future__ import annotations

from typing import Any, Final

from holokube.kube.patch.fieldset import LEAF, SELF, Trie, is_member, ordered
from holokube.kube.patch.typed_lists import EMPTIED, KeyedListNode, Node, SetNode, same_value, with_self
from holokube.kube.schema import Schema, Shape

ABSENT: Final[Any] = object()
FLAT_KEPT: Final = 256
_CONTAINERS = frozenset({Shape.OBJECT, Shape.MAP, Shape.LIST})


def node_of(schema: Schema) -> Node | None:
    """How values of a type are owned; None means as one piece."""
    found: Any = schema.ownership
    if found is None:
        found = schema.ownership = _compile(schema) or LEAF
    return None if found is LEAF else found


def _compile(schema: Schema) -> Node | None:
    shape = schema.shape
    if shape is Shape.LIST:
        return _compile_list(schema)
    if schema.map_type == "atomic":
        return None
    if shape is Shape.OBJECT or shape is Shape.MAP:
        return ObjectNode(schema)
    if shape is Shape.ANY and not schema.name.endswith(".RawExtension"):
        return UNTYPED
    return None


def _compile_list(schema: Schema) -> Node | None:
    kind, keys = schema.list_type, schema.list_keys
    declared = "x-kubernetes-list-type" in schema.source or kind != "atomic"
    if not declared and "merge" in schema.patch_strategies:
        # Types that never got a list type are owned the way strategic merge patch merges them.
        kind = "map" if schema.patch_merge_key else "set"
        keys = (schema.patch_merge_key,)
    if kind == "map":
        return KeyedListNode(schema, keys, node_of)
    return SetNode() if kind == "set" else None


class ObjectNode:
    """Objects with named fields, and maps whose values are owned one by one."""

    __slots__ = ("_flat", "_schema", "_zero_trees", "entries", "extra", "zeros")

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.entries: dict[str, tuple[str, Node | None]] = _Entries(schema)
        """Field name -> path element and node, for named fields."""
        self.extra: Node | None = UNTYPED if schema.shape is Shape.OBJECT else None
        self.zeros: dict[str, Any] = {}
        self._zero_trees: Trie | None = None
        self._flat: dict[tuple[str, ...], Trie] = {}
        """Trees of values in which no field is owned in parts: they depend on nothing but the names of the fields."""
        if schema.shape is Shape.MAP:
            self.extra = node_of(schema.items)
        else:
            self.zeros = _zero_values(schema)

    def named(self, field: str) -> bool:
        return field in self._schema.fields

    def is_atomic_container(self, field: str) -> bool:
        schema = self._schema.fields.get(field) or (
            self._schema.items if self._schema.shape is Shape.MAP else None
        )
        return schema is not None and schema.shape in _CONTAINERS and node_of(schema) is None

    def entry(self, field: str) -> tuple[str, Node | None]:
        return self.entries[field] if field in self._schema.fields else (f"f:{field}", self.extra)

    def _zeros_of(self, value: Any) -> Trie:
        """Trees of the fields that are there, empty, although the value does not show them."""
        trees = self._zero_trees
        if trees is None:
            trees = self._zero_trees = {}
            for field, zero in self.zeros.items():
                element, node = self.entry(field)
                trees[element] = LEAF if node is None or zero is None else node.everything(zero)
        return {element: tree for element, tree in trees.items() if element[2:] not in value}

    def everything(self, value: Any) -> Trie:
        if type(value) is not dict:
            return LEAF
        if not value and not self.zeros:
            return LEAF
        names = tuple(value)
        known = self._flat.get(names)
        if known is not None:
            return known
        out: Trie = {SELF: LEAF}
        entries, extra = self.entries, self.extra
        is_flat = True
        for field in sorted(value):
            entry = entries.get(field)
            if entry is None:
                if self.named(field):
                    entry = entries[field]
                elif extra is None:
                    out["f:" + field] = LEAF
                    continue
                else:
                    entry = ("f:" + field, extra)
            element, node = entry
            if node is None:
                out[element] = LEAF
            else:
                is_flat = False
                out[element] = node.everything(value[field])
        if self.zeros:
            hidden = self._zeros_of(value)
            if hidden:
                out.update(hidden)
                out = ordered(out)
        if is_flat and len(self._flat) < FLAT_KEPT:
            self._flat[names] = out
        return out

    def compare(self, left: Any, right: Any, element: str, changed: Trie, removed: Trie) -> None:
        """Both sides are there and are not equal."""
        before = left if type(left) is dict else LEAF
        after = right if type(right) is dict else LEAF
        if not before and not after:
            changed[element] = LEAF
            return
        inner_changed: Trie = {}
        inner_removed: Trie = {}
        self.compare_fields(before, after, inner_changed, inner_removed)
        if inner_changed:
            changed[element] = ordered(inner_changed)
        if inner_removed:
            removed[element] = ordered(inner_removed)

    def compare_fields(self, left: Trie, right: Trie, changed: Trie, removed: Trie) -> None:
        zeros = self.zeros
        # Objects of named types were validated: what is equal there has equal types, and == is fast.
        trusts_types = bool(self._schema.name)
        met = 0
        for field, after in right.items():
            before = left.get(field, ABSENT)
            if before is not ABSENT:
                met += 1
                if before is after:
                    continue
                is_equal = before == after and type(before) is type(after)
                if is_equal and (trusts_types or same_value(before, after)):
                    continue
            elif field in zeros:
                before = zeros[field]
                if before == after:
                    continue
            element, node = self.entry(field)
            if before is ABSENT:
                changed[element] = LEAF if node is None else node.everything(after)
            elif node is not None:
                node.compare(before, after, element, changed, removed)
            elif not same_value(before, after):
                changed[element] = LEAF
        if met == len(left):
            return
        for field, before in left.items():
            if field in right:
                continue
            element, node = self.entry(field)
            if field in zeros:
                if before == zeros[field]:
                    continue
                if node is None:
                    changed[element] = LEAF
                else:
                    node.compare(before, zeros[field], element, changed, removed)
            else:
                removed[element] = LEAF if node is None else node.everything(before)

    def mentioned(self, value: Any) -> Trie | None:
        if type(value) is not dict:
            return None
        out: Trie = {}
        for field, inner in value.items():
            element, node = self.entry(field)
            if node is None or inner is None or inner is EMPTIED or inner == {}:
                out[element] = LEAF
                continue
            below = node.mentioned(inner)
            if not self.named(field):
                out[element] = with_self(below)
            elif below is not None:
                out[element] = below
        return ordered(out) if out else None

    def merge(self, left: Any, right: Any) -> Any:
        before = left if type(left) is dict else LEAF
        after = right if type(right) is dict else LEAF
        if not before:
            return right
        if not after:
            return left
        out = dict(before)
        for field, value in after.items():
            if field in before:
                node = self.entry(field)[1]
                out[field] = value if node is None else node.merge(before[field], value)
            else:
                out[field] = value
        return out

    def remove(self, value: Any, trie: Trie) -> Any:
        if type(value) is not dict:
            return EMPTIED
        out: dict[str, Any] = {}
        for field, inner in value.items():
            element, node = self.entry(field)
            below = trie.get(element)
            if below is None:
                out[field] = inner
            elif is_member(below):
                continue
            elif node is not None:
                out[field] = node.remove(inner, below)
            else:
                out[field] = EMPTIED if isinstance(inner, dict | list) else inner
        return out or EMPTIED

    def with_named_parents(self, trie: Trie) -> Trie:
        """The set with each named field on the way to a member made a member too."""
        out: Trie = {}
        for element, below in trie.items():
            if not below or element[0] != "f":
                out[element] = below
                continue
            field = element[2:]
            node = self.entry(field)[1]
            inner = below if node is None else node.with_named_parents(below)
            out[element] = with_self(inner) if self.named(field) else inner
        return out

    def reconciled(self, trie: Trie) -> Trie:
        """The set after types became atomic that were not: their parts are owned as one piece now."""
        out: Trie | None = None
        for element, below in trie.items():
            if not below or element[0] != "f":
                continue
            field = element[2:]
            node = self.entry(field)[1]
            if node is not None:
                inner = node.reconciled(below)
            elif self.is_atomic_container(field):
                inner = LEAF
            else:
                continue
            if inner is not below:
                if out is None:
                    out = dict(trie)
                out[element] = inner
        return trie if out is None else out


class _Entries(dict[str, "tuple[str, Node | None]"]):
    """Named fields, compiled when first met, because types may contain themselves."""

    __slots__ = ("_schema",)

    def __init__(self, schema: Schema) -> None:
        super().__init__()
        self._schema = schema

    def __missing__(self, field: str) -> tuple[str, Node | None]:
        entry = self[field] = (f"f:{field}", node_of(self._schema.fields[field]))
        return entry


class UntypedNode:
    """Values without a schema: objects are owned field by field, lists as one piece."""

    __slots__ = ()

    def everything(self, value: Any) -> Trie:
        if not value or type(value) is not dict:
            return LEAF
        out: Trie = {SELF: LEAF}
        for field in sorted(value):
            out[f"f:{field}"] = self.everything(value[field])
        return out

    def compare(self, left: Any, right: Any, element: str, changed: Trie, removed: Trie) -> None:
        before = left if type(left) is dict else LEAF
        after = right if type(right) is dict else LEAF
        inner_changed: Trie = {}
        inner_removed: Trie = {}
        for field, value in after.items():
            old = before.get(field, ABSENT)
            if old is value:
                continue
            if old is ABSENT:
                inner_changed[f"f:{field}"] = self.everything(value)
            elif not same_value(old, value):
                self.compare(old, value, f"f:{field}", inner_changed, inner_removed)
        for field, value in before.items():
            if field not in after:
                inner_removed[f"f:{field}"] = self.everything(value)
        kinds_differ = type(left) is not type(right) and left is not None and right is not None
        if (not before and not after and not same_value(left, right)) or kinds_differ:
            # A value that became another kind of value is changed itself, besides what is inside it.
            if not same_value(left, right):
                inner_changed = {SELF: LEAF, **inner_changed} if inner_changed else {}
                changed[element] = ordered(inner_changed)
        elif inner_changed:
            changed[element] = ordered(inner_changed)
        if inner_removed:
            removed[element] = ordered(inner_removed)

    def mentioned(self, value: Any) -> Trie | None:
        if value is None or value is EMPTIED:
            return None
        if type(value) is not dict:
            return LEAF
        out = {f"f:{field}": with_self(self.mentioned(inner)) for field, inner in value.items()}
        return ordered(out) if out else None

    def merge(self, left: Any, right: Any) -> Any:
        if type(left) is not dict or not left:
            return right
        if right is None or right == {}:
            return left
        if type(right) is not dict:
            return right
        out = dict(left)
        for field, value in right.items():
            out[field] = self.merge(left[field], value) if field in left else value
        return out

    def remove(self, value: Any, trie: Trie) -> Any:
        if type(value) is not dict:
            return EMPTIED if type(value) is list else value
        out: dict[str, Any] = {}
        for field, inner in value.items():
            below = trie.get(f"f:{field}")
            if below is None:
                out[field] = inner
            elif not is_member(below):
                out[field] = self.remove(inner, below)
        return out or EMPTIED

    def with_named_parents(self, trie: Trie) -> Trie:
        return trie

    def reconciled(self, trie: Trie) -> Trie:
        return trie


UNTYPED: Final = UntypedNode()


def _zero_values(schema: Schema) -> dict[str, Any]:
    """Fields that upstream's Go structs always have: structs held by value, and what has no omitempty.

    They are there, empty, before anybody sets them, so that setting something inside does not make its writer
    the owner of the container. Inline types (custom resources) have no such fields.
    """
    zeros: dict[str, Any] = {}
    if not schema.name:
        return zeros
    for field, inner in schema.fields.items():
        if inner.name and inner.shape is Shape.OBJECT and inner.has_default and inner.default == {}:
            zeros[field] = {}
        elif field in schema.required and inner.shape in _CONTAINERS:
            zeros[field] = None
    return zeros
