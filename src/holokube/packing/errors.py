"""What the packing engine refuses."""

from __future__ import annotations

from holokube.base.errors import HolokubeError


class PackingError(HolokubeError):
    """The engine was asked for something that makes no sense: an unknown node, a pod that is already there."""


class StaleClassError(PackingError):
    """A pod class no longer stands for one kind of pod, because a selector now tells its members apart.

    Ask ``ClusterState.class_of`` again, or group pods with ``ClusterState.classify``, which does.
    """
