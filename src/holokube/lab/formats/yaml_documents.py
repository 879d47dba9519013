"""YAML that Go reads as it was meant: strings that Go would take for something else are quoted."""

from __future__ import annotations

import re
from typing import Any

import yaml

_DumperBase: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_DumperBase):  # type: ignore[misc]  # the C dumper has no type
    """Block style, in the order given."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


for _tag, _pattern, _first in (
    ("float", r"^[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$", "-+0123456789"),
    ("int", r"^[-+]?0[oO][0-7_]+$", "-+0"),
    ("bool", r"^(?:y|Y|n|N)$", "yYnN"),
):
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def yaml_document(value: Any) -> str:
    """One document, without the line of dashes before it."""
    text: str = yaml.dump(
        value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, sort_keys=False, width=4096
    )
    return text
