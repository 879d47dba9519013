"""Leaves the choice to a program of the user's own, by upstream's ``grpcplugin`` protocol.

The program is told every option with its pods and what a new node would look like, and answers with the options that
it would take. One that cannot be reached, or names groups that were not offered, does not stop the autoscaler: then all
options stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import orjson

from holokube.base.errors import ConfigError
from holokube.base.log import get_logger
from holokube.cluster_autoscaler.cloud.grpc.library import grpc_library
from holokube.cluster_autoscaler.expanders.context import ExpanderContext
from holokube.cluster_autoscaler.scale_up.option import Option
from holokube.kube.protobuf import CannotEncode, Decoder, Encoder, Malformed, encode_object, read_rows
from holokube.kube.types import JsonObject

METHOD: Final = "/grpcplugin.Expander/BestOptions"
TIMEOUT_S: Final = 5.0
MESSAGE_BYTES_MAX: Final = 128 << 20

_FIELDS: Final = {
    name: read_rows([(number, field, kind, False) for number, field, kind in rows])
    for name, rows in {
        "Option": (
            (1, "nodeGroupId", "string"), (2, "nodeCount", "int32"), (3, "debug", "string"), (5, "podBytes", "[]raw"),
        ),
        "Request": ((1, "options", "[]Option"), (3, "nodeBytesMap", "{}raw")),
        "Answer": ((1, "options", "[]Option"),),
    }.items()
}  # fmt: skip
_ENCODER: Final = Encoder(_FIELDS.get)
_DECODER: Final = Decoder(_FIELDS.get)


class GrpcExpander:
    """See the module. The connection is made when it is first needed; ``close`` ends it."""

    name = "grpc"

    def __init__(self, url: str, cert_file: str) -> None:
        """``host:port`` of the program, and the certificate of who signed its certificate."""
        if not url:
            raise ConfigError("the grpc expander has no address", hint="Give --grpc-expander-url host:port.")
        if not cert_file:
            raise ConfigError(
                "the grpc expander has no certificate, and there is no way without one",
                hint="Give --grpc-expander-cert a PEM file with the authority of the program's certificate.",
            )
        try:
            self._authority = Path(cert_file).read_bytes()
        except OSError as error:
            raise ConfigError(
                f"{cert_file} cannot be read: {error.strerror}", hint="Check --grpc-expander-cert."
            ) from error
        self._grpc = grpc_library()
        self._url = url
        self._channel: Any = None
        self._log = get_logger("holokube.cluster_autoscaler.expanders.grpc")

    async def best_options(self, options: Sequence[Option], ctx: ExpanderContext) -> list[Option]:
        """The options that the program keeps, in its order; all of them if it has no usable answer."""
        offered = list(options)
        if not offered:
            return []
        by_group = {option.group_id: option for option in offered}
        try:
            raw = await self._ask(_request(offered))
            answered = _DECODER.decode(raw, "Answer").get("options", [])
        except (self._grpc.RpcError, CannotEncode, Malformed) as error:
            self._keep_all(offered, ctx, f"gave no answer: {_why(error)}")
            return offered
        names = [option.get("nodeGroupId", "") for option in answered]
        kept = [by_group[name] for name in names if name in by_group]
        unknown = sorted({name for name in names if name not in by_group})
        if unknown:
            self._log.warning("The expander names groups that were not offered", url=self._url, groups=unknown)
        if unknown and not kept:
            self._keep_all(offered, ctx, "names only groups that were not offered")
            return offered
        for option in offered:
            is_kept = option.group_id in names
            ctx.score(option, float(is_kept), f"the expander at {self._url} {'keeps' if is_kept else 'drops'} it")
        return kept

    async def close(self) -> None:
        """End the connection."""
        if self._channel is not None:
            await self._channel.close()
            self._channel = None

    async def _ask(self, request: bytes) -> bytes:
        if self._channel is None:
            # Needs a running loop, which a constructor may not have.
            self._channel = self._grpc.aio.secure_channel(
                self._url,
                self._grpc.ssl_channel_credentials(self._authority),
                options=[
                    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
                    ("grpc.max_send_message_length", -1),
                ],
            )
        answer: bytes = await self._channel.unary_unary(METHOD)(request, timeout=TIMEOUT_S)
        return answer

    def _keep_all(self, options: Sequence[Option], ctx: ExpanderContext, why: str) -> None:
        self._log.warning("No option is left out: the expander is of no help", url=self._url, why=why)
        for option in options:
            ctx.score(option, 0.0, f"the expander at {self._url} {why}")


def _why(error: Exception) -> str:
    code, details = getattr(error, "code", None), getattr(error, "details", None)
    return f"{code().name}: {details()}" if callable(code) and callable(details) else str(error)


def _request(options: Sequence[Option]) -> bytes:
    pods = _PodBytes()
    message = {
        "options": [
            {
                "nodeGroupId": option.group_id,
                "nodeCount": option.node_count,
                "debug": option.debug,
                "podBytes": [pods.of(pod) for pod in option.pods],
            }
            for option in options
        ],
        "nodeBytesMap": {option.group_id: encode_object(option.node.node, "v1", "Node") for option in options},
    }
    return _ENCODER.encode(message, "Request")


class _PodBytes:
    """Pods as bytes. A pod is in many options, and thousands of pods have the same spec: each is written once."""

    def __init__(self) -> None:
        self._pods: dict[int, bytes] = {}
        self._specs: dict[bytes, bytes] = {}

    def of(self, pod: JsonObject) -> bytes:
        found = self._pods.get(id(pod))
        if found is None:
            # Messages that follow each other are merged, so that parts may be written one by one.
            rest: Mapping[str, Any] = {"metadata": pod.get("metadata"), "status": pod.get("status")}
            found = self._pods[id(pod)] = encode_object(rest, "v1", "Pod") + self._spec(pod.get("spec"))
        return found

    def _spec(self, spec: Any) -> bytes:
        key = orjson.dumps(spec)
        found = self._specs.get(key)
        if found is None:
            found = self._specs[key] = encode_object({"spec": spec}, "v1", "Pod")
        return found
