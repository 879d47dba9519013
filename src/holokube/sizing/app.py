"""All parts of ``holokube node-sizing`` put together as components of one app."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holokube.base.clock import Clock
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.informer import Informer
from holokube.client.resources import NODES, PODS
from holokube.kube.sizing import ENABLED_LABEL
from holokube.runtime.app import App, Component
from holokube.runtime.events import EventRecorder
from holokube.runtime.leader import LeaderElector
from holokube.runtime.sources import InformerRunner
from holokube.sizing.certificate_keeper import (
    LOOK_EVERY_S,
    CertificateKeeper,
    CertificateUser,
    FileCertificate,
    new_context,
)
from holokube.sizing.certificates import CertificatePolicy
from holokube.sizing.known_nodes import KnownNodes, keep_sizes
from holokube.sizing.metrics import SizingMetrics
from holokube.sizing.registration import Registration
from holokube.sizing.resizer import BY_NODE, Resizer, index_by_node, keep_resizable
from holokube.sizing.review import OnError
from holokube.sizing.webhook import NODE_WAIT_S, Reviewer, WebhookServer

COMPONENT = "node-sizing"


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate that somebody else makes and renews."""

    cert: Path
    key: Path
    ca: Path | None = None


@dataclass(frozen=True, slots=True)
class SizingOptions:
    """How the webhook is run."""

    registration: Registration
    policy: CertificatePolicy
    namespace: str
    """Of the Secret and the lease."""
    secret_name: str
    identity: str
    host: str = ""
    port: int = 9443
    on_error: OnError = "allow"
    node_wait_s: float = NODE_WAIT_S
    drain_s: float = 0.0
    resize_running: bool = False
    files: CertificateFiles | None = None
    """Instead of certificates of its own."""
    look_every_s: float = LOOK_EVERY_S


def add_components(app: App, clock: Clock, client: Client, options: SizingOptions, rng: Rng) -> WebhookServer:
    """Add everything to an app; returns the server, for its port."""
    sizing_metrics = SizingMetrics(app.metrics)
    recorder = EventRecorder(
        clock, client, COMPONENT, rng=rng.fork("events"), host=options.identity, metrics=app.metrics
    )
    nodes = Informer(clock, client, NODES, rng=rng.fork("informer/nodes"), transform=keep_sizes)
    informers = [nodes]
    reviewer = Reviewer(
        clock, KnownNodes(nodes), sizing_metrics, recorder,
        on_error=options.on_error, node_wait_s=options.node_wait_s,
    )  # fmt: skip
    context = new_context()
    server = WebhookServer(
        clock, reviewer, context, host=options.host, port=options.port, drain_s=options.drain_s
    )
    user = CertificateUser(context, server, sizing_metrics)
    app.add(recorder)
    leader: LeaderElector | None = None
    if options.resize_running:
        pods = Informer(
            clock, client, PODS, label_selector=f"{ENABLED_LABEL}=true", indexers={BY_NODE: index_by_node},
            rng=rng.fork("informer/pods"), transform=keep_resizable,
        )  # fmt: skip
        informers.append(pods)
        resizer = Resizer(clock, client, pods, nodes, recorder, sizing_metrics, metrics=app.metrics)
        leader = LeaderElector(
            clock, client, lease_name=COMPONENT, namespace=options.namespace, identity=options.identity,
            lead=resizer.controller.run, rng=rng.fork("leader"), metrics=app.metrics,
        )  # fmt: skip
    runner = app.add(InformerRunner("informers", informers))
    app.checks.add("informer-sync", runner.check)
    app.add(_certificates(app, clock, client, user, options))
    app.add(server, essential=True)
    app.checks.add("webhook", server.check)
    if leader is not None:
        app.add(leader)
        app.checks.add("leader-election", leader.check, live=True)
    return server


def _certificates(
    app: App, clock: Clock, client: Client, user: CertificateUser, options: SizingOptions
) -> Component:
    if options.files is not None:
        return FileCertificate(
            clock, client, user, options.registration, cert_file=options.files.cert, key_file=options.files.key,
            ca_file=options.files.ca, metrics=app.metrics, look_every_s=options.look_every_s,
        )  # fmt: skip
    return CertificateKeeper(
        clock, client, user, options.policy, options.registration, secret_name=options.secret_name,
        secret_namespace=options.namespace, metrics=app.metrics, look_every_s=options.look_every_s,
    )  # fmt: skip
