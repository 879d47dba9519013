"""Profiles: the same scheduler under several names, with other filters and scores for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from holokube.base.errors import UsageError
from holokube.kube.names import is_dns1123_subdomain
from holokube.packing.filters import DEFAULT_FILTERS
from holokube.scheduler.pod_facts import DEFAULT_SCHEDULER
from holokube.scheduler.scores.profile import ScoreProfile

FILTERS: Final = tuple(rule.name for rule in DEFAULT_FILTERS)


@dataclass(frozen=True, slots=True)
class Profile:
    """How the pods that name a scheduler are placed."""

    scheduler_name: str = DEFAULT_SCHEDULER
    scores: ScoreProfile = field(default_factory=ScoreProfile)
    """The weights of the scores; zero leaves one out."""
    disabled_filters: frozenset[str] = frozenset()
    """Names of filters that are not asked."""
    preempts: bool = True
    """Whether pods of this profile may drive others away (the plugin ``DefaultPreemption``)."""


DEFAULT: Final = Profile()


def checked(profiles: Sequence[Profile]) -> tuple[Profile, ...]:
    """The profiles, if they make sense together."""
    if not profiles:
        raise UsageError("the scheduler has no profile", hint="Give at least one, for example the default.")
    seen: set[str] = set()
    for profile in profiles:
        name = profile.scheduler_name
        problems = is_dns1123_subdomain(name)
        if problems:
            raise UsageError(
                f'"{name}" cannot be the name of a scheduler: {problems[0]}',
                hint="It must be what pods can have as spec.schedulerName.",
            )
        if name in seen:
            raise UsageError(
                f'there are two profiles for the scheduler name "{name}"', hint="Give each a name of its own."
            )
        seen.add(name)
        unknown = sorted(profile.disabled_filters - set(FILTERS))
        if unknown:
            raise UsageError(
                f'profile "{name}" disables filters that do not exist: {", ".join(unknown)}',
                hint=f"There are {', '.join(FILTERS)}.",
            )
    return tuple(profiles)

