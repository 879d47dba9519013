"""Templates are the same if they mean the same, however they are written."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from holokube.workloads.pod_templates import POD_TEMPLATE_HASH, _plain, same_template

LABELS = st.dictionaries(st.sampled_from(["app", "tier", POD_TEMPLATE_HASH]), st.sampled_from(["a", "b"]), max_size=3)
METADATA = st.one_of(
    st.none(),
    st.fixed_dictionaries(
        {}, optional={
            "labels": st.one_of(st.none(), LABELS), "annotations": st.sampled_from([None, {}, {"x": "1"}]),
            "finalizers": st.sampled_from([None, [], ["f"]]),
        },
    ),
)  # fmt: skip
SPECS = st.sampled_from([
    None, {}, {"containers": [{"name": "a"}]}, {"containers": [{"name": "a", "args": []}]},
    {"containers": [{"name": "a"}], "volumes": None}, {"containers": [{"name": "b"}]},
])  # fmt: skip
TEMPLATES = st.fixed_dictionaries({}, optional={"metadata": METADATA, "spec": SPECS, "more": st.sampled_from([1, 2])})


# A busy machine is no reason to fail.
@settings(deadline=None, max_examples=300)
@given(TEMPLATES, TEMPLATES)
def test_what_is_the_same_at_sight_is_the_same_in_the_plain_form(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert same_template(left, right) == (_plain(left) == _plain(right))
    hashed = {**left, "metadata": {**(left.get("metadata") or {}), "labels": {POD_TEMPLATE_HASH: "1"}}}
    assert same_template(left, hashed) == (_plain(left) == _plain(hashed))


def test_the_hash_label_makes_no_difference_and_any_other_does() -> None:
    plain: dict[str, Any] = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a"}]}}

    def labelled(labels: dict[str, str]) -> dict[str, Any]:
        return {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "a"}]}}

    assert same_template(plain, labelled({"app": "a", POD_TEMPLATE_HASH: "x"}))
    assert same_template(labelled({"app": "a", POD_TEMPLATE_HASH: "y"}), labelled({"app": "a", POD_TEMPLATE_HASH: "x"}))
    assert not same_template(plain, labelled({"app": "a", "tier": "x"}))
    assert not same_template(plain, {**plain, "spec": {"containers": [{"name": "b"}]}})
