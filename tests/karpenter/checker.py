"""An independent checker of plans: does every placement keep Kubernetes' and Karpenter's rules?

It is written from the rules, knows nothing of how plans are made, and looks at the end state only. ``check_world``
returns everything that is broken; an empty list is a good plan. :mod:`tests.karpenter.checker_inputs` makes a ``World``
of files or of a solver's own objects. Where an end state cannot tell (a claim that may still come up in several zones),
nothing is reported: what is reported is wrong for sure.

Three things upstream allows are no violations here: preferences that were dropped, ``limits.nodes`` overshot within one
run, and a maximum skew that was broken before the plan and not by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holokube.kube.resources import pod_requests
from tests.karpenter.checker_nodes import holds, matches_node, term_holds, tolerates
from tests.karpenter.checker_topology import check_topology
from tests.karpenter.checker_world import (
    CAPACITY_TYPE,
    INSTANCE_TYPE,
    ZONE,
    Kind,
    Place,
    Pod,
    Storage,
    Vector,
    Violation,
    World,
    impossible_labels,
    key_of,
    label_of,
)

_EPHEMERAL = {
    ("node.kubernetes.io/not-ready", "NoSchedule"), ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoSchedule"),
    ("node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule"),
    ("karpenter.sh/unregistered", "NoExecute"), ("karpenter.sh/rebooting", "NoSchedule"),
}  # fmt: skip
_SMALL = 1e-9


def check_world(world: World) -> list[Violation]:
    """All rules that a plan breaks, in the order of its places."""
    found = list(_bookkeeping(world))
    for place in world.places:
        if place.placed:
            found.extend(_check_place(world, place))
        if place.is_new:
            found.extend(_check_claim(world, place))
    found.extend(check_topology(world))
    found.extend(_limits(world))
    found.extend(_reservations(world))
    return found


def _bookkeeping(world: World) -> Iterator[Violation]:
    """Every pod goes to one place at most, and none is made up."""
    known = {key_of(pod) for pod in world.pending}
    times = Counter(key_of(pod) for place in world.places for pod in place.placed)
    for place in world.places:
        for pod in place.placed:
            if place.is_leaving:
                yield Violation("pods", place.name, key_of(pod), "is placed on a node that is being deleted")
            elif key_of(pod) not in known:
                yield Violation("pods", place.name, key_of(pod), "is not to be placed")
            elif times[key_of(pod)] > 1:
                yield Violation("pods", place.name, key_of(pod), f"is placed {times[key_of(pod)]} times")
            elif key_of(pod) in world.errors:
                yield Violation("pods", place.name, key_of(pod), "is placed and has an error as well")


def _check_place(world: World, place: Place) -> Iterator[Violation]:
    kinds: tuple[Kind | None, ...] = place.options if place.is_new else (None,)
    for pod in place.placed:
        yield from _taints(place, pod)
        for kind in kinds if _minds_the_node(world.storage, pod) else ():
            where = f"{place.name} as {kind.name}" if kind is not None else place.name
            if not matches_node(pod, place, kind):
                yield Violation("node-affinity", where, key_of(pod), "the node's labels do not match")
            yield from _volume_topology(world.storage, pod, place, kind, where)
    for kind in kinds:
        yield from _ports(world, place, kind)
    yield from _attachments(world.storage, place)
    used = _sum(_asks(pod) for pod in (*place.before, *place.placed))
    for kind in kinds:
        yield from _resources(world, place, kind, used)


def _minds_the_node(storage: Storage, pod: Pod) -> bool:
    spec = pod["spec"]
    words = spec.get("nodeSelector") or (spec.get("affinity") or {}).get("nodeAffinity")
    return bool(words) or any(True for _ in _claims_of(storage, pod))


def _taints(place: Place, pod: Pod) -> Iterator[Violation]:
    for taint in place.taints:
        if taint.get("effect") not in ("NoSchedule", "NoExecute"):
            continue
        if not place.is_new and not place.is_initialized and _passes(taint, place.startup_taints):
            continue
        if not tolerates(pod, taint):
            yield Violation("taints", place.name, key_of(pod), f"does not tolerate {taint['key']}:{taint['effect']}")


def _passes(taint: Mapping[str, Any], startup: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a taint goes away by itself when a node becomes ready."""
    same = ((known["key"], known.get("effect")) for known in startup)
    key = (taint["key"], taint.get("effect"))
    return key in _EPHEMERAL or key in same or taint["key"].startswith("readiness.k8s.io/")


def _ports(world: World, place: Place, kind: Kind | None) -> Iterator[Violation]:
    if not any(_has_ports(pod) for pod in place.placed):
        return
    taken: list[tuple[str, int, str, str]] = []
    daemons = [pod for pod in world.daemons if _lands(pod, place, kind)]
    running = {_owner(pod) for pod in place.before}
    for pod in (*place.before, *(one for one in daemons if _owner(one) not in running), *place.placed):
        mine = list(_host_ports(pod))
        for protocol, port, address in mine:
            for other in taken:
                if (protocol, port) == other[:2] and ("0.0.0.0" in (address, other[2]) or address == other[2]):
                    yield Violation("ports", place.name, key_of(pod), f"port {port} is taken by {other[3]}")
        taken += [(*port, key_of(pod)) for port in mine]


def _has_ports(pod: Pod) -> bool:
    return any(True for _ in _host_ports(pod))


def _host_ports(pod: Pod) -> Iterator[tuple[str, int, str]]:
    spec = pod["spec"]
    sidecars = [one for one in spec.get("initContainers") or () if one.get("restartPolicy") == "Always"]
    for container in (*spec["containers"], *sidecars):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                yield port.get("protocol") or "TCP", port["hostPort"], port.get("hostIP") or "0.0.0.0"


def _resources(world: World, place: Place, kind: Kind | None, pods: Vector) -> Iterator[Violation]:
    used = dict(pods)
    daemons = [pod for pod in world.daemons if _lands(pod, place, kind)]
    expected = _sum(_asks(pod) for pod in daemons)
    running = _sum(_asks(pod) for pod in place.before if _is_daemon(pod))
    for name, milli in expected.items():
        used[name] = used.get(name, 0) + max(0, milli - running.get(name, 0))
    if kind is None:
        if lack := _lacking(used, place.allocatable):
            yield Violation("resources", place.name, "", lack)
        return
    lack = ""
    for deal in place.deals(kind):
        lack = _lacking(used, deal.allocatable)
        if not lack:
            return
    if lack:
        yield Violation("resources", f"{place.name} as {kind.name}", "", lack)


def _asks(pod: Pod) -> Vector:
    return {**pod_requests(pod), "pods": 1000}


def _sum(vectors: Iterable[Vector]) -> dict[str, int]:
    total: dict[str, int] = {}
    for vector in vectors:
        for name, milli in vector.items():
            total[name] = total.get(name, 0) + milli
    return total


def _lacking(used: Vector, allocatable: Vector) -> str:
    missing = [
        f"{name} {milli} of {allocatable.get(name, 0)}"
        for name, milli in used.items() if milli > 0 and milli > allocatable.get(name, 0)
    ]  # fmt: skip
    return ", ".join(missing)


def _lands(daemon: Pod, place: Place, kind: Kind | None) -> bool:
    """Whether a daemon surely comes to a node."""
    return matches_node(daemon, place, kind) and all(
        tolerates(daemon, taint) for taint in place.taints
        if taint.get("effect") in ("NoSchedule", "NoExecute")
        and not (not place.is_initialized and _passes(taint, place.startup_taints))
    )  # fmt: skip


def _is_daemon(pod: Pod) -> bool:
    return any(owner.get("kind") == "DaemonSet" for owner in pod["metadata"].get("ownerReferences") or ())


def _owner(pod: Pod) -> tuple[str, str]:
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("kind") == "DaemonSet":
            return str(pod["metadata"].get("namespace")), str(owner["name"])
    return "", key_of(pod)


def _check_claim(world: World, place: Place) -> Iterator[Violation]:
    """A claim has options, each of them can be bought, and the price told is the lowest of them."""
    pool = world.pools.get(place.pool)
    if pool is None:
        yield Violation("offering", place.name, "", f"there is no pool {place.pool}")
        return
    if not place.options:
        yield Violation("offering", place.name, "", "no instance type is left")
    offered = {kind.name for kind in pool.kinds}
    prices = []
    for kind in place.options:
        where = f"{place.name} as {kind.name}"
        if kind.name not in offered:
            yield Violation("offering", where, "", f"pool {pool.name} does not offer it")
        for key in impossible_labels(place.label_set, pool, kind):
            yield Violation("offering", where, "", f"no value of {key} is left")
        deals = place.deals(kind)
        if not deals:
            yield Violation("offering", where, "", "is not offered where the claim may be")
        prices += [deal.price for deal in deals if deal.launchable]
    if place.choice is not None:
        yield from _check_choice(place, prices)
    if world.minimums_are_strict and place.has_all_options:
        yield from _min_values(place, pool.min_values)


def _check_choice(place: Place, prices: list[float]) -> Iterator[Violation]:
    choice = place.choice
    assert choice is not None
    kinds = [kind for kind in place.options if kind.name == choice.kind]
    if not kinds:
        yield Violation("offering", place.name, "", f"{choice.kind} is not among its instance types")
        return
    wanted = {ZONE: choice.zone, CAPACITY_TYPE: choice.capacity_type}
    same = [
        deal for deal in place.deals(kinds[0])
        if deal.launchable
        and all(key not in deal.labels or deal.labels[key].has(value) for key, value in wanted.items())
        and abs(deal.price - choice.price) < _SMALL
    ]  # fmt: skip
    if not same:
        yield Violation("offering", place.name, "", f"{choice} is not offered")
    if prices and choice.price > min(prices) + _SMALL:
        yield Violation("price", place.name, "", f"{choice.price} where {min(prices)} would do")


def _min_values(place: Place, minimums: Mapping[str, int]) -> Iterator[Violation]:
    for key, minimum in minimums.items():
        values: set[str] = set()
        for kind in place.options:
            label = label_of(place, kind, key) if key != INSTANCE_TYPE else kind.labels.get(key)
            values |= label.listed if label is not None and not label.is_open else frozenset()
        if len(values) < minimum:
            yield Violation("min-values", place.name, "", f"{len(values)} values of {key}, not {minimum}")


def _limits(world: World) -> Iterator[Violation]:
    """A pool's nodes, with each new one as large as it may become, stay within its limits."""
    for pool in world.pools.values():
        if pool.limits is None:
            continue
        mine = [place for place in world.places if place.pool == pool.name]
        old, new = [p for p in mine if not p.is_new], [p for p in mine if p.is_new]
        if not new:
            continue
        for name, limit in pool.limits.items():
            if name == "nodes":
                if len(old) * 1000 >= limit:
                    yield Violation("limits", "", "", f"pool {pool.name} has {len(old)} nodes and gets more")
                continue
            before = sum(place.capacity.get(name, 0) for place in old)
            added = sum(max((kind.capacity.get(name, 0) for kind in place.options), default=0) for place in new)
            if added and before + added > limit:
                yield Violation("limits", "", "", f"pool {pool.name}: {before + added} {name}, limit {limit}")


def _reservations(world: World) -> Iterator[Violation]:
    """No reservation is drawn on more often than it has room."""
    room: dict[str, int] = {}
    for pool in world.pools.values():
        for kind in pool.kinds:
            for deal in kind.deals:
                if deal.reservation:
                    known = room.get(deal.reservation, deal.reservation_capacity)
                    room[deal.reservation] = min(known, deal.reservation_capacity)
    held: Counter[str] = Counter()
    for place in world.places:
        capacity = place.labels.get(CAPACITY_TYPE)
        if not place.is_new or capacity is None or capacity.single != "reserved":
            continue
        held.update({
            deal.reservation for kind in place.options for deal in place.deals(kind) if deal.reservation
        })  # fmt: skip
    for reservation, times in held.items():
        if times > room.get(reservation, 0):
            yield Violation(
                "reservation", "", "", f"{reservation} has room for {room.get(reservation, 0)}, not {times}")


def _claims_of(storage: Storage, pod: Pod) -> Iterator[Mapping[str, Any]]:
    namespace = pod["metadata"].get("namespace") or "default"
    for volume in pod["spec"].get("volumes") or ():
        name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if volume.get("ephemeral"):
            name = f"{pod['metadata']['name']}-{volume['name']}"
        claim = storage.claims.get((namespace, name)) if name else None
        if claim is not None:
            yield claim


def _volume_topology(
    storage: Storage, pod: Pod, place: Place, kind: Kind | None, where: str
) -> Iterator[Violation]:
    for claim in _claims_of(storage, pod):
        name = claim["metadata"]["name"]
        volume = storage.volumes.get((claim.get("spec") or {}).get("volumeName") or "")
        if volume is not None:
            terms = ((volume["spec"].get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms")
            if terms and not any(term_holds(term, place, kind) for term in terms):
                yield Violation("volumes", where, key_of(pod), f"the volume of claim {name} is elsewhere")
            continue
        made_by = storage.classes.get((claim.get("spec") or {}).get("storageClassName") or "")
        topologies = (made_by or {}).get("allowedTopologies") or ()
        if topologies and not any(
            all(
                holds({**entry, "operator": "In"}, place, kind)
                for entry in topology.get("matchLabelExpressions") or ()
            )
            for topology in topologies
        ):
            yield Violation("volumes", where, key_of(pod), f"claim {name} cannot have a volume here")


def _attachments(storage: Storage, place: Place) -> Iterator[Violation]:
    if not place.attach_limits:
        return
    attached: dict[str, set[str]] = {}
    for pod in (*place.before, *place.placed):
        for claim in _claims_of(storage, pod):
            volume = storage.volumes.get((claim.get("spec") or {}).get("volumeName") or "")
            made_by = storage.classes.get((claim.get("spec") or {}).get("storageClassName") or "")
            driver = ((volume or {}).get("spec") or {}).get("csi", {}).get("driver") or (made_by or {}).get(
                "provisioner")
            if driver:
                attached.setdefault(driver, set()).add(key_of(claim))
    for driver, names in attached.items():
        limit = place.attach_limits.get(driver)
        if limit is not None and len(names) > limit:
            yield Violation("volumes", place.name, "", f"{len(names)} volumes of {driver}, limit {limit}")
