"""Forgets claims that were made and ended so quickly that no event told of it: they would hold everything up."""

from __future__ import annotations

from typing import Final

from holokube.base.clock import Clock
from holokube.client.client import Client
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.state.cluster import ClusterState
from holokube.kube.errors import NotFound
from holokube.runtime.informers import InformerSet
from holokube.runtime.result import Result
from holokube.runtime.singleton import Singleton
from holokube.runtime.stop import StopSignal

PERIOD_S: Final = 30.0
_LATER: Final = Result(requeue_after_s=PERIOD_S)


class StatePurge:
    """A component: asks the server about claims that are known from their creation alone."""

    name = "state.nodeclaimgc"

    def __init__(self, clock: Clock, client: Client, informers: InformerSet, state: ClusterState) -> None:
        self._client = client
        self._claims = informers.get(NODE_CLAIMS)
        self._state = state
        self._loop = Singleton(clock, self.name, self.reconcile)

    async def run(self, stop: StopSignal) -> None:
        await self._loop.run(stop)

    async def reconcile(self) -> Result:
        """One round."""
        for name in self._state.unlaunched_claims():
            if self._claims.lister.get(name) is None:
                try:
                    await self._client.get(NODE_CLAIMS, name)
                except NotFound:
                    self._state.forget_claim(name)
        return _LATER
