"""Fields of pods that exist in the API but belong to features that are off by default."""

from __future__ import annotations

from holokube.kube.types import JsonObject

_SOURCES_OFF = ("clusterTrustBundle", "podCertificate")


def drop_disabled_fields(spec: JsonObject, old: JsonObject | None = None) -> None:
    """Silently remove what a server with default feature gates removes; an old object keeps what it has."""
    if "schedulingGroup" in spec and (old is None or "schedulingGroup" not in old):
        del spec["schedulingGroup"]
    for key in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(key) or ():
            lifecycle = container.get("lifecycle")
            if lifecycle and "stopSignal" in lifecycle:
                del lifecycle["stopSignal"]
                if not lifecycle:
                    del container["lifecycle"]
    for volume in spec.get("volumes") or ():
        if "projected" in volume:
            for source in volume["projected"].get("sources") or ():
                for kind in _SOURCES_OFF:
                    source.pop(kind, None)
