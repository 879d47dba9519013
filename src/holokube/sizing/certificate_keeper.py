"""Keeps the certificate, the Secret that replicas share it by, and the webhook configuration as they should be."""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path

from holokube.base.clock import Clock
from holokube.base.errors import ConfigError
from holokube.base.log import get_logger
from holokube.client.client import Client
from holokube.client.resources import MUTATING_WEBHOOK_CONFIGURATIONS, SECRETS
from holokube.kube.errors import AlreadyExists, Conflict, Forbidden, NotFound
from holokube.kube.pki import KeyPair
from holokube.kube.types import JsonObject
from holokube.runtime.metrics import Metrics
from holokube.runtime.result import Result
from holokube.runtime.singleton import Singleton
from holokube.runtime.stop import StopSignal
from holokube.sizing.certificates import CertificatePolicy, Material, decide, ends_at, next_look_s
from holokube.sizing.metrics import SizingMetrics
from holokube.sizing.registration import Registration, published_bundle
from holokube.sizing.webhook import WebhookServer

LOOK_EVERY_S = 10.0
"""How often a replica looks whether another has renewed the certificate, or somebody has changed the configuration."""


def new_context() -> ssl.SSLContext:
    """A server's context, still without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


class CertificateUser:
    """Gives certificates to a running server."""

    def __init__(self, context: ssl.SSLContext, server: WebhookServer, metrics: SizingMetrics) -> None:
        self._context = context
        self._server = server
        self._metrics = metrics
        self._in_use: KeyPair | None = None
        self._log = get_logger("holokube.sizing.certificates")

    async def listens(self, first: KeyPair, stop: StopSignal) -> bool:
        """Waits until the server listens, with this pair if it has none: nobody is to be sent to a closed door.

        False if the stop came first.
        """
        if self._in_use is None:
            self.use(first)
        return await stop.finishes_first(self._server.started.wait())

    def registered(self) -> None:
        """API servers know of the server."""
        self._server.registered.set()

    def use(self, pair: KeyPair) -> None:
        """Serves with a pair from the next connection on; nothing happens if it is in use already."""
        if pair == self._in_use:
            return
        # Python reads keys from files only; these live for the blink of an eye, in a folder of our own.
        with tempfile.TemporaryDirectory(prefix="holokube-") as folder:
            cert, key = Path(folder, "cert.pem"), Path(folder, "key.pem")
            cert.write_bytes(pair.cert_pem)
            key.touch(mode=0o600)
            key.write_bytes(pair.key_pem)
            try:
                self._context.load_cert_chain(cert, key)
            except ssl.SSLError as error:
                raise ConfigError(
                    f"the certificate and key of the webhook cannot be used: {error}",
                    hint="Both must be PEM, belong together, and the key must not be encrypted.",
                ) from error
        self._in_use = pair
        ends = ends_at(pair.cert_pem)
        self._metrics.certificate_loaded(ends.timestamp())
        self._log.info("Serving with a new certificate", until=ends.isoformat())
        self._server.certified.set()


class CertificateKeeper:
    """Makes, stores, publishes and renews the webhook's own certificates; a component of the app."""

    name = "certificate-keeper"

    def __init__(
        self,
        clock: Clock,
        client: Client,
        user: CertificateUser,
        policy: CertificatePolicy,
        registration: Registration,
        *,
        secret_name: str,
        secret_namespace: str,
        metrics: Metrics | None = None,
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        self._clock = clock
        self._client = client
        self._user = user
        self._policy = policy
        self._registration = registration
        self._secret_name = secret_name
        self._namespace = secret_namespace
        self._look_every_s = look_every_s
        self._published: tuple[bytes, float] = (b"", 0.0)
        """The bundle seen in the configuration, and since when."""
        self._stop = StopSignal()
        self._loop = Singleton(clock, self.name, self.reconcile, metrics=metrics, backoff_max_s=LOOK_EVERY_S)

    async def run(self, stop: StopSignal) -> None:
        self._stop = stop
        await self._loop.run(stop)

    async def reconcile(self) -> Result:
        """One look at everything."""
        material = await self._material()
        if not await self._user.listens(material.serving, self._stop):
            return Result()
        # First the callers must trust a certificate, then it may be served.
        await self._publish(material.bundle)
        self._user.registered()
        self._user.use(material.serving)
        pause_s = next_look_s(material, self._clock.now(), self._policy, at_most_s=self._look_every_s)
        return Result(requeue_after_s=pause_s)

    async def _material(self) -> Material:
        """What the Secret holds, made or renewed if need be; a write that another replica beat is simply read."""
        while True:
            secret = await self._get_secret()
            before = Material.from_secret_data((secret or {}).get("data"))
            after = decide(before, self._clock.now(), self._policy, published_for_s=self._published_for_s(before))
            if after is before and before is not None:
                return before
            try:
                await self._write_secret(secret, after)
            except (AlreadyExists, Conflict):
                continue
            return after

    def _published_for_s(self, material: Material | None) -> float | None:
        bundle, since_s = self._published
        if material is None or bundle != material.bundle:
            return None
        return self._clock.monotonic() - since_s

    async def _get_secret(self) -> JsonObject | None:
        try:
            return await self._client.get(SECRETS, self._secret_name, self._namespace)
        except NotFound:
            return None

    async def _write_secret(self, secret: JsonObject | None, material: Material) -> None:
        data = material.to_secret_data()
        try:
            if secret is None:
                meta = {"name": self._secret_name, "namespace": self._namespace}
                await self._client.create(SECRETS, {"metadata": meta, "data": data}, self._namespace)
            else:
                await self._client.update(SECRETS, {**secret, "data": data}, self._namespace)
        except Forbidden as error:
            raise ConfigError(
                f"the Secret {self._namespace}/{self._secret_name} cannot be written: {error.message}",
                hint="Create it empty, and allow get and update of it; see deploy/node-sizing.",
            ) from error

    async def _publish(self, bundle: bytes) -> None:
        await publish(self._client, self._registration, bundle)
        if self._published[0] != bundle:
            self._published = bundle, self._clock.monotonic()


async def publish(client: Client, registration: Registration, bundle: bytes) -> bytes:
    """Bring the webhook configuration to what it should be; returns the authorities in it."""
    while True:
        try:
            existing: JsonObject | None = await client.get(MUTATING_WEBHOOK_CONFIGURATIONS, registration.name)
        except NotFound:
            existing = None
        wanted = registration.wanted(existing, bundle)
        if wanted is None:
            return published_bundle(existing)
        try:
            if existing is None:
                await client.create(MUTATING_WEBHOOK_CONFIGURATIONS, wanted)
            else:
                await client.update(MUTATING_WEBHOOK_CONFIGURATIONS, wanted)
            return published_bundle(wanted)
        except (AlreadyExists, Conflict):
            continue
        except Forbidden as error:
            raise ConfigError(
                f"the MutatingWebhookConfiguration {registration.name} cannot be written: {error.message}",
                hint="Create it, and allow get and update of it; see deploy/node-sizing.",
            ) from error


class FileCertificate:
    """Serves with a certificate that somebody else renews; a component of the app."""

    name = "certificate-files"

    def __init__(
        self,
        clock: Clock,
        client: Client,
        user: CertificateUser,
        registration: Registration,
        *,
        cert_file: Path,
        key_file: Path,
        ca_file: Path | None = None,
        metrics: Metrics | None = None,
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        """Without ``ca_file`` the ``caBundle`` in the configuration stays as it is."""
        self._client = client
        self._user = user
        self._registration = registration
        self._cert_file = cert_file
        self._key_file = key_file
        self._ca_file = ca_file
        self._look_every_s = look_every_s
        self._stop = StopSignal()
        self._loop = Singleton(clock, self.name, self.reconcile, metrics=metrics, backoff_max_s=LOOK_EVERY_S)

    async def run(self, stop: StopSignal) -> None:
        self._stop = stop
        await self._loop.run(stop)

    async def reconcile(self) -> Result:
        """One look at the files and the configuration."""
        try:
            pair = KeyPair(self._cert_file.read_bytes(), self._key_file.read_bytes())
            bundle = self._ca_file.read_bytes() if self._ca_file is not None else b""
        except OSError as error:
            raise ConfigError(
                f"{error.filename} cannot be read: {error.strerror}", hint="Check the options --tls-..-file."
            ) from error
        if not await self._user.listens(pair, self._stop):
            return Result()
        await publish(self._client, self._registration, bundle)
        self._user.registered()
        self._user.use(pair)
        return Result(requeue_after_s=self._look_every_s)
