"""What the nodes of pools have in all, kept up to date node by node."""

from __future__ import annotations

from holokube.kube.resources import ResourceVector


class PoolUsage:
    """Sums by pool and resource; a resource that no node has is not in them."""

    def __init__(self) -> None:
        self._counted: dict[str, tuple[str, ResourceVector]] = {}
        self._sums: dict[str, dict[str, list[int]]] = {}
        """By pool and resource: the sum, and how many nodes it is made of."""
        self.version = 0
        """Moves whenever a sum does."""

    def put(self, node: str, pool: str, capacity: ResourceVector) -> None:
        """A node counts for a pool, with what it has now."""
        known = self._counted.get(node)
        if known is not None and known[0] == pool and known[1] is capacity:
            return
        self.drop(node)
        self._counted[node] = pool, capacity
        self.version += 1
        sums = self._sums.setdefault(pool, {})
        for name, milli in capacity.items():
            found = sums.setdefault(name, [0, 0])
            found[0] += milli
            found[1] += 1

    def drop(self, node: str) -> None:
        """A node counts for no pool."""
        known = self._counted.pop(node, None)
        if known is None:
            return
        self.version += 1
        pool, capacity = known
        sums = self._sums[pool]
        for name, milli in capacity.items():
            found = sums[name]
            found[0] -= milli
            found[1] -= 1
            if not found[1]:
                del sums[name]
        if not sums:
            del self._sums[pool]

    def of(self, pool: str) -> ResourceVector:
        """The sums of one pool."""
        return {name: found[0] for name, found in self._sums.get(pool, {}).items()}
