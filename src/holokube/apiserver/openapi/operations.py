"""Paths and operations of one group version, from the resource table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from holokube.apiserver.openapi.parameters import (
    CONNECT,
    DELETE,
    DELETE_COLLECTION,
    LIST,
    LOG,
    PATCH,
    WRITE,
    hoist,
    path_parameter,
    query,
)
from holokube.apiserver.resources import Served, Subresource
from holokube.apiserver.types import DELETE_OPTIONS, META_PACKAGE, STATUS, package_of
from holokube.kube.types import JsonObject

REF_PREFIX = "#/components/schemas/"
_ANSWER_TYPES = ("application/json", "application/yaml")
_STREAM_TYPES = ("application/json", "application/json;stream=watch", "application/yaml")
_WATCH_EVENT = f"{META_PACKAGE}.WatchEvent"
_PATCH_BODY = f"{META_PACKAGE}.Patch"
_CODES = {"200": "OK", "201": "Created", "202": "Accepted"}
_PATCH_TYPES = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
# Upstream documents that deletions of these answer with the object, and all others with a Status.
_ANSWERED_WITH_OBJECT = frozenset({
    "csidrivers", "csinodes", "deviceclasses", "persistentvolumeclaims", "persistentvolumes", "pods",
    "podtemplates", "resourceclaims", "resourceclaimtemplates", "resourcequotas", "resourceslices",
    "serviceaccounts", "services", "storageclasses", "volumeattachments", "volumeattributesclasses",
})  # fmt: skip
_PROXY_METHODS = ("get", "put", "post", "delete", "options", "head", "patch")
_STREAM_METHODS = ("get", "post")

NAME = path_parameter("name", "Name of the object.")
NAMESPACE = path_parameter("namespace", "Namespace of the object.")
PATH = path_parameter("path", "Path of the request that is passed on.")
PRETTY = query(("pretty",))


def definition_name(group: str, version: str, kind: str, *, custom: bool) -> str:
    """The name of a type: Go's package for built-in ones, the group backwards for custom ones."""
    if not custom:
        return f"{package_of(group, version)}.{kind}"
    return f"{'.'.join(reversed(group.split('.')))}.{version}.{kind}"


def group_word(group: str) -> str:
    """How operations call a group: ``Core``, ``Apps``, ``RbacAuthorization``."""
    words = re.split(r"[^A-Za-z0-9]+", (group or "core").removesuffix(".k8s.io"))
    return "".join(word[:1].upper() + word[1:] for word in words)


def tag(group: str, version: str = "") -> str:
    word = group_word(group)
    lowered = word[:1].lower() + word[1:]
    return f"{lowered}_{version}" if version else lowered


def _ref(name: str) -> JsonObject:
    return {"$ref": REF_PREFIX + name}


def content(media_types: Iterable[str], schema: JsonObject) -> JsonObject:
    return {media_type: {"schema": schema} for media_type in media_types}


def answers(
    codes: Sequence[str], schema: JsonObject, media_types: Sequence[str] = _ANSWER_TYPES
) -> JsonObject:
    found: JsonObject = {
        code: {"description": _CODES[code], "content": content(media_types, schema)} for code in codes
    }
    found["401"] = {"description": "Unauthorized"}
    return found


class _Resource:
    """Operations of one resource in one version."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.custom = served.type.custom
        self.words = group_word(served.group) + served.version[:1].upper() + served.version[1:]
        self.tags = [tag(served.group, served.version)]
        self.scope_word = "Namespaced" if served.namespaced else ""
        self.root = f"/apis/{served.group}/{served.version}" if served.group else f"/api/{served.version}"
        self.gvk = {"group": served.group, "version": served.version, "kind": served.kind}
        self.definition = definition_name(served.group, served.version, served.kind, custom=self.custom)
        list_kind = served.type.list_kind
        self.list_definition = definition_name(served.group, served.version, list_kind, custom=self.custom)

    def paths(self) -> Iterator[tuple[str, list[tuple[str, JsonObject]]]]:
        """Each path with its methods and operations."""
        served, verbs = self.served, self.served.info.verbs
        scope = [NAMESPACE] if served.namespaced else []
        collection = f"{self.root}/namespaces/{{namespace}}" if served.namespaced else self.root
        collection = f"{collection}/{served.plural}"
        item = f"{collection}/{{name}}"
        if served.namespaced and "list" in verbs:
            yield f"{self.root}/{served.plural}", [("get", self._list("ForAllNamespaces", []))]
        operations = list(self._of_collection(scope))
        if operations:
            yield collection, operations
        operations = list(self._of_item("", self.gvk, self.definition, verbs, [NAME, *scope]))
        if operations:
            yield item, operations
        for name, sub in sorted(served.info.subresources.items()):
            yield from self._subresource(f"{item}/{name}", name, sub, [NAME, *scope])
        if "watch" in verbs and not self.custom:
            yield from self._watches(scope)

    def _operation(
        self,
        identifier: str,
        action: str,
        description: str,
        parameters: Iterable[JsonObject],
        gvk: JsonObject,
    ) -> JsonObject:
        return {
            "tags": self.tags,
            "description": description,
            "operationId": identifier,
            "parameters": list(parameters),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk,
        }

    def _list(self, suffix: str, scope: list[JsonObject]) -> JsonObject:
        kind = self.served.kind
        scope_word = "" if suffix else self.scope_word
        operation = self._operation(
            f"list{self.words}{scope_word}{kind}{suffix}",
            "list",
            f"List or watch objects of kind {kind}.",
            [*query(LIST), *PRETTY, *scope],
            self.gvk,
        )
        types = _ANSWER_TYPES if self.custom else _STREAM_TYPES
        operation["responses"] = answers(("200",), _ref(self.list_definition), types)
        return operation

    def _of_collection(self, scope: list[JsonObject]) -> Iterator[tuple[str, JsonObject]]:
        verbs, kind = self.served.info.verbs, self.served.kind
        if "list" in verbs:
            yield "get", self._list("", scope)
        if "create" in verbs:
            identifier = f"create{self.words}{self.scope_word}{kind}"
            yield "post", self._create(identifier, self.gvk, self.definition, scope)
        if "deletecollection" in verbs:
            operation = self._operation(
                f"delete{self.words}Collection{self.scope_word}{kind}",
                "deletecollection",
                f"Delete all objects of kind {kind} that match.",
                [*query(DELETE_COLLECTION), *PRETTY, *scope],
                self.gvk,
            )
            operation["requestBody"] = {"content": content(self._body_types(), _ref(DELETE_OPTIONS))}
            operation["responses"] = answers(("200",), _ref(STATUS))
            yield "delete", operation

    def _body_types(self) -> Sequence[str]:
        return _ANSWER_TYPES if self.custom else ("*/*",)

    def _body(self, definition: str) -> JsonObject:
        return {"content": content(self._body_types(), _ref(definition)), "required": True}

    def _create(
        self, identifier: str, gvk: JsonObject, definition: str, scope: list[JsonObject]
    ) -> JsonObject:
        operation = self._operation(
            identifier,
            "post",
            f"Create an object of kind {gvk['kind']}.",
            [*query(WRITE), *PRETTY, *scope],
            gvk,
        )
        operation["requestBody"] = self._body(definition)
        operation["responses"] = answers(("200", "201", "202"), _ref(definition))
        return operation

    def _of_item(
        self, sub: str, gvk: JsonObject, definition: str, verbs: Sequence[str], scope: list[JsonObject]
    ) -> Iterator[tuple[str, JsonObject]]:
        """Operations on one object, or on a subresource of it whose name is ``sub``."""
        name = f"{self.words}{self.scope_word}{self.served.kind}{sub}"
        what = f"{sub.lower()} of one {self.served.kind}" if sub else f"one {self.served.kind}"
        if "get" in verbs:
            parameters = [*(query(("resourceVersion",)) if self.custom else ()), *PRETTY, *scope]
            operation = self._operation(f"read{name}", "get", f"Read {what}.", parameters, gvk)
            operation["responses"] = answers(("200",), _ref(definition))
            yield "get", operation
        if "update" in verbs:
            operation = self._operation(
                f"replace{name}", "put", f"Replace {what}.", [*query(WRITE), *PRETTY, *scope], gvk
            )
            operation["requestBody"] = self._body(definition)
            operation["responses"] = answers(("200", "201"), _ref(definition))
            yield "put", operation
        if "delete" in verbs:
            operation = self._operation(
                f"delete{name}", "delete", f"Delete {what}.", [*query(DELETE), *PRETTY, *scope], gvk
            )
            operation["requestBody"] = {"content": content(self._body_types(), _ref(DELETE_OPTIONS))}
            operation["responses"] = answers(("200", "202"), _ref(self._deleted()))
            yield "delete", operation
        if "patch" in verbs:
            operation = self._operation(
                f"patch{name}", "patch", f"Change parts of {what}.", [*query(PATCH), *PRETTY, *scope], gvk
            )
            types = _PATCH_TYPES[:3] if self.custom else _PATCH_TYPES
            operation["requestBody"] = {"content": content(types, _ref(_PATCH_BODY)), "required": True}
            codes = ("200",) if self.custom else ("200", "201")
            operation["responses"] = answers(codes, _ref(definition))
            yield "patch", operation

    def _deleted(self) -> str:
        answers_with_object = self.served.plural in _ANSWERED_WITH_OBJECT and not self.custom
        return self.definition if answers_with_object else STATUS

    def _subresource(
        self, path: str, name: str, sub: Subresource, scope: list[JsonObject]
    ) -> Iterator[tuple[str, list[tuple[str, JsonObject]]]]:
        word = name[:1].upper() + name[1:]
        group, version = sub.group or self.served.group, sub.version or self.served.version
        if sub.kind in CONNECT:
            yield path, list(self._connect(word, sub.kind, scope, ""))
            if "path" in CONNECT[sub.kind]:
                yield f"{path}/{{path}}", list(self._connect(word, sub.kind, [*scope, PATH], "WithPath"))
            return
        own = sub.kind == self.served.kind
        # Upstream shows the scale of a custom resource under the kind of the resource itself.
        gvk = self.gvk if own or self.custom else {"group": group, "version": version, "kind": sub.kind}
        definition = self.definition if own else definition_name(group, version, sub.kind, custom=False)
        operations = list(self._of_item(word, gvk, definition, sub.verbs, scope))
        if "create" in sub.verbs:
            identifier = f"create{self.words}{self.scope_word}{self.served.kind}{word}"
            operations.append(("post", self._create(identifier, gvk, definition, scope)))
        if name == "log":
            for _, operation in operations:
                operation["parameters"] += query(LOG)
                operation["responses"] = answers(("200",), {"type": "string"}, (*_ANSWER_TYPES, "text/plain"))
        yield path, operations

    def _connect(
        self, word: str, kind: str, scope: list[JsonObject], suffix: str
    ) -> Iterator[tuple[str, JsonObject]]:
        gvk = {"group": self.served.group, "version": self.served.version, "kind": kind}
        methods = _PROXY_METHODS if kind.endswith("ProxyOptions") else _STREAM_METHODS
        for method in methods:
            operation = self._operation(
                f"connect{self.words}{method.title()}{self.scope_word}{self.served.kind}{word}{suffix}",
                "connect",
                f"Pass a {method.upper()} request on to {word.lower()} of one {self.served.kind}.",
                [*query(CONNECT[kind]), *scope],
                gvk,
            )
            operation["responses"] = answers(("200",), {"type": "string"}, ("*/*",))
            yield method, operation

    def _watches(self, scope: list[JsonObject]) -> Iterator[tuple[str, list[tuple[str, JsonObject]]]]:
        """The old way to watch: a path of its own. Its words are fixed in client generators."""
        plural, kind = self.served.plural, self.served.kind
        base = f"{self.root}/watch"
        if scope:
            yield f"{base}/{plural}", [("get", self._watch(f"{kind}ListForAllNamespaces", "watchlist", []))]
            base = f"{base}/namespaces/{{namespace}}"
        yield f"{base}/{plural}", [("get", self._watch(f"{self.scope_word}{kind}List", "watchlist", scope))]
        if "get" in self.served.info.verbs:
            one = self._watch(f"{self.scope_word}{kind}", "watch", [NAME, *scope])
            yield f"{base}/{plural}/{{name}}", [("get", one)]

    def _watch(self, words: str, action: str, scope: list[JsonObject]) -> JsonObject:
        operation = self._operation(
            f"watch{self.words}{words}",
            action,
            f"Watch {self.served.kind}; deprecated, use the watch parameter of a list instead.",
            [*query(LIST), *PRETTY, *scope],
            self.gvk,
        )
        operation["responses"] = answers(("200",), _ref(_WATCH_EVENT), _STREAM_TYPES)
        return operation


def paths_of(resources: Iterable[Served]) -> dict[str, JsonObject]:
    """All paths of the given resources, which are of one group version."""
    found: dict[str, JsonObject] = {}
    for served in resources:
        for path, operations in _Resource(served).paths():
            shared = hoist([operation for _, operation in operations])
            entry: JsonObject = dict(operations)
            if shared:
                entry["parameters"] = shared
            found[path] = entry
    return dict(sorted(found.items()))
