"""The gRPC server: listens, reads and writes messages, counts calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from holokube.base.clock import Clock
from holokube.base.errors import ConfigError, HolokubeError
from holokube.base.log import get_logger
from holokube.cluster_autoscaler.cloud.grpc.library import grpc_library
from holokube.cluster_autoscaler.cloud.grpc.messages import METHODS, SERVICE, decode, encode
from holokube.cluster_autoscaler.cloud.grpc.service import CloudProviderService
from holokube.cluster_autoscaler.cloud.grpc.statuses import CallRefused, status_of
from holokube.cluster_autoscaler.cloud.grpc.tls import FreshCredentials, ServerFiles
from holokube.kube.protobuf import Malformed
from holokube.runtime.stop import StopSignal

STOP_GRACE_S: Final = 5.0
_OPTIONS: Final = (
    # Otherwise a second server on the same port would start, and get half of the calls.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", 128 << 20),
)


class CallMetrics:
    """Calls under the names that gRPC servers in Go use."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ["grpc_type", "grpc_service", "grpc_method"]
        self._handled = Counter(
            "grpc_server_handled_total", "Calls that were answered, by code.", [*labels, "grpc_code"], registry=registry
        )
        self._seconds = Histogram(
            "grpc_server_handling_seconds", "How long the answer to a call took.", labels, registry=registry
        )

    def observe(self, method: str, code: str, seconds: float) -> None:
        """Count one call; codes are written as Go writes them."""
        in_go = "OK" if code == "OK" else code.title().replace("_", "")
        self._handled.labels("unary", SERVICE, method, in_go).inc()
        self._seconds.labels("unary", SERVICE, method).observe(seconds)


class CloudProviderServer:
    """Serves one provider; a component of the app."""

    name = "cloud-provider"

    def __init__(
        self,
        clock: Clock,
        service: CloudProviderService,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        files: ServerFiles | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._grpc = grpc_library()
        self._clock = clock
        self._service = service
        self._host = host
        self._port = port
        self._files = files
        self._metrics = CallMetrics(registry) if registry is not None else None
        self._log = get_logger("holokube.cluster_autoscaler.cloud.grpc")
        self.started = StopSignal()
        """Set when the server listens; ``port`` is known from then on."""
        self.port = port

    async def run(self, stop: StopSignal) -> None:
        server = self._grpc.aio.server(options=_OPTIONS)
        handlers = {
            method: self._grpc.unary_unary_rpc_method_handler(self._handler(method)) for method in METHODS
        }
        server.add_generic_rpc_handlers((self._grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self.port = self._bind(server)
        await server.start()
        try:
            self.started.set()
            await stop.wait()
        finally:
            await server.stop(STOP_GRACE_S)
            await self._service.finish()

    def _bind(self, server: Any) -> int:
        shown = f"[{self._host}]" if ":" in self._host else self._host or "[::]"
        address = f"{shown}:{self._port}"
        try:
            if self._files is None:
                bound = server.add_insecure_port(address)
            else:
                bound = server.add_secure_port(address, FreshCredentials(self._files).build())
        except RuntimeError as error:
            raise ConfigError(
                f"cannot listen on {address}: {error}",
                hint="Choose another --address, or end the program that uses this one.",
            ) from error
        return int(bound)

    def _handler(self, method: str) -> Callable[[bytes, Any], Awaitable[bytes]]:
        """Bytes to bytes: what cannot be read is the caller's fault, and is told as such."""
        asked, answered = METHODS[method]

        async def handle(raw: bytes, context: Any) -> bytes:
            started_s = self._clock.monotonic()
            code = "CANCELLED"
            try:
                answer = encode(answered, await self._service.answer(method, decode(asked, raw)))
                code = "OK"
                return answer
            except Exception as error:
                code, text = status_of(error)
                self._log_refusal(method, code, error)
                await context.abort(self._grpc.StatusCode[code], text)
                raise
            finally:
                if self._metrics is not None:
                    self._metrics.observe(method, code, self._clock.monotonic() - started_s)

        return handle

    def _log_refusal(self, method: str, code: str, error: Exception) -> None:
        if code == "UNIMPLEMENTED":
            # Asked again and again, and nothing is wrong.
            self._log.debug("Call is not offered", method=method, why=str(error))
        elif isinstance(error, HolokubeError | CallRefused | Malformed):
            self._log.warning("Call refused", method=method, code=code, why=str(error))
        else:
            self._log.exception("Call failed unexpectedly", exc=error, method=method)
