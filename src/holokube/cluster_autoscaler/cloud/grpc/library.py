"""grpcio, which is installed only where somebody wants it."""

from __future__ import annotations

import importlib
from typing import Any

from holokube.base.errors import ConfigError


def grpc_library() -> Any:
    """The module ``grpc`` with ``grpc.aio``; ConfigError if it is not installed.

    It has no types of its own, which is why it is handed out as Any.
    """
    try:
        importlib.import_module("grpc.aio")
        return importlib.import_module("grpc")
    except ImportError as error:
        raise ConfigError(
            f"gRPC is not installed: {error}", hint="Install it with: pip install 'holokube[grpc]'"
        ) from error
