"""priority: the group that the user likes best, by a ConfigMap of regular expressions for group ids.

    priorities: |-
      10:
        - .*spot.*
      50:
        - .*ondemand.*

The highest number with a match wins. While any group matches, groups without a match are not used at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import yaml

from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.scale_up.option import Option

CONFIG_MAP: Final = "cluster-autoscaler-priority-expander"
CONFIG_KEY: Final = "priorities"

# Upstream starts from here, so that priorities below are never chosen.
_LOWEST: Final = -1

Priorities = Mapping[int, Sequence[re.Pattern[str]]]


class PrioritiesError(ValueError):
    """The ConfigMap does not say what it should."""


class PriorityExpander:
    """See the module."""

    name = "priority"

    def best_options(self, options: Sequence[Option], ctx: ExpanderContext) -> list[Option]:
        """Those of the highest priority; all of them while the ConfigMap is missing or wrong, or matches none."""
        if not options:
            return []
        priorities = _load(ctx)
        if priorities is None:
            return list(options)
        ranked: list[tuple[int, Option]] = []
        for option in options:
            matching = [rank for rank, patterns in priorities.items()
                        if any(pattern.search(option.group_id) for pattern in patterns)]
            if not matching:
                ctx.warn("PriorityConfigMapNotMatchedGroup",
                         f"Priority expander: node group {option.group_id} not found in priority expander "
                         "configuration. The group won't be used.")
                continue
            ctx.score(option, float(max(matching)), f"priority {max(matching)}")
            if max(matching) >= _LOWEST:
                ranked.append((max(matching), option))
        if not ranked:
            ctx.warn("PriorityConfigMapNoGroupMatched",
                     "Priority expander: no priorities info found for any of the expansion options. "
                     "No options filtered.")
            return list(options)
        highest = max(rank for rank, _ in ranked)
        return [option for rank, option in ranked if rank == highest]


def _load(ctx: ExpanderContext) -> Priorities | None:
    config_map = ctx.config_maps.get(CONFIG_MAP)
    if config_map is None:
        return None
    text = (config_map.get("data") or {}).get(CONFIG_KEY)
    if text is None:
        ctx.warn("PriorityConfigMapInvalid",
                 f"Wrong configmap for priority expander, doesn't contain {CONFIG_KEY} key. Ignoring update.")
        return None
    try:
        return parse_priorities(text)
    except PrioritiesError as error:
        ctx.warn("PriorityConfigMapInvalid",
                 f"Wrong configuration for priority expander: {error}. Ignoring update.")
        return None


def parse_priorities(text: str) -> Priorities:
    """The patterns by priority, from the text of the ConfigMap."""
    if not text:
        raise PrioritiesError(
            f"priority configuration in {CONFIG_MAP} configmap is empty; please provide valid configuration"
        )
    try:
        config = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise PrioritiesError(f"Can't parse YAML with priorities in the configmap: {error}") from error
    if config is None:
        return {}
    if not isinstance(config, dict):
        raise PrioritiesError("Can't parse YAML with priorities in the configmap: it is not a map")
    priorities: dict[int, list[re.Pattern[str]]] = {}
    for key, rules in config.items():
        rank = _rank(key)
        if not isinstance(rules, list) or not all(isinstance(rule, str) for rule in rules):
            if rules is None:
                continue
            raise PrioritiesError(
                f"Can't parse YAML with priorities in the configmap: priority {rank} needs a list of strings"
            )
        for rule in rules:
            try:
                priorities.setdefault(rank, []).append(re.compile(rule))
            except re.error as error:
                raise PrioritiesError(
                    f"Can't compile regexp rule for priority {rank} and rule {rule}: {error}"
                ) from error
    return priorities


def _rank(key: object) -> int:
    if isinstance(key, int) and not isinstance(key, bool):
        return key
    try:
        return int(str(key))
    except ValueError as error:
        raise PrioritiesError(
            f"Can't parse YAML with priorities in the configmap: {key!r} is not an integer"
        ) from error
