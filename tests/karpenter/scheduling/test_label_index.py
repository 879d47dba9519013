from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holokube.karpenter.scheduling.label_index import LabelIndex, SpecIndex
from holokube.karpenter.scheduling.topology_specs import GroupKind, GroupSpec, LabelSet

_VALUES = st.sampled_from("xyz")
_LABELS = st.dictionaries(st.sampled_from("abc"), _VALUES, max_size=3)
_EXPRESSIONS = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        st.sampled_from("abc"), st.sampled_from(("In", "NotIn")), st.lists(_VALUES, min_size=1, max_size=2),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        st.sampled_from("abc"), st.sampled_from(("Exists", "DoesNotExist")),
    ),
)  # fmt: skip
_SELECTORS = st.one_of(
    st.none(),
    st.builds(
        lambda labels, expressions: {"matchLabels": labels, "matchExpressions": expressions},
        _LABELS, st.lists(_EXPRESSIONS, max_size=2),
    ),
)  # fmt: skip


@given(st.lists(_SELECTORS, max_size=6), st.lists(_LABELS, max_size=6))
def test_an_index_finds_what_trying_every_pair_finds(selectors: list[Any], labels: list[dict[str, str]]) -> None:
    specs = [
        GroupSpec(number, number, GroupKind.AFFINITY, "zone", frozenset({"default"}), selector)
        for number, selector in enumerate(selectors)
    ]
    sets = [LabelSet("default" if number % 3 else "other", one) for number, one in enumerate(labels)]
    by_spec: SpecIndex[int] = SpecIndex()
    for spec in specs:
        by_spec.add(spec, spec.number)
    by_labels = LabelIndex(sets)
    for one in sets:
        assert sorted(by_spec.selecting(one)) == [spec.number for spec in specs if spec.selects(one)]
    for spec in specs:
        assert set(by_labels.counted_by(spec)) == {one for one in sets if spec.counts_bound(one)}
