"""Which cloud provider, and what it is made from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from holokube.base.clock import Clock
from holokube.base.errors import UsageError
from holokube.base.rng import Rng
from holokube.client.client import Client
from holokube.client.http import HttpTransport
from holokube.client.kubeconfig import load_access
from holokube.cluster_autoscaler.cloud.provider import CloudProvider, ResourceLimiter
from holokube.runtime.informers import InformerSet

if TYPE_CHECKING:
    from holokube.cluster_autoscaler.cloud.kubemark.provider import KubemarkProvider
    from holokube.cluster_autoscaler.cloud.kwok.provider import KwokProvider

KWOK, KUBEMARK = "kwok", "kubemark"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderChoice:
    """What the command line says about the provider."""

    provider: str
    kwok_templates: str = ""
    nodes: tuple[str, ...] = ()
    """``MIN:MAX:NAME``, of kubemark."""
    external_kubeconfig: str = ""
    external_context: str = ""
    kubemark_template: str = ""
    kubemark_template_config_map: str = ""
    kubemark_namespace: str = "kubemark"
    namespace: str = "kube-system"
    """Of kwok's ConfigMaps, unless the environment names another."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def check(self) -> None:
        """UsageError for what makes no sense together."""
        from holokube.cluster_autoscaler.cloud.kubemark.node_spec import parse_all

        parse_all(self.nodes)
        if self.provider == KUBEMARK and not self.nodes:
            raise UsageError("kubemark has no groups", hint="Give each with --nodes=MIN:MAX:NAME.")
        if self.provider == KWOK and self.nodes:
            raise UsageError(
                "--nodes is not for kwok, whose groups come from templates",
                hint="Write min-count and max-count as annotations on the templates.",
            )
        files = (("--kwok-templates", self.kwok_templates), ("--kubemark-template", self.kubemark_template))
        for option, path in files:
            if path and not Path(path).is_file():
                raise UsageError(f"{option}: there is no file {path}", hint="Check the path.")


class ProviderFactory:
    """Makes the chosen provider, again and again if need be, and ends what it made."""

    def __init__(
        self,
        clock: Clock,
        client: Client,
        informers: InformerSet,
        rng: Rng,
        choice: ProviderChoice,
        *,
        resource_limiter: ResourceLimiter | None = None,
    ) -> None:
        self._clock = clock
        self._client = client
        self._informers = informers
        self._rng = rng
        self._choice = choice
        self._limiter = resource_limiter
        self._external: Client | None = None
        self._made: KwokProvider | KubemarkProvider | None = None
        self._count = 0

    async def build(self) -> CloudProvider:
        """A provider that is ready; the one before is ended first."""
        await self._close_provider()
        # One that made the same draws again would come upon names that are taken.
        rng = self._rng.fork(f"provider/{self._count}")
        self._count += 1
        self._made = await (self._kwok(rng) if self._choice.provider == KWOK else self._kubemark(rng))
        return self._made

    async def close(self) -> None:
        """End the provider; its nodes stay as they are."""
        await self._close_provider()
        if self._external is not None:
            await self._external.close()
            self._external = None

    async def _close_provider(self) -> None:
        made, self._made = self._made, None
        if made is not None:
            await made.close()

    async def _kwok(self, rng: Rng) -> KwokProvider:
        from holokube.cluster_autoscaler.cloud.kwok.provider import build
        from holokube.cluster_autoscaler.cloud.kwok.sources import TEMPLATES_PATH

        environ = dict(self._choice.environ)
        if self._choice.kwok_templates:
            environ[TEMPLATES_PATH] = self._choice.kwok_templates
        return await build(
            self._clock, self._client, self._informers, rng, environ=environ, namespace=self._choice.namespace,
            resource_limiter=self._limiter,
        )  # fmt: skip

    async def _kubemark(self, rng: Rng) -> KubemarkProvider:
        from holokube.cluster_autoscaler.cloud.kubemark.node_spec import parse_all
        from holokube.cluster_autoscaler.cloud.kubemark.provider import build

        choice = self._choice
        return await build(
            self._clock,
            self._external_client(),
            self._client,
            None,
            rng,
            nodes=parse_all(choice.nodes),
            template_manifest=_content(choice.kubemark_template),
            template_source=choice.kubemark_template or "template",
            template_config_map=choice.kubemark_template_config_map,
            namespace=choice.kubemark_namespace,
            resource_limiter=self._limiter,
        )

    def _external_client(self) -> Client:
        """Of the cluster in which hollow nodes are pods; the same as theirs unless told."""
        choice = self._choice
        if not (choice.external_kubeconfig or choice.external_context):
            return self._client
        if self._external is None:
            access = load_access(choice.external_kubeconfig, choice.external_context)
            self._external = Client(HttpTransport(self._clock, access))
        return self._external


def _content(path: str) -> bytes:
    return Path(path).read_bytes() if path else b""
