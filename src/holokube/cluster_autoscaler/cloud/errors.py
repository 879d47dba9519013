"""What goes wrong between the autoscaler and a cloud, by the kinds that upstream tells apart."""

from __future__ import annotations

from enum import Enum

from holokube.base.errors import HolokubeError


class ErrorKind(Enum):
    """What an error counts as: in ``errors_total``, and against liveness unless it is transient."""

    CLOUD_PROVIDER = "cloudProviderError"
    API_CALL = "apiCallError"
    INTERNAL = "internalError"
    TRANSIENT = "transientError"
    CONFIGURATION = "configurationError"
    NODE_GROUP_DOES_NOT_EXIST = "nodeGroupDoesNotExistError"
    UNEXPECTED_SCALE_DOWN_STATE = "unexpectedScaleDownStateError"


class AutoscalerError(HolokubeError):
    """An error of the autoscaler with its kind."""

    def __init__(self, message: str, *, kind: ErrorKind = ErrorKind.INTERNAL, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.kind = kind


class CloudError(AutoscalerError):
    """A provider refuses, or could not do, what it was asked for."""

    def __init__(self, message: str, *, kind: ErrorKind = ErrorKind.CLOUD_PROVIDER, hint: str = "") -> None:
        super().__init__(message, kind=kind, hint=hint)


class OutOfResourcesError(CloudError):
    """The cloud has no machine of that kind left."""


class NotImplementedByProvider(CloudError):
    """The provider does not offer this; the caller falls back on what the interface says."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the provider does not implement {what}")
