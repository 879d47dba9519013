"""Lists whose elements are owned one by one: those with keys, and sets. See ``typed`` for the methods."""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, Final, Protocol

from holokube.kube.patch import PatchTypeError
from holokube.kube.patch.fieldset import (
    LEAF,
    SELF,
    Trie,
    escape_html,
    is_member,
    key_element,
    ordered,
    value_element,
)
from holokube.kube.schema import Schema

EMPTIED: Final[Any] = object()
"""Stands where a container lost its last part but nobody removed the container; it counts as null."""


class Node(Protocol):
    """How values of one type are owned, compared and merged."""

    def everything(self, value: Any) -> Trie:
        """The tree of a value that has just come or gone, its containers included."""

    def compare(self, left: Any, right: Any, element: str, changed: Trie, removed: Trie) -> None:
        """Enter under ``element`` what differs; both sides are there and are not equal."""

    def mentioned(self, value: Any) -> Trie | None:
        """What a configuration claims; None if it claims nothing."""

    def merge(self, left: Any, right: Any) -> Any:
        """The right value merged into the left one."""

    def remove(self, value: Any, trie: Trie) -> Any:
        """The value without the fields of the set; ``EMPTIED`` if nothing is left."""

    def with_named_parents(self, trie: Trie) -> Trie:
        """The set with each named field on the way to a member made a member too."""

    def reconciled(self, trie: Trie) -> Trie:
        """The set after types became atomic that were not."""


class KeyedListNode:
    """Lists of objects that are told apart by some of their fields."""

    __slots__ = ("_defaults", "_item_schema", "_keys", "_node_of", "_quoted", "_trusts_types")

    def __init__(
        self, schema: Schema, keys: tuple[str, ...], node_of: Callable[[Schema], Node | None]
    ) -> None:
        self._node_of = node_of
        self._trusts_types = bool(schema.items.name)
        self._keys = tuple(sorted(keys))
        self._item_schema = schema.items
        fields = schema.items.fields
        self._defaults = {
            key: fields[key].default for key in keys if key in fields and fields[key].default is not None
        }
        self._quoted = f'k:{{"{keys[0]}":' if len(keys) == 1 else ""

    @property
    def item(self) -> Node | None:
        return self._node_of(self._item_schema)

    def element(self, item: Any) -> str:
        """The path element of a list item; keys that are missing take their defaults."""
        if type(item) is not dict:
            what = "a null element" if item is None else "non-map elements"
            raise PatchTypeError(f"associative list with keys may not have {what}")
        if self._quoted:
            value = item.get(self._keys[0])
            if type(value) is str:
                text = encode_basestring(value)
                return f"{self._quoted}{escape_html(text)}}}"
        found = []
        for key in self._keys:
            if key in item:
                found.append((key, item[key]))
            elif key in self._defaults:
                found.append((key, self._defaults[key]))
        if not found:
            names = " ".join(f'"{key}"' for key in self._keys)
            raise PatchTypeError(
                f"associative list with keys has an element that omits all key fields [{names}] "
                "(and doesn't have default values for any key fields)"
            )
        return key_element(found)

    def everything(self, value: Any) -> Trie:
        if not value or type(value) is not list:
            return LEAF
        item_node = self.item
        out: Trie = {SELF: LEAF}
        for item in value:
            element = self.element(item)
            # Items that share a key are owned as one piece, by whoever wrote them.
            out[element] = LEAF if item_node is None or element in out else item_node.everything(item)
        return ordered(out) if len(out) > 2 else out

    def compare(self, left: Any, right: Any, element: str, changed: Trie, removed: Trie) -> None:
        before = left if type(left) is list else []
        after = right if type(right) is list else []
        if not before and not after:
            changed[element] = LEAF
            return
        old, new = self._grouped(before), self._grouped(after)
        inner_changed: Trie = {}
        inner_removed: Trie = {}
        for key, items in new.items():
            self._compare_items(key, old.get(key, []), items, inner_changed, inner_removed)
        item_node = self.item
        for key, items in old.items():
            if key not in new:
                whole = item_node is not None and len(items) == 1
                inner_removed[key] = item_node.everything(items[0]) if whole and item_node else LEAF
        if inner_changed:
            changed[element] = ordered(inner_changed)
        if inner_removed:
            removed[element] = ordered(inner_removed)

    def _grouped(self, items: list[Any]) -> dict[str, list[Any]]:
        groups: dict[str, list[Any]] = {}
        for item in items:
            element = self.element(item)
            if element in groups:
                groups[element].append(item)
            else:
                groups[element] = [item]
        return groups

    def _compare_items(
        self, element: str, old: list[Any], new: list[Any], changed: Trie, removed: Trie
    ) -> None:
        node = self.item
        if len(old) <= 1 and len(new) == 1:
            after = new[0]
            if not old:
                changed[element] = LEAF if node is None else node.everything(after)
                return
            before = old[0]
            if before is after or (before == after and (self._trusts_types or same_value(before, after))):
                return
            if node is None:
                changed[element] = LEAF
            else:
                node.compare(before, after, element, changed, removed)
        elif len(old) >= 2 and len(new) >= 2:
            if not same_value(old, new):
                changed[element] = LEAF
        elif len(old) >= 2:
            changed[element] = LEAF if node is None else node.everything(new[0])
            removed[element] = LEAF
        else:
            if old:
                removed[element] = LEAF if node is None else node.everything(old[0])
            changed[element] = LEAF

    def mentioned(self, value: Any) -> Trie | None:
        if type(value) is not list or not value:
            return None
        node = self.item
        out: Trie = {}
        for element, items in self._grouped(value).items():
            single = node is not None and len(items) == 1
            out[element] = with_self(node.mentioned(items[0])) if single and node else LEAF
        return ordered(out)

    def merge(self, left: Any, right: Any) -> Any:
        before = left if type(left) is list else []
        after = right if type(right) is list else []
        if not before:
            return right
        if not after:
            return left
        node = self.item
        old = self._grouped(before)
        mine = {self.element(item): item for item in after}

        def merged(element: str) -> Any:
            theirs = old.get(element)
            # Items that share a key are replaced by the one applied.
            if theirs is None or len(theirs) > 1 or node is None:
                return mine[element]
            return node.merge(theirs[0], mine[element])

        return merge_order([(self.element(item), item) for item in before], list(mine), merged)

    def remove(self, value: Any, trie: Trie) -> Any:
        if type(value) is not list:
            return EMPTIED
        node = self.item
        out = []
        for item in value:
            below = trie.get(self.element(item))
            if below is None:
                out.append(item)
            elif not is_member(below):
                out.append(node.remove(item, below) if node is not None else EMPTIED)
        return out or EMPTIED

    def with_named_parents(self, trie: Trie) -> Trie:
        node = self.item
        if node is None:
            return trie
        return {
            element: node.with_named_parents(below) if below and element[0] == "k" else below
            for element, below in trie.items()
        }

    def reconciled(self, trie: Trie) -> Trie:
        node = self.item
        if node is None:
            return trie
        out = {
            element: node.reconciled(below) if below and element != SELF else below
            for element, below in trie.items()
        }
        return trie if all(out[element] is trie[element] for element in trie) else out


class SetNode:
    """Lists of scalars in which each value counts once."""

    __slots__ = ()

    def element(self, item: Any) -> str:
        if item is None or isinstance(item, dict | list):
            if isinstance(item, list):
                raise PatchTypeError("not supported: associative list with lists as elements")
            what = "an explicit null" if item is None else "a map type"
            raise PatchTypeError(f"associative list without keys has an element that's {what}")
        return value_element(item)

    def everything(self, value: Any) -> Trie:
        if not value or type(value) is not list:
            return LEAF
        return ordered({SELF: LEAF, **{self.element(item): LEAF for item in value}})

    def compare(self, left: Any, right: Any, element: str, changed: Trie, removed: Trie) -> None:
        before = left if type(left) is list else []
        after = right if type(right) is list else []
        if not before and not after:
            changed[element] = LEAF
            return
        old = {self.element(item): LEAF for item in before}
        new = {self.element(item): LEAF for item in after}
        added = {key: LEAF for key in new if key not in old}
        gone = {key: LEAF for key in old if key not in new}
        if added:
            changed[element] = ordered(added)
        if gone:
            removed[element] = ordered(gone)

    def mentioned(self, value: Any) -> Trie | None:
        if type(value) is not list or not value:
            return None
        return ordered({self.element(item): LEAF for item in value})

    def merge(self, left: Any, right: Any) -> Any:
        before = left if type(left) is list else []
        after = right if type(right) is list else []
        if not before:
            return right
        if not after:
            return left
        mine = {self.element(item): item for item in after}
        return merge_order([(self.element(item), item) for item in before], list(mine), mine.__getitem__)

    def remove(self, value: Any, trie: Trie) -> Any:
        if type(value) is not list:
            return EMPTIED
        return [item for item in value if self.element(item) not in trie] or EMPTIED

    def with_named_parents(self, trie: Trie) -> Trie:
        return trie

    def reconciled(self, trie: Trie) -> Trie:
        return trie


def same_value(left: Any, right: Any) -> bool:
    """Equality of JSON values: 1 and 1.0 are the same number, true and 1 are different things.

    Python's own equality, which is much faster, says at once what differs, but takes true for 1.
    """
    if left is right:
        return True
    if left != right:
        return False
    if isinstance(left, dict):
        return all(same_value(inner, right[key]) for key, inner in left.items())
    if isinstance(left, list):
        return all(map(same_value, left, right))
    return isinstance(left, bool) == isinstance(right, bool)


def merge_order(before: list[tuple[str, Any]], after: list[str], merged: Any) -> list[Any]:
    """Live and applied items in one list: applied items in applied order, live ones stay where they were.

    A live item that nobody applies is put before the applied item that followed it.
    """
    applied = set(after)
    live = {element for element, _ in before}
    shared = [element for element in after if element in live]
    wanted = shared.pop(0) if shared else None
    out: list[Any] = []
    done: set[str] = set()
    at, mine = 0, 0
    while at < len(before) or mine < len(after):
        if at < len(before) and mine < len(after):
            element = before[at][0]
            if element == after[mine]:
                done.add(element)
                out.append(merged(element))
                at += 1
                mine += 1
                wanted = shared.pop(0) if shared else None
                continue
            if element in applied and wanted is not None and wanted != element:
                at += 1
                continue
        if at < len(before):
            element, item = before[at]
            if element not in applied:
                out.append(item)
                at += 1
                continue
            if element in done:
                at += 1
        if mine < len(after):
            element = after[mine]
            done.add(element)
            out.append(merged(element))
            mine += 1
            if wanted == element:
                wanted = shared.pop(0) if shared else None
    return out


def with_self(trie: Trie | None) -> Trie:
    if not trie:
        return LEAF
    return trie if SELF in trie else {SELF: LEAF, **trie}
