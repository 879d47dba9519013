"""Which nodes have which images."""

from __future__ import annotations

from holokube.packing.images import ImageTable


def image(size: int, *names: str) -> dict[str, object]:
    return {"names": list(names), "sizeBytes": size}


def test_an_image_is_known_by_all_its_names_on_all_nodes() -> None:
    table = ImageTable()
    table.set(0, [image(5, "a:1", "a@sha256:0")])
    table.set(3, [image(5, "a:1"), image(7, "b:1")])
    assert table.sizes("a:1") == {0: 5, 3: 5}
    assert table.sizes("a@sha256:0") == {0: 5}
    assert table.sizes("c:1") == {}


def test_a_new_list_replaces_the_old_one_and_an_empty_one_forgets() -> None:
    table = ImageTable()
    table.set(0, [image(5, "a:1"), image(7, "b:1")])
    table.set(0, [image(7, "b:1"), image(9, "c:1")])
    assert (table.sizes("a:1"), table.sizes("b:1"), table.sizes("c:1")) == ({}, {0: 7}, {0: 9})
    table.set(0, [])
    table.set(0, [])
    assert not table.sizes("b:1")


def test_a_name_that_a_node_lists_twice_counts_once() -> None:
    table = ImageTable()
    table.set(0, [image(5, "a:1"), image(6, "a:1")])
    assert table.sizes("a:1") == {0: 5}
    table.set(0, [])
    assert table.sizes("a:1") == {}
