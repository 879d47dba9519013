"""What is known of a node's labels, and how pods placed on it narrow that down.

Claims that took the same kinds of pods are in the same state, so that a step from one state to another is worked out
once, however many claims and pods take it. The hostname is left out: it is a claim's or a node's own, and would make
every state unique.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from holokube.kube.requirements import HOSTNAME_LABEL, Requirement, Requirements

_UNKNOWN: Final = object()


class RequirementState:
    """One state. Get it from :class:`StateSpace`; states are compared by identity."""

    __slots__ = ("_filters", "_narrowed", "_space", "_with", "number", "requirements")

    def __init__(self, space: StateSpace, requirements: Requirements, number: int) -> None:
        self.requirements = requirements
        self.number = number
        self._space = space
        self._with: dict[Requirements, RequirementState | None] = {}
        self._narrowed: dict[tuple[Requirement, ...], RequirementState | None] = {}
        self._filters: dict[Requirements, bool] = {}

    def taking(self, wanted: Requirements) -> RequirementState | None:
        """The state after a pod (or volume) with these requirements; None if they cannot be met here."""
        if not wanted:
            return self
        found = self._with.get(wanted, _UNKNOWN)
        if found is _UNKNOWN:
            found = None
            if self.requirements.is_compatible(wanted, allow_undefined=self._space.allow_undefined):
                found = self._space.state(self.requirements.merged(wanted))
            self._with[wanted] = found
        return found  # type: ignore[return-value]  # the marker was replaced above

    def narrowed(self, domains: tuple[Requirement, ...]) -> RequirementState | None:
        """The state once topology has chosen domains.

        A key that is not defined here, and may not be left undefined, cannot be narrowed; but if two choices exclude
        each other, "does not exist" is what remains, and that a missing key satisfies.
        """
        if not domains:
            return self
        found = self._narrowed.get(domains, _UNKNOWN)
        if found is _UNKNOWN:
            found = None
            chosen = self.requirements.adding(*domains)
            if self.requirements.is_compatible(chosen, allow_undefined=self._space.allow_undefined):
                found = self._space.state(chosen)
            self._narrowed[domains] = found
        return found  # type: ignore[return-value]  # the marker was replaced above

    def with_min_values(self, lowered: Mapping[str, int]) -> RequirementState:
        """The same state with smaller ``minValues``."""
        return self._space.state(Requirements(
            Requirement(r.key, r.complement, r.values, r.gte, r.lte, lowered.get(r.key, r.min_values))
            for r in self.requirements.values()
        ))  # fmt: skip

    def serves(self, wanted: Requirements) -> bool:
        """Whether a node in this state counts for a topology filter; nothing may be left undefined there."""
        found = self._filters.get(wanted)
        if found is None:
            found = self._filters[wanted] = self.requirements.is_compatible(wanted)
        return found

    def __repr__(self) -> str:
        return f"<RequirementState {self.number}: {self.requirements}>"


class StateSpace:
    """All states that were met, for nodes that may leave the same keys undefined."""

    __slots__ = ("_known", "allow_undefined")

    def __init__(self, allow_undefined: Collection[str] = frozenset()) -> None:
        self.allow_undefined = allow_undefined
        self._known: dict[Requirements, RequirementState] = {}

    def state(self, requirements: Requirements) -> RequirementState:
        """The state with exactly these requirements; a hostname among them is dropped."""
        if HOSTNAME_LABEL in requirements:
            requirements = requirements.without(HOSTNAME_LABEL)
        found = self._known.get(requirements)
        if found is None:
            found = self._known[requirements] = RequirementState(self, requirements, len(self._known))
        return found
