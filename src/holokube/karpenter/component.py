"""What all of Karpenter's controllers have in common: a name, and a run."""

from __future__ import annotations

from holokube.runtime.reconciler import Controller
from holokube.runtime.stop import StopSignal
from holokube.runtime.workqueue import DUE_TOLERANCE_S


class ControllerComponent:
    """A component around one controller."""

    name: str
    _controller: Controller[str]

    def _is_due(self) -> bool:
        """Whether the time of a later look has come.

        Whatever wakes the controller then makes it look. A change that is found not to concern it goes by unheard, but
        not at such a moment, so that looks come in the same order among all that happens in it.
        """
        return self._controller.queue.has_due

    async def run(self, stop: StopSignal) -> None:
        """Runs until the stop."""
        await self._controller.run(stop)


def next_turn_s(due_s: float, every_s: float, now_s: float) -> float:
    """When the next of the turns comes of which one was, or is, due at a time of the monotonic clock.

    Step by step, as turns come: a product would be rounded otherwise than the sums. A turn that comes at this very
    instant has been before whatever happens in it.
    """
    while due_s <= now_s + DUE_TOLERANCE_S:
        due_s += every_s
    return due_s
