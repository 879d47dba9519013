"""The way of all components to the API server during a run: every call is counted, and some are refused on purpose.

Nothing in a run reads Event objects, and a day of them is most of what a cluster writes. They are counted as calls and
answered here, as if the server had taken them. What the server says of its own API is remembered for a while:
controllers ask for it every half minute.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, Final

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.resources import Resource
from holokube.client.transport import JSON, Call, Transport, WatchEvent
from holokube.kube.errors import ApiError

RETRY_AFTER_S: Final = 1
MEMORY_S: Final = 600.0
SETTLED_S: Final = 60.0
_EVENTS: Final = "events"
_ON_PURPOSE: Final = "refused by a fault of the scenario"


def is_on_purpose(error: BaseException | None) -> bool:
    """Whether an error is one that the scenario asked for, or was made of one."""
    while error is not None:
        if isinstance(error, BaseExceptionGroup):
            return all(map(is_on_purpose, error.exceptions))
        if isinstance(error, ApiError) and error.message.endswith(_ON_PURPOSE):
            return True
        # What went wrong only while such an error was handled is a defect of its own.
        error = error.__cause__
    return False


class ApiTrouble:
    """What the server refuses at this moment."""

    def __init__(self, rng: Rng) -> None:
        self._rng = rng
        self.troubles: list[Trouble] = []

    def meet(self, call: Call) -> None:
        """Raises the error that a call meets, if any."""
        for trouble in self.troubles:
            if trouble.concerns(call) and self._rng.random() < trouble.share:
                raise trouble.error(call)


class Trouble:
    """A share of some calls fails with a status code."""

    def __init__(self, share: float, code: int, kinds: tuple[str, ...] = (), verbs: tuple[str, ...] = ()) -> None:
        self.share = share
        self.code = code
        self._kinds = frozenset(kind.lower() for kind in kinds)
        self._verbs = frozenset(verb.lower() for verb in verbs)

    def concerns(self, call: Call) -> bool:
        """Whether the call is one of those that may fail."""
        resource = call.resource
        if self._kinds and not self._kinds & {resource.kind.lower(), resource.plural}:
            return False
        return not self._verbs or call.verb in self._verbs

    def error(self, call: Call) -> ApiError:
        """What the caller gets; nothing was done."""
        message = f"{call}: {_ON_PURPOSE}"
        return ApiError.from_status({
            "code": self.code, "message": message, "details": {"retryAfterSeconds": RETRY_AFTER_S},
        })  # fmt: skip


class DiscoveryMemory:
    """What the server has said of its API, as long as no definition changes."""

    def __init__(self, clock: Clock, definitions: Callable[[], object]) -> None:
        """``definitions`` gives something that is equal for as long as the server serves the same kinds."""
        self._clock = clock
        self._definitions = definitions
        self._known: object = None
        self._since_s = 0.0
        self._answers: dict[str, tuple[float, Any]] = {}

    def recall(self, method: str, path: str) -> Any:
        """What was answered before; None if the server has to be asked."""
        if method != "GET":
            return None
        now_s, definitions = self._clock.monotonic(), self._definitions()
        if definitions != self._known:
            self._known, self._since_s = definitions, now_s
            self._answers.clear()
        told_s, answer = self._answers.get(path, (-MEMORY_S, None))
        return answer if now_s - told_s < MEMORY_S else None

    def keep(self, method: str, path: str, answer: Any) -> None:
        """Remember an answer, unless a definition is so new that it may not be served yet."""
        now_s = self._clock.monotonic()
        is_discovery = path == "/api" or path.startswith(("/api/", "/apis"))
        if method == "GET" and is_discovery and isinstance(answer, dict) and now_s - self._since_s >= SETTLED_S:
            self._answers[path] = now_s, answer


class LabTransport:
    """Around the transport of one component."""

    answers_at_once: Final = True
    """The server is in the same process, keeps all in memory, and has no webhooks to ask."""

    def __init__(
        self,
        inner: Transport,
        calls: defaultdict[str, int],
        trouble: ApiTrouble,
        memory: DiscoveryMemory | None = None,
        settle: list[Callable[[], None]] | None = None,
    ) -> None:
        """``settle`` takes up what has to be called before the calls are read; without it all are counted at once."""
        self._inner = inner
        self._calls = calls
        self._trouble = trouble
        self._memory = memory
        self._settle = settle

    def call(self, call: Call) -> Coroutine[Any, Any, dict[str, Any]]:
        self._calls[call.verb] += 1
        if self._trouble.troubles or call.resource.plural == _EVENTS:
            return self._call(call)
        # Handed on and not awaited here: nearly all calls go this way, and each step on it costs all of them.
        return self._inner.call(call)

    async def _call(self, call: Call) -> dict[str, Any]:
        if self._trouble.troubles:
            self._trouble.meet(call)
        if call.resource.plural == _EVENTS and call.writes:
            return call.body if isinstance(call.body, dict) else {}
        return await self._inner.call(call)

    def discard(self, verb: str, resource: Resource) -> bool:
        """Whether a write is to an object that nobody will read; then it has been counted, and need not be sent."""
        if resource.plural != _EVENTS or self._trouble.troubles:
            return False
        self._calls[verb] += 1
        return True

    def postpones(self, settle: Callable[[], None]) -> bool:
        """Whether writes may be taken for discarded now and counted later, by ``settle`` before anybody asks."""
        if self._settle is None:
            return False
        self._settle.append(settle)
        return True

    def discards(self, resource: Resource) -> bool:
        """Whether a write is to an object that nobody will read; it is counted later."""
        return not self._trouble.troubles and resource.plural == _EVENTS

    def count_discarded(self, verb: str, writes: int) -> None:
        """So many writes were not sent."""
        self._calls[verb] += writes

    def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        self._calls["watch"] += 1
        return self._watch(call) if self._trouble.troubles else self._inner.watch(call)

    async def _watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        self._trouble.meet(call)
        async for event in self._inner.watch(call):
            yield event

    def may_go_on(self) -> bool:
        """Whether a watch lasts on whose time is over, which counts as another one; not while something is refused."""
        may_go_on: Callable[[], bool] | None = getattr(self._inner, "may_go_on", None)
        if self._trouble.troubles or may_go_on is None or not may_go_on():
            return False
        self._calls["watch"] += 1
        return True

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str] | None = None, body: Any = None,
        content_type: str = JSON,
    ) -> Any:  # fmt: skip
        memory = self._memory if not query and body is None else None
        known = memory.recall(method, path) if memory is not None else None
        if known is not None:
            return known
        answer = await self._inner.request(method, path, query=query, body=body, content_type=content_type)
        if memory is not None:
            memory.keep(method, path, answer)
        return answer

    async def close(self) -> None:
        await self._inner.close()
