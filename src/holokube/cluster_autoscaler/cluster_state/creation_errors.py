"""Machines that could not be made, by what went wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from holokube.cluster_autoscaler.cloud.provider import ErrorClass, Instance, InstanceState


class ErrorCode(NamedTuple):
    """What machines failed of."""

    code: str
    error_class: ErrorClass

    def __str__(self) -> str:
        return f"{self.error_class}.{self.code}"


class Failures(NamedTuple):
    """Machines of a group that failed of the same thing."""

    instances: list[Instance]
    messages: list[str]
    """Each once, in the order in which they were met."""

    def text(self) -> str:
        """The messages on one line."""
        return ", ".join(self.messages) + (", ..." if len(self.messages) > _MESSAGES_MAX else "")


_MESSAGES_MAX = 3


def by_code(instances: Iterable[Instance]) -> dict[ErrorCode, Failures]:
    """The failed ones; an instance counts as failed if it is being created and carries an error."""
    found: dict[ErrorCode, Failures] = {}
    for instance in instances:
        if instance.error is None or instance.state is not InstanceState.CREATING:
            continue
        failures = found.setdefault(ErrorCode(instance.error.code, instance.error.error_class), Failures([], []))
        failures.instances.append(instance)
        if instance.error.message not in failures.messages:
            failures.messages.append(instance.error.message)
    return found


def failed_ids(instances: Sequence[Instance]) -> set[str]:
    """The ids of all that failed."""
    return {instance.id for failures in by_code(instances).values() for instance in failures.instances}
