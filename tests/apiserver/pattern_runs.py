"""Objects created one after the other, by the short way and by the long one."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from holokube.apiserver.admission.base import Plugin
from holokube.apiserver.at_once import AtOnce
from holokube.apiserver.bootstrap import bootstrap
from holokube.apiserver.registry import Registry
from holokube.base.clock import VirtualClock
from holokube.base.loop import run_virtual
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.inprocess import InProcessTransport
from holokube.client.resources import NAMESPACES, Resource
from holokube.kube.errors import ApiError
from holokube.kube.types import JsonObject
from holokube.store.store import Store

Step = tuple[Resource, Any]
"""What is created; namespaces are there already, and patched."""


def outcomes(steps: list[Step], *plugins: Plugin, tracks: bool = False) -> list[bytes]:
    """The answers, and what is stored of the first step's kind at the end."""

    async def main(clock: VirtualClock) -> list[bytes]:
        registry = Registry(clock, Rng("tests"), Store(), tracks_managed_fields=tracks)
        await bootstrap(registry)
        for plugin in plugins:
            registry.admission.add(plugin)
        client, found = Client(InProcessTransport(registry)), []
        for resource, body in steps:
            try:
                if resource == NAMESPACES:
                    made = await client.patch(NAMESPACES, "default", body)
                else:
                    made = await _create(client, resource, body)
            except ApiError as problem:
                made = problem.to_status()
            found.append(orjson.dumps(made))
        for _, stored in registry.store.list(steps[0][0].qualified_name).items:
            found.append(orjson.dumps(stored.obj) + str((stored.checked, stored.settled)).encode())
        return found

    return run_virtual(main)


async def _create(client: Client, resource: Resource, body: JsonObject) -> Any:
    """What is handed in is not kept: it may be changed as soon as it was created."""
    sent = orjson.dumps(body)
    made = await client.create(resource, body, "default" if resource.namespaced else "")
    own = [body["metadata"]]
    template = (body.get("spec") or {}).get("template")
    if template:
        own.append(template.get("metadata") or {})
    for meta in own:
        for part in meta.values():
            if isinstance(part, dict):
                part["changed"] = "afterwards"
    body.clear()
    body.update(orjson.loads(sent))
    return made


def long_way(steps: list[Step], *plugins: Plugin, tracks: bool = False) -> list[bytes]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(AtOnce, "create", lambda *_: None)
        return outcomes(steps, *plugins, tracks=tracks)


def names_made_by(monkeypatch: pytest.MonkeyPatch, owner: type, method: str) -> list[str]:
    """The names of objects that this method has made, filled as they come."""
    found: list[str] = []
    usual = getattr(owner, method)

    def noted(itself: object, *args: Any) -> Any:
        made = usual(itself, *args)
        if made is not None:
            found.append(made.obj["metadata"]["name"])
        return made

    monkeypatch.setattr(owner, method, noted)
    return found
