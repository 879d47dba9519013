from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holokube.client.cache import Cache, object_key
from holokube.kube.selectors import LabelSelector
from holokube.workloads.pod_indexes import LABEL_INDEX, by_label, selected_pods

LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
SELECTORS = ("", "a=x", "b=y,a=x", "a!=x", "a in (x,y)", "a in (x),b", "!a", "a=x,a=y")


@given(st.lists(st.tuples(st.sampled_from(["one", "two"]), LABELS), max_size=8), st.sampled_from(SELECTORS))
def test_what_is_found_by_label_is_what_a_look_at_all_pods_finds(
    drawn: list[tuple[str, dict[str, str]]], text: str
) -> None:
    pods = Cache({LABEL_INDEX: by_label})
    for number, (space, labels) in enumerate(drawn):
        pod: dict[str, Any] = {"metadata": {"name": f"p{number}", "namespace": space, "labels": labels}}
        pods.put(object_key(pod), pod)
    for selector in (LabelSelector.parse(text), LabelSelector.nothing()):
        assert selected_pods(pods, "one", selector) == pods.list("one", selector=selector)


def test_a_pod_is_found_by_its_present_labels() -> None:
    pods = Cache({LABEL_INDEX: by_label})
    for label in ("x", "y"):
        pods.put("one/p", {"metadata": {"name": "p", "namespace": "one", "labels": {"a": label}}})
    assert selected_pods(pods, "one", LabelSelector.parse("a=x")) == []
    assert len(selected_pods(pods, "one", LabelSelector.parse("a=y"))) == 1
    pods.remove("one/p")
    assert selected_pods(pods, "one", LabelSelector.parse("a=y")) == []
