"""Options that say what hollow nodes look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holokube.base.errors import UsageError
from holokube.hollow.node_template import NodeTemplate, ProfileTemplate
from holokube.hollow.profile import NodeProfile
from holokube.kube import names, quantity

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check_prefix(prefix: str) -> None:
    """A prefix becomes part of names and the value of a label."""
    problems = names.is_dns1123_subdomain(f"{prefix}-999999") + names.is_label_value(prefix)
    if not prefix or problems:
        raise UsageError(
            f"--name-prefix {prefix!r} cannot begin the names of nodes"
            + (f": {problems[0]}" if problems else ""),
            hint="Use lower case letters, digits and dashes, such as node or pool-a.",
        )


def template_maker(path: Path, parameters: Sequence[str]) -> NodeTemplate:
    """From a file."""
    return NodeTemplate.load(path, _pairs("--param", parameters))


def built_in_maker(options: Mapping[str, Any]) -> ProfileTemplate:
    """From the options of the command line."""
    capacity = dict(NodeProfile().capacity)
    for name in ("cpu", "memory", "pods"):
        if options[name] is not None:
            capacity[name] = options[name]
    capacity.update(_pairs("--resource", options["resources"]))
    for name, amount in capacity.items():
        try:
            negative = quantity.parse(amount) < quantity.parse("0")
        except ValueError as error:
            raise UsageError(f"{name}={amount}: {error}", hint="Use quantities such as 4, 500m or 16Gi.") from error
        if negative:
            raise UsageError(f"{name}={amount} is negative", hint="Use quantities such as 4, 500m or 16Gi.")
    profile = NodeProfile(
        capacity=capacity,
        labels=_pairs("--label", options["labels"]),
        taints=[_taint(text) for text in options["taints"]],
    )
    return ProfileTemplate(profile, options["zones"])


def _pairs(option: str, texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise UsageError(f"{option} {text!r} is not of the form KEY=VALUE", hint=f"Write {option} key=value.")
        found[key] = value
    return found


def _taint(text: str) -> dict[str, str]:
    rest, separator, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    if not separator or not key or effect not in _EFFECTS:
        raise UsageError(
            f"--taint {text!r} is not of the form KEY[=VALUE]:EFFECT", hint=f"Effects are {', '.join(_EFFECTS)}."
        )
    return {"key": key, "effect": effect, **({"value": value} if value else {})}
