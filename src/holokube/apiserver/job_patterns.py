"""Patterns for jobs that differ in nothing but their names and the annotations of their pods: batch work that arrives
all day.

Whether such a job is valid, what is left out of it and what is filled in depends on the text of the rest. What has come
of one is taken over for the next, with a name, an identity and labels of its own. Jobs with labels of their own, or
with a selector, go the usual way, as do all about which there is something to say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from holokube.apiserver import conversion
from holokube.apiserver.admission.base import Attributes
from holokube.apiserver.field_errors import FieldErrors
from holokube.apiserver.kinds.jobs import NAME_LABEL, OLD_NAME_LABEL, OLD_UID_LABEL, UID_LABEL
from holokube.apiserver.metadata import validate_annotations
from holokube.apiserver.options import WriteOptions
from holokube.apiserver.repeats import STRICTLY, Pattern
from holokube.apiserver.resources import Served
from holokube.kube import names, timeformat
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

if TYPE_CHECKING:
    from holokube.apiserver.registry import Registry

KEPT: Final = 256
_BODY: Final = frozenset({"apiVersion", "kind", "metadata", "spec"})
_METADATA: Final = frozenset({"name", "namespace"})
_OF_PODS: Final = ["annotations"]
_ONLY_TEXT: Final = {str}
# The annotations of a pod that mean something to Kubernetes are all of this domain.
_KUBERNETES_DOMAIN: Final = "kubernetes.io"
_LABELS: Final = {OLD_NAME_LABEL, NAME_LABEL, OLD_UID_LABEL, UID_LABEL}

Key = tuple[object, ...]


class _Form(NamedTuple):
    """A body, split into what may differ and the rest."""

    rest: Key
    name: str
    annotations: dict[str, str]


class JobPatterns:
    """Remembers a bounded number of jobs."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[Key, Pattern] = {}

    def create(self, served: Served, namespace: str, body: Any, options: WriteOptions) -> Stored | None:
        """Create a job after the pattern of one before it; None, with nothing done, if it has to go another way."""
        form = _form(namespace, body, options) if self._known else None
        pattern = None if form is None else self._known.get(form.rest)
        registry = self._registry
        if form is None or pattern is None or not pattern.holds_in(registry, namespace):
            return None
        # A name that is a label of a host is a name of a job, and a value of a label, too.
        if names.is_dns1123_label(form.name):
            return None
        errors = FieldErrors()
        validate_annotations(form.annotations, "", errors)
        key = registry.key(served, namespace, form.name)
        if errors or registry.store.get(served.bucket, key) is not None:
            return None
        # Nothing has been drawn before it is sure that it will be used.
        made = _made(pattern.obj, form, registry.rng.uid(), timeformat.format_time(registry.clock.now()))
        stored = registry.store.create(served.bucket, key, made, owned=True)
        stored.checked, stored.settled = True, pattern.settled
        return conversion.to_served(served, stored)

    def learn(
        self, namespace: str, body: Any, options: WriteOptions, stored: Stored, attributes: Attributes
    ) -> None:
        """A job was created the usual way, without a warning and without another write in between."""
        registry = self._registry
        form = None if registry.tracks_managed_fields else _form(namespace, body, options)
        looked_at = None if form is None else registry.admission.looked_at(attributes)
        if form is None or looked_at is None or not registry.admission.goes_by_spec(attributes):
            return
        obj = stored.obj
        if set(obj["spec"]["template"]["metadata"].get("labels") or ()) != _LABELS:
            return
        meta = obj["metadata"]
        again = _made(obj, form, meta["uid"], meta["creationTimestamp"])
        if orjson.dumps(again) != orjson.dumps(obj):
            return
        tally = registry.store.tally(looked_at)
        if len(self._known) >= KEPT:
            self._known.clear()
        generation = registry.admission.generation
        self._known[form.rest] = Pattern(obj, stored.settled, namespace, generation, tally, tally.count)


def _form(namespace: str, body: Any, options: WriteOptions) -> _Form | None:
    """None if it is of another form, or something but texts is where these belong."""
    if type(body) is not dict or body.keys() != _BODY:
        return None
    meta, spec = body["metadata"], body["spec"]
    if type(meta) is not dict or not _METADATA.issuperset(meta) or meta.get("namespace", namespace) != namespace:
        return None
    name = meta.get("name")
    template: Any = spec.get("template") if type(spec) is dict else None
    own = template.get("metadata") if type(template) is dict else None
    if type(name) is not str or type(own) is not dict or [*own] != _OF_PODS or "selector" in spec:
        return None
    annotations = own["annotations"]
    if type(annotations) is not dict or set(map(type, annotations.values())) != _ONLY_TEXT:
        return None
    for key in annotations:
        if type(key) is not str or _KUBERNETES_DOMAIN in key:
            return None
    try:
        rest = {**spec, "template": {**template, "metadata": None}}
        text = orjson.dumps([body["apiVersion"], body["kind"], rest], option=STRICTLY)
        # What cannot be written has to be refused.
        orjson.dumps(annotations, option=STRICTLY)
    except TypeError:
        return None
    return _Form((options.field_validation, namespace, *meta, text), name, annotations)


def _made(like: JsonObject, form: _Form, uid: str, created: str) -> JsonObject:
    """The job of another form like that of ``like``, with which it shares what is the same."""
    labels = {
        key: form.name if key in (OLD_NAME_LABEL, NAME_LABEL) else uid
        for key in like["spec"]["template"]["metadata"]["labels"]
    }
    meta: JsonObject = like["metadata"].copy()
    meta["name"], meta["uid"], meta["creationTimestamp"], meta["labels"] = form.name, uid, created, labels
    spec: JsonObject = like["spec"].copy()
    spec["selector"] = {"matchLabels": {UID_LABEL: uid}}
    template: JsonObject = spec["template"].copy()
    template["metadata"] = {**template["metadata"], "annotations": form.annotations.copy(), "labels": labels}
    spec["template"] = template
    return {**like, "metadata": meta, "spec": spec}
