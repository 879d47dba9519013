"""Commands that are being carried out: each waits for its replacements, then its nodes go."""

from __future__ import annotations

import asyncio
from typing import Final

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.karpenter import events
from holokube.karpenter.api.resources import NODE_CLAIMS
from holokube.karpenter.component import ControllerComponent
from holokube.karpenter.disruption.orchestration import (
    POLL_AFTER_S,
    CannotStart,
    GiveUp,
    QueuedCommand,
    Terminate,
    Wait,
    after_marking,
    is_out_of_time,
    next_step,
    time_limit_s,
    why_busy,
)
from holokube.karpenter.disruption.types import Candidate, Command
from holokube.karpenter.disruption_loop.marking import Marker
from holokube.karpenter.events import Publisher
from holokube.karpenter.metrics import KarpenterMetrics
from holokube.karpenter.provisioning.claims import ClaimMaker
from holokube.karpenter.provisioning.recording import record
from holokube.karpenter.state.cluster import ClusterState
from holokube.karpenter.writes import delete_object
from holokube.runtime.informers import InformerSet
from holokube.runtime.ratelimit import ExponentialBackoff
from holokube.runtime.reconciler import Controller
from holokube.runtime.result import Result
from holokube.runtime.stop import StopSignal

WORKERS: Final = 16
BACKOFF_S: Final = (1.0, 10.0)
_AGAIN: Final = Result(requeue_after_s=POLL_AFTER_S)
_NOBODY: Final[frozenset[str]] = frozenset()


class CommandFailed(HolokubeError):
    """A command was not begun; what was marked for it is cleaned up by the next pass."""


class DisruptionQueue(ControllerComponent):
    """A component: looks after every command once a second."""

    name = "disruption.queue"

    def __init__(
        self,
        clock: Clock,
        client: Client,
        informers: InformerSet,
        publisher: Publisher,
        metrics: KarpenterMetrics,
        state: ClusterState,
        maker: ClaimMaker,
        marker: Marker,
    ) -> None:
        self._clock = clock
        self._client = client
        self._publisher = publisher
        self._metrics = metrics
        self._state = state
        self._maker = maker
        self._marker = marker
        self._claims = informers.get(NODE_CLAIMS)
        self._commands: dict[str, QueuedCommand] = {}
        self._last = 0
        self._log = get_logger("holokube.karpenter.disruption")
        self._controller = Controller(
            clock, self.name, self.reconcile, workers=WORKERS, limiter=ExponentialBackoff(*BACKOFF_S)
        )

    async def run(self, stop: StopSignal) -> None:
        """After a crash, commands that were under way go on."""
        for key in self._commands:
            self._controller.enqueue(key)
        await self._controller.run(stop)

    @property
    def provider_ids(self) -> frozenset[str]:
        """The nodes that commands are being carried out for."""
        if not self._commands:
            return _NOBODY
        return frozenset([one for queued in self._commands.values() for one in queued.provider_ids])

    @property
    def commands(self) -> list[Command]:
        """What is being carried out."""
        return [queued.command for queued in self._commands.values()]

    async def start(self, command: Command) -> None:
        """Begins a command: mark, create replacements, and only then count the nodes as going."""
        busy = why_busy(command, self.provider_ids)
        if busy is not None:
            raise _failed(command, busy.value)
        self._log.info("disrupting nodes", command=str(command))
        marked, errors = await self._marker.mark((one.node for one in command.candidates), command.reason.value)
        kept = after_marking(command, marked)
        if isinstance(kept, CannotStart):
            raise _failed(command, f"{kept.value}: {'; '.join(error.message for error in errors)}")
        created = await self._maker.create_all(kept.replacements, command.reason.value.lower())
        if created.errors:
            raise _failed(command, "; ".join(error.message for error in created.errors))
        # Marked any earlier, provisioning would launch nodes for the same pods as well.
        self._state.mark_for_deletion(one.node.provider_id for one in kept.candidates)
        if kept.results is not None:
            record(kept.results, self._state, self._publisher)
        self._last += 1
        key = f"command-{self._last}"
        self._commands[key] = QueuedCommand(kept, self._clock.time(), created.names)
        self._controller.enqueue(key)
        for one in kept.candidates:
            self._publisher.decided(
                "node", one.name, "removed", kept.as_seen_by(one), method=kept.method, replacements=list(created.names),
            )  # fmt: skip
        self._metrics.decision_begun(kept.decision.value, kept.reason.value.lower(), kept.consolidation_type)

    async def reconcile(self, key: str) -> Result | None:
        """The next step of one command."""
        queued = self._commands.get(key)
        if queued is None:
            return None
        known = [name for name in queued.waiting_for if self._state.knows_claim(name)]
        found = {name: self._claims.lister.get(name) for name in queued.waiting_for}
        claims = {name: claim for name, claim in found.items() if claim is not None}
        step = next_step(queued, claims, known, self._clock.time(), self._limit_s())
        self._commands[key] = step.queued
        match step:
            case Wait():
                self._tell_waiting(step)
                return _AGAIN
            case Terminate():
                return await self._terminate(key, step.queued)
            case GiveUp():
                await self._give_up(key, step)
        return None

    def _limit_s(self) -> float:
        return time_limit_s(sum(len(queued.provider_ids) for queued in self._commands.values()))

    def _tell_waiting(self, step: Wait) -> None:
        for claim in step.not_ready:
            self._publisher.normal(
                claim, events.DISRUPTION_LAUNCHING, f"Launching NodeClaim: {step.queued.command.reason.value}",
                claim["metadata"]["uid"], step.queued.command.reason,
            )  # fmt: skip
            self._publisher.normal(
                claim, events.DISRUPTION_WAITING_READINESS, "Waiting on readiness to continue disruption"
            )

    async def _terminate(self, key: str, queued: QueuedCommand) -> Result | None:
        """Deletes the claims; what is refused is tried again until time is up."""
        ends = await asyncio.gather(*(self._end(queued.command, one) for one in queued.command.candidates))
        errors = [error for error in ends if error is not None]
        if errors and is_out_of_time(queued, self._clock.time(), self._limit_s()):
            await self._give_up(key, GiveUp(queued, errors[0].message))
            return None
        if errors:
            return _AGAIN
        del self._commands[key]
        self._log.debug("command succeeded", command=str(queued.command))
        return None

    async def _end(self, command: Command, candidate: Candidate) -> HolokubeError | None:
        node, claim = candidate.node.node, candidate.node.node_claim
        assert node is not None, "a candidate has a Node"
        assert claim is not None, "a candidate has a claim"
        try:
            was_there = await delete_object(self._client, NODE_CLAIMS, claim)
        except HolokubeError as error:
            return error
        for obj, kind in ((node, "Node"), (claim, "NodeClaim")):
            self._publisher.normal(
                obj, events.DISRUPTION_TERMINATING, f"Disrupting {kind}: {command.reason.value}",
                obj["metadata"]["uid"], command.reason,
            )  # fmt: skip
        if was_there:
            policy = _snake_case(candidate.pool.consolidation_policy) if command.consolidation_type else ""
            pods = len(candidate.reschedulable_pods)
            self._metrics.claim_disrupted(claim, command.reason.lower(), policy=policy, pods=pods)
        return None

    async def _give_up(self, key: str, step: GiveUp) -> None:
        command = step.queued.command
        self._log.error("failed disrupting nodes", command=str(command), why=step.why)
        self._metrics.command_failed(
            command.decision.value, command.reason.value.lower(), command.consolidation_type, step.failed_launches
        )
        await self._marker.unmark(one.node for one in command.candidates)
        self._state.unmark_for_deletion(step.queued.provider_ids)
        del self._commands[key]
        for one in command.candidates:
            # The journal has said that they go.
            self._publisher.decided("node", one.name, "stays: DisruptionFailed", step.why, method=command.method)


def _failed(command: Command, why: str) -> CommandFailed:
    return CommandFailed(f"{command}: {why}", hint="The next pass looks at the nodes anew.")


def _snake_case(words: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in words).lstrip("_")
