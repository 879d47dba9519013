"""Certificates and authorities that live for seconds, while pods are created all the time."""

from __future__ import annotations

import asyncio
import base64
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from holokube.base.clock import WallClock
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.client.resources import MUTATING_WEBHOOK_CONFIGURATIONS, PODS, SECRETS
from holokube.testing.kubectl import Kubectl
from tests.kube.sizing.pods import container, daemon
from tests.sizing import script

LIFETIMES = ("--certificate-lifetime=3s", "--ca-lifetime=9s", "--ca-settle=1s", "--failure-policy=Fail")
ROTATIONS = 3
AUTHORITIES = 1
DEADLINE_S = 30.0


def every_pod_is_sized_through_rotations(kubectl: Kubectl) -> None:
    """With the failure policy Fail, so that a call that fails is a pod that is refused."""
    kubeconfig = Path(kubectl.environment["KUBECONFIG"])
    kubectl("delete", "secret", "holokube-node-sizing", "--ignore-not-found")
    with script.webhook(kubeconfig, *LIFETIMES):
        seen = asyncio.run(_create_pods(kubeconfig))
    assert len(seen["tls.crt"]) > ROTATIONS and len(seen["ca.crt"]) > AUTHORITIES
    kubectl("delete", "mutatingwebhookconfiguration", "holokube-node-sizing")
    kubectl("delete", "secret", "holokube-node-sizing")


async def _create_pods(kubeconfig: Path) -> dict[str, set[bytes]]:
    """Creates pods, each sized or it fails, until enough certificates were seen; returns those."""
    seen: dict[str, set[bytes]] = {"tls.crt": set(), "ca.crt": set()}
    pod: dict[str, Any] = daemon(container("c", {"cpu": "1"}), node="mid", request_cpu_fraction="0.1")
    del pod["metadata"]["ownerReferences"]
    async with Client(HttpTransport(WallClock(), load_access(str(kubeconfig)))) as client, asyncio.timeout(DEADLINE_S):
        while len(seen["tls.crt"]) <= ROTATIONS or len(seen["ca.crt"]) <= AUTHORITIES:
            for _ in range(10):
                made = await client.create(PODS, pod, "default", dry_run=True)
                assert made["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1600m"}
            await _shake_hands(client)
            secret = await client.get(SECRETS, "holokube-node-sizing", "default")
            for name, certificates in seen.items():
                certificates.add(base64.b64decode(secret["data"][name]))
    return seen


async def _shake_hands(client: Client) -> None:
    """An API server keeps its connections; whoever comes anew must be able to trust what is served at any moment."""
    found = await client.get(MUTATING_WEBHOOK_CONFIGURATIONS, "holokube-node-sizing")
    config = found["webhooks"][0]["clientConfig"]
    context = ssl.create_default_context(cadata=base64.b64decode(config["caBundle"]).decode())
    parts = urlsplit(config["url"])
    _, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
    writer.close()
    await writer.wait_closed()
