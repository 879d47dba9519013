"""The score that saves pulling images."""

from __future__ import annotations

from tests.builders import JsonObject
from tests.packing.filters.tables import state_of
from tests.packing.objects import make_node, make_pod
from tests.scheduler.scores.questions import points

MIB = 2**20


def node_with(name: str, **images: int) -> JsonObject:
    node = make_node(name)
    listed = [{"names": [f"{image}:latest"], "sizeBytes": mebibytes * MIB} for image, mebibytes in images.items()]
    return {**node, "status": {**node["status"], "images": listed}}


def pod_with(*images: str) -> JsonObject:
    return make_pod(containers=[{"name": f"c{i}", "image": image} for i, image in enumerate(images)])


def test_a_large_image_counts_by_the_share_of_nodes_that_have_it() -> None:
    state = state_of(node_with("a", app=900), node_with("b", app=900), make_node("c"), make_node("d"))
    expected = 100 * (450 - 23) // (1000 - 23)
    assert points(state, pod_with("app"), "ImageLocality") == {"a": expected, "b": expected, "c": 0, "d": 0}


def test_small_images_count_nothing_and_the_largest_not_more_than_all() -> None:
    state = state_of(node_with("a", small=22, huge=5000))
    assert points(state, pod_with("small"), "ImageLocality") == {"a": 0}
    assert points(state, pod_with("huge"), "ImageLocality") == {"a": 100}
    assert points(state, pod_with("huge", "none"), "ImageLocality") == {"a": 100}


def test_a_port_in_the_registry_is_no_tag() -> None:
    state = state_of(node_with("a", **{"registry.example:5000/app": 1000}))
    assert points(state, pod_with("registry.example:5000/app"), "ImageLocality") == {"a": 100}


def test_images_come_and_go_with_nodes_and_rollbacks() -> None:
    state = state_of(node_with("a", app=1000), make_node("b"))
    before = points(state, pod_with("app"), "ImageLocality")
    with state.trial():
        state.update_node(node_with("b", app=1000))
        assert points(state, pod_with("app"), "ImageLocality") == {"a": 100, "b": 100}
        state.remove_node("a")
        assert points(state, pod_with("app"), "ImageLocality") == {"b": 100}
    assert points(state, pod_with("app"), "ImageLocality") == before == {"a": 48, "b": 0}
