"""Between the version an object is stored in and the version a request asks for.

Most resources have one version and nothing happens here. Those with more: HorizontalPodAutoscaler (v1 and v2), Event
(core and events.k8s.io), and custom resources, where only apiVersion differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from holokube.apiserver.conversions import events, horizontal_pod_autoscaler
from holokube.apiserver.resources import Served
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

Convert = Callable[[JsonObject], JsonObject]

# From and to storage, by the group, version and plural of what is served.
_CONVERSIONS: Mapping[tuple[str, str, str], tuple[Convert, Convert]] = {
    ("autoscaling", "v1", "horizontalpodautoscalers"): (
        horizontal_pod_autoscaler.v2_to_v1,
        horizontal_pod_autoscaler.v1_to_v2,
    ),
    ("events.k8s.io", "v1", "events"): (events.core_to_events, events.events_to_core),
}


def _pair(served: Served) -> tuple[Convert, Convert] | None:
    found = _CONVERSIONS.get((served.group, served.version, served.plural))
    if found is None and served.version != served.type.storage_version:
        stored_as = served.type.api_version(served.type.storage_version)
        return (
            lambda obj: {**obj, "apiVersion": served.api_version},
            lambda obj: {**obj, "apiVersion": stored_as},
        )
    return found


def is_stored_so(served: Served) -> bool:
    """Whether objects are stored in the version asked for."""
    return served.shows_stored


def to_served(served: Served, stored: Stored) -> Stored:
    """The stored object in the version asked for; the same one if that is how it is stored."""
    if served.shows_stored:
        return stored
    pair = _pair(served)
    return stored if pair is None else Stored(pair[0](stored.obj), stored.revision)


def all_to_served(served: Served, items: Sequence[Stored]) -> Sequence[Stored]:
    if is_stored_so(served):
        return items
    return [to_served(served, stored) for stored in items]


def to_storage(served: Served, obj: JsonObject) -> JsonObject:
    """A decoded object in the version it is stored in."""
    pair = _pair(served)
    return obj if pair is None else pair[1](obj)


def storage_api_version(served: Served) -> str:
    """The apiVersion that stored objects carry."""
    if served.group == "events.k8s.io":
        return "v1"
    return served.type.api_version(served.type.storage_version)
