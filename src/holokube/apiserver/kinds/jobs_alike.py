"""Which jobs are like others that were found valid: made in numbers, they differ in names, labels and annotations."""

from __future__ import annotations

from typing import Final

import orjson

from holokube.kube.types import JsonObject

KEPT: Final = 256
_OWN_METADATA: Final = frozenset({"labels", "annotations"})
# The annotations of a pod that mean something to Kubernetes are all of this domain.
KUBERNETES_DOMAIN: Final = "kubernetes.io"


class JobsAlike:
    """Remembers what valid jobs have in common with others, as a bounded number of texts."""

    def __init__(self) -> None:
        self._known: dict[bytes, None] = {}

    @staticmethod
    def text(job: JsonObject) -> bytes | None:
        """All of a new job, as it was defaulted, that decides whether it is valid, and what is to be warned of, besides
        its name and the labels and annotations of its pods; None if there is more to it."""
        spec = job["spec"]
        template = spec["template"]
        meta = template["metadata"]
        if "selector" in spec or spec.get("manualSelector") or spec.get("completionMode") != "NonIndexed":
            return None
        if not _OWN_METADATA.issuperset(meta):
            return None
        for key in meta.get("annotations") or ():
            if KUBERNETES_DOMAIN in key:
                return None
        return orjson.dumps({**spec, "template": template["spec"]})

    def knows(self, text: bytes | None) -> bool:
        return text in self._known

    def remember(self, text: bytes) -> None:
        """A job with this text was found valid, and nothing was to be warned of."""
        if len(self._known) >= KEPT:
            self._known.clear()
        self._known[text] = None
