"""Streams a watch to one client, several events to a write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aiohttp import web

from holokube.apiserver import tables
from holokube.apiserver.http import encoding
from holokube.apiserver.http.metrics import RequestMetrics
from holokube.apiserver.http.negotiation import Format
from holokube.apiserver.partial_metadata import partial_metadata
from holokube.apiserver.resources import Served
from holokube.apiserver.watching import Shown, WatchStream
from holokube.base.clock import Clock

# While writes come thick and fast, a client gets them in lots: one TLS record and one system call for many
# events. An event on its own still goes out at once.
COALESCE_S = 0.002
COALESCE_MAX_BYTES = 256 * 1024


class WatchResponse:
    """One watch on one connection. A client that does not read fills its buffer in the store and is cut off."""

    def __init__(
        self,
        clock: Clock,
        stream: WatchStream,
        served: Served,
        form: Format,
        include_object: str,
        metrics: RequestMetrics,
    ) -> None:
        self._clock = clock
        self._stream = stream
        self._served = served
        self._form = form
        self._include_object = include_object
        self._metrics = metrics
        self._first_table = True

    async def send(self, raw: web.BaseRequest) -> web.StreamResponse:
        """Send events until the watch or the client ends."""
        content_type = "application/json;stream=watch" if self._form.form else "application/json"
        response = web.StreamResponse(headers={"Content-Type": content_type, "Cache-Control": "no-cache, private"})
        response.enable_chunked_encoding()
        gauge = self._metrics.watch_started(self._served)
        last_sent_s = -1.0
        try:
            await response.prepare(raw)
            while (batch := await self._stream.next_batch()) is not None:
                for piece in self._pieces(batch):
                    await response.write(piece)
                now_s = self._clock.monotonic()
                if now_s - last_sent_s < COALESCE_S:
                    await self._clock.sleep(COALESCE_S)
                last_sent_s = now_s
            await response.write_eof()
        except ConnectionError:
            # The client went away, which is how most watches end.
            return response
        finally:
            gauge()
            self._stream.close()
        return response

    def _pieces(self, batch: Sequence[Shown]) -> Iterator[bytes]:
        """The events as bytes, in pieces small enough that many slow readers do not fill the memory."""
        reshapes = bool(self._form.form or self._form.yaml)
        starts, ends = encoding.EVENT_STARTS, encoding.EVENT_ENDS
        parts: list[bytes] = []
        size_bytes = 0
        for event in batch:
            raw = self._reshaped(event) if reshapes else event.stored.raw
            size_bytes += len(raw)
            if reshapes:
                parts.append(raw)
            else:
                parts += (starts[event.type], raw, ends)
            if size_bytes >= COALESCE_MAX_BYTES:
                yield b"".join(parts)
                parts, size_bytes = [], 0
        if parts:
            yield b"".join(parts)

    def _reshaped(self, event: Shown) -> bytes:
        obj = event.stored.obj
        if event.type == "ERROR":
            shaped = obj
        elif self._form.form == "Table":
            # Column definitions come with the first event only, as upstream does.
            shaped = tables.table(self._served, [obj], self._clock.now(), self._include_object, single=True)
            if event.type == "BOOKMARK":
                shaped["rows"] = []
                shaped["metadata"] = {"resourceVersion": obj["metadata"]["resourceVersion"]}
            if not self._first_table:
                shaped["columnDefinitions"] = None
            self._first_table = False
        elif self._form.form:
            shaped = partial_metadata(obj)
        else:
            shaped = obj
        return encoding.to_json({"type": event.type, "object": shaped})
