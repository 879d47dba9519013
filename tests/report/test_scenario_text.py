from __future__ import annotations

import pytest

from holokube.report.scenario_text import description, policy_names


def test_a_scenario_says_what_it_is_about_and_whom_it_compares() -> None:
    source = "spec:\n  description: >\n    A day\n    of a shop.\n  policies:\n  - karpenter\n  - {name: eager}\n"
    assert description(source) == "A day of a shop."
    assert policy_names(source) == ["eager"]


@pytest.mark.parametrize("source", ["", "{", "- a", "spec: 1", "spec: {description: 1, policies: 2}"])
def test_any_other_text_says_nothing(source: str) -> None:
    assert (description(source), policy_names(source)) == ("", [])
