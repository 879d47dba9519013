"""What one turn knows about the node groups, read from the provider once.

Decisions take ``GroupView`` and never see a provider: what may have to be asked for over a network has been asked for
when they begin, and it does not change under their hands.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from holokube.cluster_autoscaler.cloud.errors import CloudError, NotImplementedByProvider
from holokube.cluster_autoscaler.cloud.provider import (
    CloudProvider,
    GpuConfig,
    GroupOptions,
    Instance,
    NodeGroup,
    NodeInfo,
)


@dataclass(frozen=True, slots=True)
class GroupView:
    """A node group at the start of a turn."""

    id: str
    min_size: int
    max_size: int
    target_size: int | None
    """None if the provider could not tell: the group is then not ready for a scale-up."""
    options: GroupOptions = field(default_factory=GroupOptions)
    exists: bool = True
    template: NodeInfo | None = None
    """The provider's own template; None if it has none to offer."""
    template_error: str = ""
    """Why the provider could not give its template, if that is not merely unimplemented."""
    instances: tuple[Instance, ...] = ()
    gpu: GpuConfig | None = None
    """The accelerators of the provider's template."""
    debug: str = ""


async def read_group(provider: CloudProvider, group: NodeGroup, defaults: GroupOptions,
                     instances: tuple[Instance, ...] = ()) -> GroupView:
    """Ask a provider for everything a turn wants to know about a group.

    A target size that cannot be had makes the group unusable for this turn, not the turn impossible.
    """
    target: int | None
    try:
        target = await group.target_size()
    except CloudError:
        target = None
    template: NodeInfo | None = None
    problem = ""
    try:
        template = await group.template_node_info()
    except NotImplementedByProvider:
        pass
    except CloudError as error:
        problem = error.message
    return GroupView(
        id=group.id, min_size=group.min_size, max_size=group.max_size, target_size=target,
        options=await group_options(group, defaults), exists=await _exists(group),
        template=template, template_error=problem, instances=instances,
        gpu=None if template is None else provider.node_gpu_config(template.node), debug=group.debug(),
    )


async def group_options(group: NodeGroup, defaults: GroupOptions) -> GroupOptions:
    """A group's own settings, or the defaults where it has none or cannot tell."""
    try:
        return await group.options(defaults) or defaults
    except NotImplementedByProvider:
        return defaults


async def _exists(group: NodeGroup) -> bool:
    try:
        return await group.exists()
    except NotImplementedByProvider:
        return True
