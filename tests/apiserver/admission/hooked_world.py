"""A world with a webhook server beside it, and what tests of webhooks do all the time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from holokube.apiserver.answers import WriteResult
from holokube.apiserver.options import WriteOptions
from tests.apiserver.worlds import World, in_world

from .hook_server import HookServer, Review, answer, serving

GROUP = "admissionregistration.k8s.io"


async def configure(world: World, sort: str, *webhooks: dict[str, Any], name: str = "hooks") -> None:
    kind = f"{sort.capitalize()}WebhookConfiguration"
    body = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, "webhooks": list(webhooks)}
    await world.registry.create(world.served(f"{sort}webhookconfigurations", GROUP), "", body)


async def write(
    world: World, *, namespace: str = "default", dry_run: bool = False, **more: Any
) -> WriteResult:
    """Creates a config map."""
    meta = {"name": "cm", **more.pop("metadata", {})}
    body = {"metadata": meta, "data": {"foo": "bar"}, **more}
    return await world.registry.create(
        world.served("configmaps"), namespace, body, WriteOptions(dry_run=dry_run)
    )


async def allow(review: Review) -> Review:
    return answer(review)


async def hang(review: Review) -> Review:
    await asyncio.sleep(60)
    return answer(review)


def run(body: Callable[[World, HookServer], Awaitable[None]], **handlers: Any) -> None:
    """Runs a test on virtual time, so that no time limit is waited for, with a webhook server beside it."""

    async def main(world: World) -> None:
        async with serving(**{"allow": allow, "hang": hang, **handlers}) as server:
            try:
                await body(world, server)
            finally:
                await world.registry.close()

    in_world(main)


def deny(**status: Any) -> Callable[[Review], Awaitable[Review]]:
    async def handle(review: Review) -> Review:
        return answer(review, allowed=False, **({"status": status} if status else {}))

    return handle
