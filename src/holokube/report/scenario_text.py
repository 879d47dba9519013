"""What a report reads in the text of a scenario, which may be of any kind: results come from files too."""

from __future__ import annotations

from typing import Any

from holokube.kube.yaml_text import YamlError, load_documents


def policy_names(scenario_text: str) -> list[str]:
    """How the scenario calls its policies; those without a name are left out."""
    policies = _spec(scenario_text).get("policies")
    named = (_mapping(policy).get("name") for policy in (policies if isinstance(policies, list) else ()))
    return [name for name in named if isinstance(name, str)]


def description(scenario_text: str) -> str:
    """What the scenario is about, in its own words; empty if it does not say."""
    said = _spec(scenario_text).get("description")
    return said.strip() if isinstance(said, str) else ""


def _spec(scenario_text: str) -> dict[str, Any]:
    try:
        documents = load_documents(scenario_text.encode())
    except YamlError:
        return {}
    return _mapping(_mapping(documents[0] if documents else None).get("spec"))


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
