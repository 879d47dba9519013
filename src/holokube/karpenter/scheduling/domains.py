"""The domains that a topology key can have at all, by pools and their instance types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holokube.karpenter.api.node_pool import NodePool
from holokube.karpenter.scheduling.topology_specs import tolerates
from holokube.kube.requirements import Requirement, Requirements
from holokube.kube.taints import Taint, Toleration
from holokube.pricing.instance_types import InstanceType


class Universe:
    """Every domain that a new node could be in, with the taints of the pools that reach it."""

    def __init__(self, pools: Sequence[NodePool], types_of_pool: Mapping[str, Sequence[InstanceType]]) -> None:
        self._pools = [
            (pool, pool.requirements.merged(Requirements.from_labels(pool.template_labels)), types_of_pool[pool.name])
            for pool in pools
            if types_of_pool.get(pool.name)
        ]
        self._by_key: dict[str, dict[str, list[tuple[Taint, ...]]]] = {}
        self._reached: dict[tuple[str, tuple[Toleration, ...] | None], tuple[str, ...]] = {}

    def domains(self, key: str, tolerations: tuple[Toleration, ...] | None) -> tuple[str, ...]:
        """Those of a key, in alphabetical order; only where ``tolerations`` reach, if they are given."""
        known = self._reached.get((key, tolerations))
        if known is None:
            reached = self._of_key(key)
            known = self._reached[key, tolerations] = tuple(sorted(
                domain
                for domain, taint_sets in reached.items()
                if tolerations is None or any(tolerates(taints, tolerations) for taints in taint_sets)
            ))  # fmt: skip
        return known

    def _of_key(self, key: str) -> dict[str, list[tuple[Taint, ...]]]:
        found = self._by_key.get(key)
        if found is not None:
            return found
        found = self._by_key[key] = {}
        for pool, requirements, types in self._pools:
            of_pool = requirements.get(key)
            seen: set[Requirement] = set()
            for one in types:
                of_type = one.requirements.get(key)
                if of_type is not None and of_type not in seen:
                    seen.add(of_type)
                    narrowed = of_type if of_pool is None else of_type.intersection(of_pool)
                    self._insert(found, narrowed, pool.taints)
            if of_pool is not None and (of_pool.operator == "In" or any(key not in one.requirements for one in types)):
                # Of values that are excluded, the excluded ones become domains: upstream does not look at the operator.
                self._insert(found, of_pool, pool.taints)
        return found

    @staticmethod
    def _insert(found: dict[str, list[tuple[Taint, ...]]], requirement: Requirement, taints: tuple[Taint, ...]) -> None:
        for domain in requirement.values:
            known = found.get(domain)
            if known is None or not taints:
                found[domain] = [taints]
            elif known[0] and taints not in known:
                known.append(taints)
