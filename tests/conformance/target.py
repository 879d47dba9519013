"""A server under test, and how one case is run against it."""

from __future__ import annotations

import asyncio
import io
import json
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from yarl import URL

from .model import MANAGED, WHOLE, Case, Collect, Step, Watch, resolve
from .normalize import MISSING, Normalizer, causes_of, dig

USER_AGENT = "conformance/1.0"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a server is and how to be let in; an empty `ca_file` trusts any certificate."""

    url: str
    token: str
    ca_file: str = ""
    patience_s: float = 30.0
    """How long to wait for what a server does in its own time: informers to follow, events to arrive."""

    def session(self, concurrency: int) -> aiohttp.ClientSession:
        context = ssl.create_default_context(cafile=self.ca_file or None)
        if not self.ca_file:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        connector = aiohttp.TCPConnector(ssl=context, limit=concurrency * 4)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=30)
        return aiohttp.ClientSession(connector=connector, timeout=timeout, headers={"User-Agent": USER_AGENT})


@dataclass(slots=True)
class Outcome:
    """What a server said in one case, made comparable, and every broken expectation."""

    answers: list[dict[str, Any]] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Answer:
    code: int
    headers: Any
    body: Any
    raw: bytes


def substitute(value: Any, names: dict[str, Any]) -> Any:
    """Puts saved names into a text or JSON value; a text that is nothing but one name keeps its type."""
    if isinstance(value, str):
        if value[:1] == "{" and value[-1:] == "}" and value[1:-1] in names:
            return names[value[1:-1]]
        for name, replacement in names.items():
            marker = "{" + name + "}"
            if marker in value:
                value = value.replace(marker, str(replacement))
        return value
    if isinstance(value, bytes):
        return substitute(value.decode("latin-1"), names).encode("latin-1") if b"{" in value else value
    if isinstance(value, dict):
        return {substitute(k, names): substitute(v, names) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [substitute(item, names) for item in value]
    return value


class CaseRun:
    """One case on one server: keeps its names, its open watches and what it has learned."""

    def __init__(self, session: aiohttp.ClientSession, target: Target, case: Case, unique: str) -> None:
        self._session = session
        self._target = target
        self._case = case
        self._names: dict[str, Any] = {"u": unique, "ns": f"ns-{unique}", "ns2": f"nt-{unique}"}
        self._normal = Normalizer({self._names[key]: "{" + key + "}" for key in ("ns", "ns2", "u")})
        self._watches: dict[str, aiohttp.ClientResponse] = {}
        self._events: dict[str, list[str]] = {}
        self.outcome = Outcome()

    async def run(self) -> Outcome:
        try:
            await self._prepare_namespaces()
            for number, step in enumerate(self._case.steps, 1):
                await self._one(number, step)
        except Exception as error:
            # Whatever a server does to one case, the others must still be run.
            self.outcome.broken.append(f"no usable answer: {type(error).__name__}: {error}")
        finally:
            for response in self._watches.values():
                response.close()
        await self._clean_up()
        return self.outcome

    async def _clean_up(self) -> None:
        """Removes the case's definition: upstream rebuilds its documents for all of them at each change."""
        if "/customresourcedefinitions" in repr(self._case.steps):
            await self._send(
                Step(method="DELETE", path=resolve("customresourcedefinitions/widgets.{u}.example.com"))
            )

    async def _one(self, number: int, step: Step | Watch | Collect) -> None:
        if isinstance(step, Watch):
            await self._open(number, step)
        elif isinstance(step, Collect):
            await self._collect(number, step)
        else:
            await self._step(number, step)

    async def _prepare_namespaces(self) -> None:
        text = repr(self._case.steps)
        for key in ("ns", "ns2"):
            if "{" + key + "}" not in text:
                continue
            namespace = self._names[key]
            body: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            made = await self._send(Step(method="POST", path="/api/v1/namespaces", body=body))
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
            there = await self._send(Step(method="POST", path=path, body=account))
            # A controller manager beside the server may have been first.
            if made.code != 201 or there.code not in (201, 409):
                self.outcome.broken.append(
                    f"could not prepare namespace {namespace}: {made.code} {there.code} {made.raw[:300]!r}"
                )

    def _headers(self, step: Step | Watch) -> dict[str, str]:
        headers = {"Accept": "application/json", **substitute(dict(step.headers), self._names)}
        if isinstance(step, Watch) or step.authenticated:
            headers.setdefault("Authorization", f"Bearer {self._target.token}")
        if isinstance(step, Step) and step.body is not None and step.content_type:
            headers["Content-Type"] = step.content_type
        return headers

    def _url(self, path: str) -> URL:
        return URL(self._target.url + substitute(path, self._names).replace(" ", "%20"), encoded=True)

    async def _send(self, step: Step) -> Answer:
        body = substitute(step.body, self._names)
        data: bytes | io.BytesIO | None = None
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            if len(data) > 1_000_000:
                # The client library warns about large bodies that are plain bytes.
                data = io.BytesIO(data)
        async with self._session.request(
            step.method,
            self._url(step.path),
            data=data,
            headers=self._headers(step),
            allow_redirects=False,
            skip_auto_headers=("Content-Type",),
        ) as response:
            raw = await response.read()
        parsed: Any = None
        # Upstream serves the OpenAPI index as plain text.
        if "json" in response.headers.get("Content-Type", "") or raw.startswith(b"{"):
            try:
                parsed = json.loads(raw)
            except ValueError:
                parsed = None
        return Answer(response.status, response.headers, parsed, raw)

    async def _step(self, number: int, step: Step) -> None:
        answer = await self._send(step)
        if step.poll:
            deadline = asyncio.get_running_loop().time() + self._target.patience_s
            while self._complaints(step, answer) and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(0.1)
                answer = await self._send(step)
        label = f"{number}: {step.method} {step.path}"
        self.outcome.broken.extend(f"{label}: {text}" for text in self._complaints(step, answer))
        self.outcome.answers.append({"step": label, **self._comparable(step, answer)})
        for name, path in step.save.items():
            self._names[name] = dig(answer.body, path)

    def _complaints(self, step: Step, answer: Answer) -> list[str]:
        result: list[str] = []
        body = answer.body
        if answer.code != step.code:
            said = body.get("message") if isinstance(body, dict) else answer.raw[:300]
            return [f"answered {answer.code} instead of {step.code}: {_first_line(said)}"]
        status = body if isinstance(body, dict) else {}
        if step.reason and status.get("reason") != step.reason:
            said = _first_line(status.get("message"))
            result.append(f"reason {status.get('reason')!r} instead of {step.reason!r}: {said}")
        if step.causes is not None:
            seen = causes_of(status)
            wanted = sorted(tuple(substitute(cause, self._names)) for cause in step.causes)
            if seen != wanted:
                result.append(f"causes {seen} instead of {wanted}: {_first_line(status.get('message'))}")
        for path, expected in step.has.items():
            wanted_value = substitute(expected, self._names)
            value = dig(body, path)
            if value != wanted_value:
                result.append(f"{path} is {value!r} instead of {wanted_value!r}")
        result.extend(
            f"{piece!r} is not in the answer" for piece in step.text if piece.encode() not in answer.raw
        )
        return result

    def _comparable(self, step: Step, answer: Answer) -> dict[str, Any]:
        result: dict[str, Any] = {"code": answer.code}
        for name in step.take_headers:
            result["header " + name] = self._normal.text(answer.headers.get(name, MISSING))
        warnings = answer.headers.getall("Warning", [])
        if warnings:
            result["warnings"] = [self._normal.text(text) for text in warnings]
        body = answer.body
        if body is None:
            if answer.raw and (answer.code >= 400 or step.take == WHOLE):
                result["text"] = self._normal.text(answer.raw[:2000].decode(errors="replace").strip())
            return result
        if answer.code >= 400 and isinstance(body, dict) and body.get("kind") == "Status" and not step.take:
            result["status"] = self._normal.status(body)
            return result
        result.update(self._taken(step.take, body, step.drop))
        return result

    def _taken(self, take: str | Sequence[str], body: Any, drop: Sequence[str] = ()) -> dict[str, Any]:
        if isinstance(take, str):
            if take not in (WHOLE, MANAGED):
                raise ValueError(f"{self._case.id}: take is {take!r}; use WHOLE, MANAGED or a list of paths")
            normal = self._normal.answer(body, managed=take == MANAGED)
            for path in drop:
                _remove(normal, path)
            return {"body": normal}
        if not take:
            return {}
        # Versions count from the first that a case is about: one server's controllers may write more often.
        counts = any("resourceVersion" in path for path in take)
        plain = self._normal.answer(body, managed=False, counts=counts)
        managed = self._normal.answer(body, managed=True, counts=counts)
        return {"fields": {path: dig(managed if "managedFields" in path else plain, path) for path in take}}

    async def _open(self, number: int, step: Watch) -> None:
        response = await self._session.get(self._url(step.path), headers=self._headers(step))
        self._watches[step.name] = response
        self.outcome.answers.append({"step": f"{number}: WATCH {step.path}", "code": response.status})
        if response.status != 200:
            text = (await response.read())[:300].decode(errors="replace")
            self.outcome.broken.append(f"{number}: WATCH {step.path}: answered {response.status}: {text}")

    async def _collect(self, number: int, step: Collect) -> None:
        events: list[dict[str, Any]] = []
        stream = self._watches[step.name].content
        while not step.count or len(events) < step.count:
            try:
                line = await asyncio.wait_for(stream.readline(), self._target.patience_s)
            except TimeoutError:
                break
            if not line:
                break
            event = json.loads(line)
            if event["type"] != "BOOKMARK" or step.bookmarks:
                events.append(event)
        seen = [(event["type"], _name(event["object"])) for event in events]
        label = f"{number}: COLLECT {step.name}"
        if step.events is not None:
            wanted = [tuple(substitute(event, self._names)) for event in step.events]
            if seen != wanted:
                self.outcome.broken.append(f"{label}: saw {seen} instead of {wanted}")
        self.outcome.answers.append(
            {
                "step": label,
                "events": [
                    {
                        "type": event["type"],
                        "name": self._normal.text(_name(event["object"])),
                        **self._event_fields(event, step.take),
                    }
                    for event in events
                ],
            }
        )

    def _event_fields(self, event: dict[str, Any], take: str | Sequence[str]) -> dict[str, Any]:
        if event["type"] == "ERROR":
            body = event["object"]
            return {"code": body.get("code"), **self._normal.status(body)}
        return self._taken(take, event["object"])


def _first_line(text: Any) -> str:
    return str(text).split("\n", 1)[0][:300]


def _name(body: dict[str, Any]) -> str:
    if body.get("kind") == "Table":
        return ",".join(row["object"]["metadata"].get("name", "") for row in body.get("rows") or [])
    return str(body.get("metadata", {}).get("name", "") or body.get("reason", ""))


def _remove(value: Any, path: str) -> None:
    head, _, last = path.rpartition(".")
    parent = dig(value, head) if head else value
    if isinstance(parent, dict):
        parent.pop(last, None)
