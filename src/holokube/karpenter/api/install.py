"""Brings the definitions of Karpenter's objects onto an API server, embedded or real."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any, Final

from holokube.base.clock import Clock
from holokube.base.errors import ConfigError
from holokube.client.client import Client
from holokube.client.resources import CUSTOM_RESOURCE_DEFINITIONS
from holokube.karpenter.api.resources import ALL
from holokube.kube import conditions
from holokube.kube.errors import AlreadyExists, Conflict, NotFound
from holokube.kube.types import JsonObject
from holokube.kube.yaml_text import load_documents

SPEC_HASH: Final = "karpenter.holokube.dev/spec-hash"
"""Annotation of a definition that was installed from here: which text it was. Others are never overwritten."""
FIELD_MANAGER: Final = "holokube-karpenter"
_POLL_S: Final = 0.1


@cache
def definition_files() -> dict[str, str]:
    """The files by name, as they are packed with the program."""
    folder = resources.files("holokube.karpenter.api") / "crds"
    files = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".yaml")), key=lambda entry: entry.name)
    return {entry.name: entry.read_text(encoding="utf-8") for entry in files}


@cache
def _definitions() -> tuple[JsonObject, ...]:
    return tuple(document for text in definition_files().values() for document in load_documents(text.encode()))


def definitions() -> list[JsonObject]:
    """The CustomResourceDefinitions, each marked with the hash of its spec."""
    return [
        {**one, "metadata": {**one["metadata"], "annotations": {SPEC_HASH: spec_hash(one)}}} for one in _definitions()
    ]


def spec_hash(definition: JsonObject) -> str:
    """Which text a definition is."""
    text = json.dumps(definition["spec"], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


async def install(clock: Clock, client: Client, *, timeout_s: float = 30.0) -> list[str]:
    """Creates what is missing, brings older ones of ours up to date, and waits until all are served.

    Returns the names of those written. Definitions that somebody else installed, such as upstream's own chart, stay
    as they are.
    """
    written = [str(one["metadata"]["name"]) for one in definitions() if await _write(client, one)]
    deadline_s = clock.monotonic() + timeout_s
    for definition in definitions():
        await _wait_until_served(clock, client, definition, deadline_s)
    return written


async def _write(client: Client, wanted: JsonObject) -> bool:
    name = str(wanted["metadata"]["name"])
    while True:
        try:
            existing = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
        except NotFound:
            try:
                await client.create(CUSTOM_RESOURCE_DEFINITIONS, wanted, field_manager=FIELD_MANAGER)
            except AlreadyExists:
                continue
            return True
        annotations: dict[str, Any] = existing["metadata"].get("annotations") or {}
        current = wanted["metadata"]["annotations"][SPEC_HASH]
        if annotations.get(SPEC_HASH, current) == current:
            return False
        metadata = {**existing["metadata"], "annotations": {**annotations, SPEC_HASH: current}}
        try:
            await client.update(
                CUSTOM_RESOURCE_DEFINITIONS,
                {**existing, "metadata": metadata, "spec": wanted["spec"]},
                field_manager=FIELD_MANAGER,
            )
        except Conflict:
            continue
        return True


async def _wait_until_served(clock: Clock, client: Client, definition: JsonObject, deadline_s: float) -> None:
    """Established is what the server promises; that it answers is what a controller needs."""
    name = str(definition["metadata"]["name"])
    resource = next(one for one in ALL if one.qualified_name == name)
    while True:
        found = await client.get(CUSTOM_RESOURCE_DEFINITIONS, name)
        if conditions.is_true(found, "Established"):
            try:
                await client.list(resource, limit=1)
            except NotFound:
                pass
            else:
                return
        if clock.monotonic() >= deadline_s:
            states = {c["type"]: c.get("message") or c["status"] for c in conditions.conditions_of(found)}
            raise ConfigError(
                f"the API server does not serve {resource}: {states or 'no conditions'}",
                hint=f"see `kubectl describe crd {name}`; somebody else may hold the name",
            )
        await clock.sleep(_POLL_S)
