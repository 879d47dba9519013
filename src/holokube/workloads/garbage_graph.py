"""The garbage collector's picture of who owns whom, kept up change by change.

Nodes are known by uid. An owner that somebody refers to but nobody has seen yet is in the graph as a virtual
node: whether it exists is for the collector to find out. Changes of the graph say whose fate has to be looked
at (``to_delete``) and which deleted objects wait for their dependents to be let go (``to_orphan``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

FOREGROUND_FINALIZER: Final = "foregroundDeletion"
ORPHAN_FINALIZER: Final = "orphan"

_tuple = tuple.__new__
"""Makes a named tuple as its constructor does, which is a function of Python: all objects of a cluster come by here."""


class Identity(NamedTuple):
    """Where an object, or what a reference points to, would be found."""

    api_version: str
    kind: str
    namespace: str
    """The namespace of the object; for a reference, that of the object which holds it."""
    name: str
    uid: str

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Identity:
        get, meta = obj.get, obj["metadata"]
        return _tuple(cls, (
            get("apiVersion") or "", get("kind") or "", meta.get("namespace") or "", meta["name"],
            meta.get("uid") or "",
        ))  # fmt: skip

    def __str__(self) -> str:
        """As upstream prints it in its events."""
        return f"[{self.api_version}/{self.kind}, namespace: {self.namespace}, name: {self.name}, uid: {self.uid}]"


class OwnerReference(NamedTuple):
    """One element of ``metadata.ownerReferences``."""

    api_version: str
    kind: str
    name: str
    uid: str
    blocks: bool
    """``blockOwnerDeletion``: an owner deleted in the foreground waits for this dependent."""

    @classmethod
    def from_json(cls, reference: Mapping[str, Any]) -> OwnerReference:
        get = reference.get
        return _tuple(cls, (
            get("apiVersion") or "", get("kind") or "", get("name") or "", get("uid") or "",
            bool(get("blockOwnerDeletion")),
        ))  # fmt: skip

    def identity(self, namespace: str) -> Identity:
        """What it points to, seen from an object in a namespace."""
        return _tuple(Identity, (self.api_version, self.kind, namespace, self.name, self.uid))

    def names(self, identity: Identity) -> bool:
        """Whether kind and name are the object's; a uid alone could be pasted from anywhere."""
        return (
            self.kind == identity.kind
            and self.name == identity.name
            and (
                self.api_version == identity.api_version
                or group_of(self.api_version) == group_of(identity.api_version)
            )
        )


def group_of(api_version: str) -> str:
    """The group alone: owners outlive the version by which they were referred to."""
    group, slash, _ = api_version.rpartition("/")
    return group if slash else ""


def owners_of(obj: Mapping[str, Any]) -> tuple[OwnerReference, ...]:
    references = obj["metadata"].get("ownerReferences")
    return tuple(map(OwnerReference.from_json, references)) if references else ()


def is_waiting(obj: Mapping[str, Any], finalizer: str) -> bool:
    """Whether the object is being deleted and held back by the finalizer."""
    meta = obj["metadata"]
    return bool(meta.get("deletionTimestamp")) and finalizer in (meta.get("finalizers") or ())


@dataclass(slots=True, eq=False)
class Node:
    """An object, or the shadow of one that was only heard of."""

    identity: Identity
    owners: tuple[OwnerReference, ...] = ()
    dependents: dict[str, Node] = field(default_factory=dict)
    virtual: bool = False
    being_deleted: bool = False
    deleting_dependents: bool = False
    """It is deleted in the foreground: dependents first."""

    def blocking_dependents(self) -> list[Node]:
        uid = self.identity.uid
        blocking = []
        for node in self.dependents.values():
            for owner in node.owners:
                if owner.uid == uid and owner.blocks:
                    blocking.append(node)
                    break
        return blocking


@dataclass(slots=True)
class Effects:
    """What a change of the graph asks the collector to look at; ordered sets of uids."""

    to_delete: dict[str, None] = field(default_factory=dict)
    to_orphan: dict[str, None] = field(default_factory=dict)
    wrong_namespace: list[tuple[Identity, Identity]] = field(default_factory=list)
    """Objects that refer to an owner in another namespace, and what they refer to."""


NOTHING: Final = Effects()
"""No effect at all; nobody may change it."""


class OwnershipGraph:
    """Owners and dependents of everything that the collector watches."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}
        # What the next change writes its effects to. Most have none, and leave it for the one after them.
        self._effects = Effects()
        # The references that were last read. Objects that are made together share them.
        self._references: object = None
        self._owners: tuple[OwnerReference, ...] = ()

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, uid: str) -> Node | None:
        return self._nodes.get(uid)

    def observe(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Effects:
        """Takes over one change as an informer tells it; ``NOTHING`` if it raises no question, as most do not."""
        effects = self._effects
        if new is None:
            assert old is not None
            self._forget(old["metadata"].get("uid") or "", effects)
        else:
            meta = new["metadata"]
            uid = meta.get("uid")
            if not uid:
                return NOTHING
            node = self._nodes.get(uid)
            if node is None:
                references = meta.get("ownerReferences")
                if references is not self._references:
                    self._references, self._owners = references, owners_of(new)
                node = self._nodes[uid] = Node(Identity.of(new), self._owners)
                if self._owners:
                    self._link(node, self._owners, effects)
            elif node.virtual:
                self._materialise(node, Identity.of(new), effects)
                self._take_owners(node, owners_of(new), effects)
            elif old is None or not _same(old["metadata"].get("ownerReferences"), meta.get("ownerReferences")):
                self._take_owners(node, owners_of(new), effects)
            if meta.get("deletionTimestamp"):
                node.being_deleted = True
                if meta.get("finalizers"):
                    self._transitions(node, old, new, effects)
        if not (effects.to_delete or effects.to_orphan or effects.wrong_namespace):
            return NOTHING
        self._effects = Effects()
        return effects

    def found_absent(self, identity: Identity) -> Effects:
        """Takes over that a live look found nothing there, or another object of that name."""
        effects = Effects()
        node = self._nodes.get(identity.uid)
        if node is None:
            return effects
        matching: list[Node] = []
        others: list[Node] = []
        for dependent in node.dependents.values():
            (matching if _refers_to(dependent, identity) else others).append(dependent)
        if not node.virtual and node.identity != identity:
            # The object itself is known under another name: only those who took it for this one are wrong.
            effects.to_delete.update((dependent.identity.uid, None) for dependent in matching)
        elif node.virtual and others:
            # The dependents disagree about what this uid is: the next look is at what the others say.
            effects.to_delete.update((dependent.identity.uid, None) for dependent in matching)
            if node.identity == identity:
                node.identity = _other_identity(others, identity)
                effects.to_delete[identity.uid] = None
        else:
            self._forget(identity.uid, effects)
        return effects

    def _materialise(self, node: Node, identity: Identity, effects: Effects) -> None:
        node.virtual = False
        if node.identity != identity:
            for dependent in node.dependents.values():
                if not _refers_to(dependent, identity):
                    if _wrong_namespace(dependent.identity, identity):
                        self._report(dependent, identity.uid, effects)
                    effects.to_delete[dependent.identity.uid] = None
        node.identity = identity

    def _take_owners(self, node: Node, owners: tuple[OwnerReference, ...], effects: Effects) -> None:
        if owners == node.owners:
            return
        before = {owner.uid: owner for owner in node.owners}
        after = {owner.uid: owner for owner in owners}
        for uid, owner in before.items():
            still = after.get(uid)
            if owner.blocks and (still is None or not still.blocks):
                waiting = self._nodes.get(uid)
                if waiting is not None and waiting.deleting_dependents:
                    effects.to_delete[uid] = None
        node.owners = owners
        self._link(node, [owner for uid, owner in after.items() if uid not in before], effects)
        for uid in before.keys() - after.keys():
            self._unlink(node, uid)

    def _link(self, node: Node, owners: Iterable[OwnerReference], effects: Effects) -> None:
        (_, _, namespace, _, uid), suspicious = node.identity, False
        for reference in owners:
            owner = self._nodes.get(reference.uid)
            if owner is None:
                owner = Node(reference.identity(namespace), virtual=True)
                self._nodes[reference.uid] = owner
                # Whether it exists, the next look tells; if its informer is only late, nothing happens.
                effects.to_delete[reference.uid] = None
            elif owner.identity == (reference.api_version, reference.kind, namespace, reference.name, reference.uid):
                # As of nearly all: it is what it is called, and in the same namespace, seen or only heard of.
                pass
            elif not reference.names(owner.identity):
                suspicious = True
            elif owner.virtual:
                suspicious |= owner.identity.namespace != namespace
            elif _wrong_namespace(node.identity, owner.identity):
                self._report(node, reference.uid, effects)
                suspicious = True
            owner.dependents[uid] = node
            if owner.deleting_dependents:
                effects.to_delete[uid] = None
        if suspicious:
            effects.to_delete[uid] = None

    def _unlink(self, node: Node, owner_uid: str) -> Node | None:
        """The owner, unless it is not known, or was known only because of this dependent."""
        owner = self._nodes.get(owner_uid)
        if owner is None:
            return None
        owner.dependents.pop(node.identity.uid, None)
        if owner.virtual and not owner.dependents:
            del self._nodes[owner_uid]
            return None
        return owner

    def _forget(self, uid: str, effects: Effects) -> None:
        node = self._nodes.pop(uid, None)
        if node is None:
            return
        if node.dependents:
            effects.to_delete.update(dict.fromkeys(node.dependents))
        for reference in node.owners:
            owner = self._unlink(node, reference.uid)
            if owner is not None and owner.deleting_dependents:
                effects.to_delete[reference.uid] = None

    def _transitions(
        self, node: Node, old: Mapping[str, Any] | None, new: Mapping[str, Any], effects: Effects
    ) -> None:
        uid = node.identity.uid
        if is_waiting(new, ORPHAN_FINALIZER) and not (old is not None and is_waiting(old, ORPHAN_FINALIZER)):
            effects.to_orphan[uid] = None
        elif is_waiting(new, FOREGROUND_FINALIZER) and not node.deleting_dependents:
            node.deleting_dependents = True
            effects.to_delete.update(dict.fromkeys(node.dependents))
            # Those that hold it back are looked at now, and it itself when the last of them is gone or lets go of it.
            if not node.blocking_dependents():
                effects.to_delete[uid] = None

    @staticmethod
    def _report(dependent: Node, owner_uid: str, effects: Effects) -> None:
        for reference in dependent.owners:
            if reference.uid == owner_uid:
                wrong = reference.identity(dependent.identity.namespace)
                effects.wrong_namespace.append((dependent.identity, wrong))
                return


def _same(before: Any, after: Any) -> bool:
    """In process, what a write leaves alone is the very same object."""
    return before is after or bool(before == after)


def _refers_to(dependent: Node, identity: Identity) -> bool:
    """Whether a dependent means this very object; cluster-wide owners may have dependents anywhere."""
    return any(
        reference.uid == identity.uid and reference.names(identity) for reference in dependent.owners
    ) and identity.namespace in ("", dependent.identity.namespace)


def _wrong_namespace(dependent: Identity, owner: Identity) -> bool:
    return bool(owner.namespace) and owner.namespace != dependent.namespace


def _other_identity(dependents: list[Node], tried: Identity) -> Identity:
    """What the dependents call the owner, the next after the one tried, so that all get their turn."""
    called = sorted(
        {
            reference.identity(dependent.identity.namespace)
            for dependent in dependents
            for reference in dependent.owners
            if reference.uid == tried.uid
        }
    )
    return next((identity for identity in called if identity > tried), called[0])
