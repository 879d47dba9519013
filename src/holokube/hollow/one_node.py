"""A node that is described by the flags of its kubelet, on top of what a profile says of all nodes."""

from __future__ import annotations

import msgspec

from holokube.hollow.profile import NodeProfile
from holokube.kube.node_flags import NodeFlags


def node_profile(profile: NodeProfile, flags: NodeFlags) -> NodeProfile:
    """The profile of the one node: what its flags say comes first."""
    resized = bool(flags.capacity or flags.allocatable)
    return msgspec.structs.replace(
        profile,
        capacity=flags.capacity_over(profile.capacity),
        # What the profile leaves to pods is meant for a node of the profile's size.
        allocatable=flags.allocatable_over(profile.capacity) if resized else profile.allocatable,
        labels={**profile.labels, **flags.labels},
        taints=[*profile.taints, *(taint.to_json() for taint in flags.taints)],
    )
