"""A channel without a wire, for conversations on virtual time: the same bytes, straight to the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

from holokube.cluster_autoscaler.cloud.grpc.messages import METHODS, decode, encode
from holokube.cluster_autoscaler.cloud.grpc.service import CloudProviderService
from holokube.cluster_autoscaler.cloud.grpc.statuses import status_of


class LocalChannel:
    """What ``Autoscaler`` needs of a channel."""

    def __init__(self, service: CloudProviderService) -> None:
        self._service = service

    def unary_unary(
        self,
        path: str,
        request_serializer: Callable[[Any], bytes],
        response_deserializer: Callable[[bytes], Any],
    ) -> Any:
        method = path.rpartition("/")[2]
        asked, answered = METHODS[method]

        async def call(request: Any, timeout: float) -> Any:
            try:
                question = decode(asked, request_serializer(request))
                return response_deserializer(encode(answered, await self._service.answer(method, question)))
            except Exception as error:
                code, text = status_of(error)
                nothing = grpc.aio.Metadata()
                raise grpc.aio.AioRpcError(grpc.StatusCode[code], nothing, nothing, text) from error

        return call
