"""A transport that misbehaves on purpose, the same way for the same seed.

It wraps any other transport. What it does is what real API servers and networks do: writes that lose a race,
throttling, failures, answers that get lost after the write took effect, watches that end, go stale or lag.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, NoReturn

from holokube.base.clock import Clock
from holokube.base.errors import HolokubeError, TransportError
from holokube.base.rng import Rng
from holokube.client.transport import JSON, Call, Transport, WatchEvent, close_stream
from holokube.kube.errors import (
    OBJECT_WAS_MODIFIED,
    Expired,
    InternalError,
    TooManyRequests,
    conflict,
)

# Facts about time; every other field of `Faults` is a probability.
_DURATIONS = frozenset(
    {"retry_after_s", "answer_timeout_s", "event_delay_max_s", "watch_lifetime_mean_s"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """How often each thing goes wrong: probabilities per call, or per event of a watch."""

    conflict: float = 0.0
    """Write: 409, nothing written."""
    too_many_requests: float = 0.0
    """Any call: 429 with Retry-After, nothing done."""
    internal_error: float = 0.0
    """Any call: 500, nothing done."""
    timeout_before: float = 0.0
    """Any call: no answer, nothing done."""
    timeout_after: float = 0.0
    """Any call: no answer, although the server did it."""
    list_too_old: float = 0.0
    """List at a given version, or the next page of one: 410."""
    watch_drop: float = 0.0
    """Per event: the stream ends before it, half the time with an error."""
    watch_stale: float = 0.0
    """Per event: an ERROR event with 410 comes instead, and the stream ends."""
    event_delay: float = 0.0
    """Per event: it, and all that follow it, come late."""

    retry_after_s: int = 1
    answer_timeout_s: float = 30.0
    """How long a caller waits for an answer that does not come."""
    event_delay_max_s: float = 5.0
    watch_lifetime_mean_s: float = 0.0
    """Mean of the random time after which even a silent watch is dropped; 0 for never."""

    def __post_init__(self) -> None:
        for item in fields(self):
            value = getattr(self, item.name)
            if value < 0 or (item.name not in _DURATIONS and value > 1):
                raise ValueError(
                    f"Faults.{item.name} is {value}; a probability is from 0 to 1, a duration not negative"
                )


class FaultyTransport:
    """Wraps ``inner``. ``faults`` may be replaced while it runs; ``injected`` counts what was done."""

    def __init__(self, clock: Clock, inner: Transport, rng: Rng, faults: Faults) -> None:
        self._clock = clock
        self._inner = inner
        self._rng = rng
        self.faults = faults
        self.injected: Counter[str] = Counter()

    async def call(self, call: Call) -> dict[str, Any]:
        chosen = self._choose(call)
        await self._fail_before(chosen, call, str(call))
        if chosen == "timeout_after":
            with suppress(HolokubeError):  # Even a refusal is lost with the answer.
                await self._inner.call(call)
            await self._time_out(str(call))
        return await self._inner.call(call)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
    ) -> Any:
        chosen = self._choose(None)
        await self._fail_before(chosen, None, f"{method} {path}")
        send = partial(
            self._inner.request, method, path, query=query, body=body, content_type=content_type
        )
        if chosen == "timeout_after":
            with suppress(HolokubeError):
                await send()
            await self._time_out(f"{method} {path}")
        return await send()

    async def watch(self, call: Call) -> AsyncIterator[WatchEvent]:
        chosen = self._choose(call)
        if chosen == "timeout_after":
            chosen = "timeout_before"  # Opening a watch has no effect that an answer could be lost after.
        await self._fail_before(chosen, call, str(call))
        mean_s = self.faults.watch_lifetime_mean_s
        ends_at = self._clock.monotonic() + self._rng.expovariate(1 / mean_s) if mean_s else None
        stream = aiter(self._inner.watch(call))
        try:
            while True:
                left_s = None if ends_at is None else max(0.0, ends_at - self._clock.monotonic())
                try:
                    event = await asyncio.wait_for(anext(stream), left_s)
                except StopAsyncIteration:
                    return
                except TimeoutError:
                    self._drop(call)
                    return
                # All are drawn every time, so that one fault's rate does not shift the others' draws.
                drop, stale, delay, delay_share = (self._rng.random() for _ in range(4))
                if drop < self.faults.watch_drop:
                    self._drop(call)
                    return
                if stale < self.faults.watch_stale:
                    self.injected["watch_stale"] += 1
                    yield WatchEvent("ERROR", Expired("too old resource version: injected").to_status())
                    return
                if delay < self.faults.event_delay:
                    self.injected["event_delay"] += 1
                    await self._clock.sleep(delay_share * self.faults.event_delay_max_s)
                yield event
        finally:
            await close_stream(stream)

    async def close(self) -> None:
        await self._inner.close()

    def _choose(self, call: Call | None) -> str:
        """The one fault that this call meets, or nothing."""
        faults = self.faults
        rates = {
            "conflict": faults.conflict if call is not None and call.writes else 0.0,
            "too_many_requests": faults.too_many_requests,
            "internal_error": faults.internal_error,
            "timeout_before": faults.timeout_before,
            "timeout_after": faults.timeout_after,
            "list_too_old": faults.list_too_old if call is not None and _names_a_version(call) else 0.0,
        }
        draws = {name: self._rng.random() for name in rates}
        return next((name for name, rate in rates.items() if draws[name] < rate), "")

    async def _fail_before(self, chosen: str, call: Call | None, what: str) -> None:
        """Raises the chosen fault, unless it comes only after the call."""
        if not chosen:
            return
        self.injected[chosen] += 1
        if chosen == "conflict" and call is not None:
            raise conflict(call.resource.group, call.resource.plural, call.name, OBJECT_WAS_MODIFIED)
        if chosen == "too_many_requests":
            raise TooManyRequests(
                "the server has received too many requests and has asked us to try again later",
                retry_after_s=self.faults.retry_after_s,
            )
        if chosen == "internal_error":
            raise InternalError(f"Internal error occurred: injected into {what}")
        if chosen == "list_too_old":
            raise Expired("The provided continue parameter is too old to display a consistent list result.")
        if chosen == "timeout_before":
            await self._time_out(what)

    async def _time_out(self, what: str) -> NoReturn:
        await self._clock.sleep(self.faults.answer_timeout_s)
        raise TransportError(
            f"{what}: no answer within the time limit (injected); a write may have taken effect",
            hint="Read the object before trying again.",
        )

    def _drop(self, call: Call) -> None:
        """Ends a watch: quietly, as servers do, or with the error of a broken connection."""
        self.injected["watch_drop"] += 1
        if self._rng.random() < 0.5:
            raise TransportError(f"{call}: the connection broke (injected)", hint="Watch again.")


def _names_a_version(call: Call) -> bool:
    """Only a list that asks for a moment in the past can ask for one that is too old."""
    version = call.query.get("resourceVersion", "")
    return call.verb == "list" and ("continue" in call.query or version not in ("", "0"))
