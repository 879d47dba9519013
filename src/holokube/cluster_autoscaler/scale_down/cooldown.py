"""When nothing may be removed, because something was added, removed or went wrong a moment ago."""

from __future__ import annotations

from dataclasses import dataclass, field

from holokube.cluster_autoscaler.options import AutoscalerOptions

NEVER_S = float("-inf")


@dataclass(slots=True)
class LastActivity:
    """When things last happened, in Unix seconds."""

    scale_up_s: float = NEVER_S
    deletion_s: float = NEVER_S
    failure_s: float = NEVER_S

    @classmethod
    def at_start(cls, now_s: float) -> LastActivity:
        """A process that has just begun knows nothing; upstream pretends that everything was an hour ago."""
        return cls(now_s - 3600.0, now_s - 3600.0, now_s - 3600.0)


def cooldown_reason(
    options: AutoscalerOptions, now_s: float, last: LastActivity, *, is_forbidden: bool = False
) -> str | None:
    """Why scale-down has to wait; None if it does not.

    ``is_forbidden`` when this turn found pods too young to be helped, for which room may be needed soon. With
    delays per group (``LocalDelays``) that is the only reason for the cluster as a whole.
    """
    if is_forbidden:
        return "pending pods are too new to be helped yet"
    if options.scale_down_delay_type_local:
        return None
    for what, at_s, delay_s in (
        ("a scale-up", last.scale_up_s, options.scale_down_delay_after_add_s),
        ("a failed scale-down", last.failure_s, options.scale_down_delay_after_failure_s),
        ("a scale-down", last.deletion_s, options.scale_down_delay_after_delete_s),
    ):
        if at_s + delay_s > now_s:
            return f"{what} was {now_s - at_s:.0f} s ago, less than {delay_s:.0f} s"
    return None


@dataclass(slots=True)
class LocalDelays:
    """The same delays for each group by itself (``--scale-down-delay-type-local``)."""

    scale_ups_s: dict[str, float] = field(default_factory=dict)
    deletions_s: dict[str, float] = field(default_factory=dict)
    failures_s: dict[str, float] = field(default_factory=dict)

    def scaled_up(self, group_id: str, now_s: float) -> None:
        """A group was asked to grow."""
        self.scale_ups_s[group_id] = now_s

    def scaled_down(self, group_id: str, now_s: float) -> None:
        """A node of a group was deleted."""
        self.deletions_s[group_id] = now_s

    def failed(self, group_id: str, now_s: float) -> None:
        """A node of a group could not be deleted."""
        self.failures_s[group_id] = now_s

    def reason(self, group_id: str, options: AutoscalerOptions, now_s: float) -> str | None:
        """Why the nodes of a group are no candidates yet; None if they are."""
        for what, times_s, delay_s in (
            ("scaled up", self.scale_ups_s, options.scale_down_delay_after_add_s),
            ("scaled down", self.deletions_s, options.scale_down_delay_after_delete_s),
            ("failed to scale down", self.failures_s, options.scale_down_delay_after_failure_s),
        ):
            at_s = times_s.get(group_id, NEVER_S)
            if at_s + delay_s > now_s:
                return f"group {group_id} {what} {now_s - at_s:.0f} s ago, less than {delay_s:.0f} s"
        return None
