"""Components that must see a node before it goes can delay its deletion by an annotation."""

from __future__ import annotations

from holokube.base.clock import Clock
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.client.resources import NODES
from holokube.cluster_autoscaler.objects import annotations_of, name_of
from holokube.kube.types import JsonObject

DELAY_DELETION_PREFIX = "delay-deletion.cluster-autoscaler.kubernetes.io/"
POLL_EVERY_S = 5.0

_log = get_logger("holokube.cluster_autoscaler.actuation")


def is_delayed(node: JsonObject) -> bool:
    """Whether somebody asks to wait with the deletion of a node."""
    return any(key.startswith(DELAY_DELETION_PREFIX) for key in annotations_of(node))


async def wait_while_delayed(clock: Clock, client: Client, node: JsonObject, timeout_s: float) -> None:
    """Return when nobody asks to wait any more, or after the time-out; raises if the node cannot be read."""
    if timeout_s <= 0 or not is_delayed(node):
        return
    name = name_of(node)
    until_s = clock.monotonic() + timeout_s
    while clock.monotonic() < until_s:
        await clock.sleep(min(POLL_EVERY_S, until_s - clock.monotonic()))
        if not is_delayed(await client.get(NODES, name)):
            return
    _log.warning("The delay of a deletion was not lifted in time", node=name, waited_s=timeout_s)
