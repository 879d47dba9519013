"""The texts of FailedScheduling events and Unschedulable conditions, as users of upstream know them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NO_NODES: Final = "no nodes available to schedule pods"
NOT_HELPFUL: Final = "Preemption is not helpful for scheduling"
NO_VICTIMS: Final = "No preemption victims found for incoming pod"
NEVER_PREEMPTS: Final = "not eligible due to preemptionPolicy=Never."
VICTIMS_ARE_LEAVING: Final = "not eligible due to a terminating pod on the nominated node."
_NO_CLAIMS: Final = "no new claims to deallocate"
_NO_CLAIM_STATE: Final = "not found"
_NOTE_BYTES_MAX: Final = 1024
_BYTES_PER_CHARACTER_MAX: Final = 4


def fit_error(nodes: int, reasons: Mapping[str, int], *, refusal: str = "", after: str = "") -> str:
    """Why a pod fits nowhere: ``0/3 nodes are available: 1 Insufficient cpu, 2 node(s) ...``.

    A ``refusal`` stands for all nodes and takes the place of the reasons, which upstream sorts as texts, count
    first: "10 x" comes before "2 y". What came of attempts to make room is said ``after``.
    """
    message = f"0/{nodes} nodes are available:"
    if refusal:
        message += f" {refusal}."
    elif reasons:
        message += f" {', '.join(sorted(f'{count} {reason}' for reason, count in reasons.items()))}."
    return f"{message} {after}" if after else message


def attempts_to_make_room(refusal: str, preemption: str | None) -> str:
    """What is said after the reasons; ``preemption`` is why it did not help, None if it is not to be tried.

    Before preemption, upstream asks whether device claims could be given back. That question fails, and ends the
    matter, if a filter had refused the pod as such before any node was looked at.
    """
    if refusal:
        return _NO_CLAIM_STATE
    return _NO_CLAIMS if preemption is None else f"{_NO_CLAIMS}, preemption: {preemption}"


def preemption_error(nodes: int, tried: int, reasons: Mapping[str, int]) -> str:
    """Why preemption helps nowhere; nodes that were not tried are those where it could not have helped."""
    return fit_error(nodes, {**reasons, NOT_HELPFUL: nodes - tried} if nodes > tried else reasons)


def event_note(message: str) -> str:
    """A message cut to what an Event can carry."""
    if len(message) <= _NOTE_BYTES_MAX // _BYTES_PER_CHARACTER_MAX:
        return message
    raw = message.encode()
    if len(raw) <= _NOTE_BYTES_MAX:
        return message
    return raw[: _NOTE_BYTES_MAX - 4].decode(errors="ignore") + " ..."
