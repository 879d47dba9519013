"""A namespace lingers after its deletion, until its own finalizers are gone."""

from __future__ import annotations

from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.namespaces import Namespace, check_finalizers
from holokube.kube.types import JsonObject
from tests.apiserver.worlds import World, in_world


def test_a_new_namespace_is_active_and_carries_its_name() -> None:
    async def body(world: World) -> JsonObject:
        return await world.create("namespaces", {"metadata": {"name": "lab"}, "status": {"phase": "Terminating"}})

    made = in_world(body)
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    assert made["status"] == {"phase": "Active"}
    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": "lab"}


def test_a_generated_name_becomes_the_label_as_well() -> None:
    async def body(world: World) -> JsonObject:
        return await world.create("namespaces", {"metadata": {"generateName": "lab-"}})

    meta = in_world(body)["metadata"]
    assert meta["labels"] == {"kubernetes.io/metadata.name": meta["name"]}


def test_a_deleted_namespace_terminates_and_stays() -> None:
    async def body(world: World) -> JsonObject:
        await world.create("namespaces", {"metadata": {"name": "lab"}})
        await world.delete("namespaces", "lab")
        # Changes of other fields must not make it go away.
        return await world.patch("namespaces", "lab", {"metadata": {"labels": {"still": "here"}}})

    gone = in_world(body)
    assert gone["status"]["phase"] == "Terminating"
    assert gone["metadata"]["deletionTimestamp"]
    assert "deletionGracePeriodSeconds" not in gone["metadata"]


def test_it_lingers_only_while_it_has_finalizers_of_its_own() -> None:
    assert Namespace().lingers({"spec": {"finalizers": ["kubernetes"]}})
    assert not Namespace().lingers({"spec": {}})


def test_finalizers_are_qualified_names_or_the_one_of_kubernetes() -> None:
    errors = FieldErrors()
    check_finalizers({"spec": {"finalizers": ["kubernetes", "example.com/mine", "mine"]}}, errors, indexed=True)
    [cause] = errors.causes
    assert cause.field == "spec.finalizers[2]"
    assert cause.message == 'Invalid value: "mine": name is neither a standard finalizer name nor is it fully qualified'
