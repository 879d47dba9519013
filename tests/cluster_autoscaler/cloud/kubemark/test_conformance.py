"""The kubemark provider keeps to the interface, clause by clause."""

from __future__ import annotations

import pytest

from holokube.base.clock import VirtualClock
from tests.cluster_autoscaler.cloud.conformance import CLAUSES, Clause, check, name_of
from tests.cluster_autoscaler.cloud.kubemark.worlds import World


class Kubemark(World):
    """A kubemark provider as the suite wants it."""

    implements = frozenset({"atomic_increase_size", "force_delete_nodes", "has_instance", "options"})


async def make_world(clock: VirtualClock) -> Kubemark:
    world = await Kubemark.start(clock, "0:10:empty", "2:5:kept")
    await world.settle()
    return world


@pytest.mark.parametrize("clause", CLAUSES, ids=name_of)
def test_the_kubemark_provider_keeps_to_the_interface(clause: Clause) -> None:
    check(clause, make_world)
