"""A claim that does not get on in time is given up, and another may be tried."""

from __future__ import annotations

from typing import Final, NamedTuple

from holokube.karpenter.api.labels import LAUNCHED, REGISTERED
from holokube.karpenter.conditions import CLAIM_CONDITIONS
from holokube.karpenter.metrics import LAUNCH_TIMEOUT, REGISTRATION_TIMEOUT
from holokube.kube.types import JsonObject

LAUNCH_TIMEOUT_S: Final = 300.0
REGISTRATION_TIMEOUT_S: Final = 900.0


class Liveness(NamedTuple):
    """Either of the two, or neither if all is well."""

    look_again_s: float | None = None
    timed_out: str = ""
    """The reason to give the claim up."""


def liveness(claim: JsonObject, now_s: float) -> Liveness:
    """Whether the claim still has time."""
    if CLAIM_CONDITIONS.is_true(claim, REGISTERED):
        return Liveness()
    if not CLAIM_CONDITIONS.is_true(claim, LAUNCHED):
        left_s = LAUNCH_TIMEOUT_S - (now_s - (CLAIM_CONDITIONS.since_s(claim, LAUNCHED) or now_s))
        return Liveness(left_s) if left_s > 0 else Liveness(timed_out=LAUNCH_TIMEOUT)
    left_s = REGISTRATION_TIMEOUT_S - (now_s - (CLAIM_CONDITIONS.since_s(claim, REGISTERED) or now_s))
    return Liveness(left_s) if left_s > 0 else Liveness(timed_out=REGISTRATION_TIMEOUT)
