"""What all of Karpenter's controllers have in common: a name, and a run."""

from __future__ import annotations

from holokube.runtime.reconciler import Controller
from holokube.runtime.stop import StopSignal


class ControllerComponent:
    """A component around one controller."""

    name: str
    _controller: Controller[str]

    async def run(self, stop: StopSignal) -> None:
        """Runs until the stop."""
        await self._controller.run(stop)
