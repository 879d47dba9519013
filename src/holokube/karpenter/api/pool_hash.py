"""The hash of a pool's template: nodes made from a template with another hash have drifted.

The version tag says what the hash covers, and is upstream's: everything of ``spec.template`` but the requirements,
lists as sets, absent and empty alike, durations by their length. So reordered taints, ``60m`` for ``1h`` or an empty
list of taints are no change; adding a label is. The number itself is our own: it is only ever compared with another
one from here, and upstream's follows the layout of its Go types.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

from holokube.karpenter.api.durations import NEVER
from holokube.kube.timeformat import parse_duration_ns

HASH_VERSION: Final = "v3"

_DURATIONS: Final = ("expireAfter", "terminationGracePeriod")
_DEFAULT_EXPIRE_AFTER: Final = "720h"


def pool_hash(template: Mapping[str, Any]) -> str:
    """The hash of ``spec.template`` as the annotation carries it."""
    spec = dict(template.get("spec") or {})
    spec.pop("requirements", None)
    # An object that never passed an API server has no defaults yet.
    spec.setdefault("expireAfter", _DEFAULT_EXPIRE_AFTER)
    for field in _DURATIONS:
        text = spec.get(field)
        if isinstance(text, str):
            # A text, so that the zero of a duration that is set does not count as absent.
            spec[field] = text if text == NEVER else f"{parse_duration_ns(text)}ns"
    metadata = template.get("metadata") or {}
    covered = {
        "labels": metadata.get("labels"), "annotations": metadata.get("annotations"), "spec": _fields(spec),
    }  # fmt: skip
    text = json.dumps(_fields(covered), sort_keys=True, separators=(",", ":"))
    return str(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()))


def _fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that say something. Labels and annotations are no fields: an empty value is a value there."""
    found = {}
    for name, value in fields.items():
        if isinstance(value, list):
            as_set = {json.dumps(_fields(item) if isinstance(item, dict) else item, sort_keys=True) for item in value}
            value = sorted(as_set)
        elif isinstance(value, dict) and name not in ("labels", "annotations"):
            value = _fields(value)
        if value:
            found[name] = value
    return found
