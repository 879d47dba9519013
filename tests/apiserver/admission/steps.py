"""Requests with the answers that a real kube-apiserver 1.36 gives, and how to send them to any server.

``{ns}`` is a namespace of the case's own, ``{u}`` a name that no other case uses.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

Send = Callable[[str, str, Any], Awaitable[tuple[int, Any]]]
ABSENT = "<absent>"
_RETRY_EVERY_S = 0.1


@dataclass(frozen=True)
class Step:
    """One request, and what must come back."""

    method: str
    path: str
    body: Any = None
    code: int = 0
    """0 is any success."""
    message: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)

    def problems(self, code: int, answer: Any) -> list[str]:
        found = []
        if (code != self.code) if self.code else not 200 <= code < 300:
            found.append(f"{self.method} {self.path} answered {code}: {(answer or {}).get('message')}")
        if self.message is not None and (answer or {}).get("message") != self.message:
            found.append(f"message is {(answer or {}).get('message')!r}, not {self.message!r}")
        for path, wanted in self.fields.items():
            got = _at(answer, path)
            if got != wanted:
                found.append(f"{path} is {got!r}, not {wanted!r}")
        return found


@dataclass(frozen=True)
class Case:
    name: str
    steps: tuple[Step, ...]


def case(name: str, *steps: Step) -> Case:
    return Case(name, steps)


def post(path: str, body: Any, code: int = 0, message: str | None = None, **fields: Any) -> Step:
    return Step("POST", _full(path), body, code, message, _paths(fields))


def put(path: str, body: Any, code: int = 0, message: str | None = None, **fields: Any) -> Step:
    return Step("PUT", _full(path), body, code, message, _paths(fields))


def get(path: str, **fields: Any) -> Step:
    return Step("GET", _full(path), None, 0, None, _paths(fields))


def delete(path: str, code: int = 0, message: str | None = None) -> Step:
    return Step("DELETE", _full(path), None, code, message)


def try_pod(spec: Mapping[str, Any], code: int = 0, message: str | None = None, **fields: Any) -> Step:
    """A dry run, so that it can be repeated until the server has seen what came before."""
    meta = dict(spec.get("metadata") or {"name": "p"})
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            **{k: v for k, v in spec.items() if k != "metadata"},
        },
    }
    return post("pods?dryRun=All", body, code, message, **fields)


def refused(resource: str, name: str, why: str) -> dict[str, Any]:
    return {"code": 403, "message": f'{resource} "{name}" is forbidden: {why}'}


def pod_refused(why: str) -> dict[str, Any]:
    return refused("pods", "p", why)


def _paths(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("__", "."): value for name, value in fields.items()}


def _full(path: str) -> str:
    if path.startswith("/"):
        return path
    return f"/api/v1/namespaces/{{ns}}/{path}"


def _at(value: Any, path: str) -> Any:
    for step in path.split("."):
        if isinstance(value, list):
            value = value[int(step)] if int(step) < len(value) else ABSENT
        elif isinstance(value, dict):
            value = value.get(step, ABSENT)
        else:
            return ABSENT
    return value


async def run_case(case: Case, send: Send, unique: str, *, patience_s: float = 0.0) -> list[str]:
    """What differs from the table. A server that learns of its own objects with delay is given some time."""
    namespace = f"adm-{unique}"
    account = {"metadata": {"name": "default"}}
    await send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    await send("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account)

    def filled(value: Any) -> Any:
        return orjson.loads(
            orjson.dumps(value).replace(b"{ns}", namespace.encode()).replace(b"{u}", unique.encode())
        )

    for step in case.steps:
        path, body, left_s = filled(step.path), filled(step.body), patience_s
        wanted = Step(step.method, path, body, step.code, filled(step.message), filled(dict(step.fields)))
        while True:
            problems = wanted.problems(*await send(step.method, path, body))
            if not problems or left_s <= 0:
                break
            await asyncio.sleep(_RETRY_EVERY_S)
            left_s -= _RETRY_EVERY_S
        if problems:
            return problems
    return []
