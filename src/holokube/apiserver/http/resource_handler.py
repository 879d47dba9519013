"""Requests for resources: from a path and a method to a verb of the registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holokube.apiserver import tables
from holokube.apiserver.answers import ListResult, WriteResult
from holokube.apiserver.bodies import Body
from holokube.apiserver.decode import parse_json, parse_yaml
from holokube.apiserver.http import encoding, protobuf
from holokube.apiserver.http.auth import Authenticator
from holokube.apiserver.http.metrics import RequestMetrics
from holokube.apiserver.http.negotiation import Format, negotiate
from holokube.apiserver.http.paths import ResourcePath, parse_path
from holokube.apiserver.http.text_response import send_text
from holokube.apiserver.http.watch_response import WatchResponse
from holokube.apiserver.http.wire import Answer, Request, delete_options_body, media_type
from holokube.apiserver.options import DeleteOptions, ListOptions, WriteOptions, parse_bool
from holokube.apiserver.partial_metadata import partial_metadata
from holokube.apiserver.patching import APPLY, PATCH_TYPES
from holokube.apiserver.registry import Registry
from holokube.apiserver.resources import Served
from holokube.apiserver.subresources.logs import TextStream
from holokube.base.clock import Clock
from holokube.kube.errors import (
    ApiError,
    BadRequest,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    UnsupportedMediaType,
    not_found,
)
from holokube.kube.types import JsonObject
from holokube.store.values import Stored

_METHOD_NOT_ALLOWED = "the server does not allow this method on the requested resource"
_NOT_FOUND = "the server could not find the requested resource"
_YAML_TYPES = ("application/yaml", "text/yaml", "application/x-yaml")
_LIST_AT_ONCE = 100
_METHOD_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class ResourceHandler:
    """Everything below /api/v1 and /apis/GROUP/VERSION that is not discovery."""

    def __init__(
        self, clock: Clock, registry: Registry, authenticator: Authenticator, metrics: RequestMetrics
    ) -> None:
        self._clock = clock
        self._registry = registry
        self._authenticator = authenticator
        self._metrics = metrics

    async def handle(self, request: Request) -> Answer:
        path = parse_path(request.raw.raw_path.partition("?")[0])
        if path is None or not path.plural:
            raise NotFound(_NOT_FOUND, details={})
        served = self._registry.resolve(path.group, path.version, path.plural)
        if path.namespaced and not served.namespaced:
            if served.type.custom:
                return Answer(404, b"404 page not found\n", "text/plain; charset=utf-8")
            raise NotFound(_NOT_FOUND, details={})
        self._label(request, path, served)
        if served.namespaced and path.name and not path.namespaced:
            raise NotFound(_NOT_FOUND, details={})
        if request.method == "HEAD":
            raise MethodNotAllowed(_METHOD_NOT_ALLOWED, details={})
        if served.namespaced and not path.namespaced and request.method != "GET":
            virtual = served.info.verbs == ("create",) and request.method == "POST"
            if not virtual:
                raise MethodNotAllowed(_METHOD_NOT_ALLOWED, details={})
        if path.subresource:
            return await self._subresource(request, path, served)
        if served.info.verbs == ("create",) and request.method == "POST":
            # Reviews and bindings are answered, not stored.
            body = self._body(request, served)
            result = await self._registry.subresources.create_virtual(
                served, path.namespace, body, self._write_options(request, "CreateOptions"), request.caller
            )
            return self._written(request, served, result)
        request.verb = self._verb(request, path)
        if request.verb not in served.info.verbs:
            raise MethodNotAllowed(_METHOD_NOT_ALLOWED, details={})
        answer: Answer = await getattr(self, f"_{request.verb}")(request, path, served)
        if served.info.deprecation_warning:
            answer.warnings = [served.info.deprecation_warning, *answer.warnings]
        return answer

    @staticmethod
    def _label(request: Request, path: ResourcePath, served: Served) -> None:
        request.resource, request.subresource = served.plural, path.subresource
        request.group, request.version = path.group, path.version
        request.verb = _METHOD_VERBS.get(request.method, "get")
        request.scope = "resource" if path.name else "namespace" if path.namespaced else "cluster"

    @staticmethod
    def _verb(request: Request, path: ResourcePath) -> str:
        method = request.method
        if method in ("GET", "HEAD"):
            # On the path of one object, upstream ignores ?watch; only the old /watch/ prefix follows it.
            if path.watch or (parse_bool(request.query, "watch") and not path.name):
                return "watch"
            return "get" if path.name else "list"
        if method == "POST" and not path.name:
            return "create"
        if method == "DELETE":
            return "delete" if path.name else "deletecollection"
        if method in ("PUT", "PATCH") and path.name:
            return "update" if method == "PUT" else "patch"
        raise MethodNotAllowed(_METHOD_NOT_ALLOWED, details={})

    # -- reads ---------------------------------------------------------------------------------------------------

    async def _get(self, request: Request, path: ResourcePath, served: Served) -> Answer:
        form = self._format(request)
        _check_form(form, "PartialObjectMetadataList")
        stored = self._registry.get(
            served, path.namespace, path.name, resource_version=request.query.get("resourceVersion", "")
        )
        # Nobody is shown what a crash could still take back.
        await self._registry.store.durable(stored.revision)
        return self._object_answer(request, served, stored, form)

    async def _list(self, request: Request, path: ResourcePath, served: Served) -> Answer:
        form = self._format(request)
        _check_form(form, "PartialObjectMetadata")
        result = self._registry.list(served, path.namespace, ListOptions.parse(request.query, watch=False))
        await self._registry.store.durable(result.revision)
        if form.form == "Table":
            table = self._table(request, served, [s.obj for s in result.items], form)
            table["metadata"] = encoding.list_metadata(result)
            return Answer.of(table, form)
        if form.form:
            return Answer.of(self._partial_list(result), form)
        if form.yaml or form.pretty or parse_bool(request.query, "pretty"):
            return Answer.of(encoding.list_object(served, result), form)
        if len(result.items) > _LIST_AT_ONCE:
            return Answer(200, b"", pieces=encoding.list_pieces(served, result))
        return Answer(200, encoding.list_bytes(served, result))

    @staticmethod
    def _partial_list(result: ListResult) -> JsonObject:
        return {
            "kind": "PartialObjectMetadataList",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": encoding.list_metadata(result),
            "items": [partial_metadata(stored.obj) for stored in result.items],
        }

    async def _watch(self, request: Request, path: ResourcePath, served: Served) -> Answer:
        form = self._format(request)
        query = dict(request.query)
        if path.name:
            own = f"metadata.name={path.name}"
            given = query.get("fieldSelector")
            query["fieldSelector"] = f"{given},{own}" if given else own
        options = ListOptions.parse(query, watch=True)
        stream = self._registry.watch(served, path.namespace, options)
        response = WatchResponse(
            self._clock, stream, served, form, include_object(request), self._metrics
        )
        return Answer(200, b"", stream=await response.send(request.raw))

    # -- writes --------------------------------------------------------------------------------------------------

    async def _create(self, request: Request, path: ResourcePath, served: Served) -> Answer:
        options = self._write_options(request, "CreateOptions")
        body = self._body(request, served)
        result = await self._registry.create(served, path.namespace, body, options, request.caller)
        return self._written(request, served, result)

    async def _update(self, request: Request, path: ResourcePath, served: Served) -> Answer:
        options = self._write_options(request, "UpdateOptions")
        body = self._body(request, served)
        result = await self._registry.update(
            served, path.namespace, path.name, body, options, request.caller,
            subresource=path.subresource,
        )  # fmt: skip
        return self._written(request, served, result)

    async def _patch(self, request: Request, path: ResourcePath, served: Served) -> Answer:
        content_type, body = self._patch_body(request, served)
        options = WriteOptions.parse(request.query, "PatchOptions", apply=content_type == APPLY)
        result = await self._registry.patch(
            served, path.namespace, path.name, content_type, body, options, request.caller,
            subresource=path.subresource,
        )  # fmt: skip
        return self._written(request, served, result)

    async def _delete(self, request: Request, path: ResourcePath, served: Served) -> Answer:
        options = DeleteOptions.parse(request.query, delete_options_body(request))
        body, code = await self._registry.delete(
            served, path.namespace, path.name, options, request.caller, request.warnings
        )
        answer = Answer.of(body, self._format(request), code)
        answer.warnings = request.warnings
        return answer

    async def _deletecollection(self, request: Request, path: ResourcePath, served: Served) -> Answer:
        options = DeleteOptions.parse(request.query, delete_options_body(request))
        selector = ListOptions.parse(request.query, watch=False)
        result = await self._registry.delete_collection(
            served, path.namespace, selector, options, request.caller
        )
        return Answer.of(encoding.list_object(served, result), self._format(request))

    # -- subresources --------------------------------------------------------------------------------------------

    async def _subresource(self, request: Request, path: ResourcePath, served: Served) -> Answer:
        sub = served.info.subresources.get(path.subresource)
        if sub is None and served.type.custom and path.subresource in ("status", "scale"):
            raise not_found(served.group, served.plural, path.name)
        if sub is None:
            raise NotFound(_NOT_FOUND, details={})
        verb = {"GET": "get", "HEAD": "get", **_METHOD_VERBS}.get(request.method, "")
        request.verb = verb
        if verb not in sub.verbs:
            raise MethodNotAllowed(_METHOD_NOT_ALLOWED, details={})
        if path.subresource == "status":
            return await getattr(self, f"_{verb}")(request, path, served)  # type: ignore[no-any-return]  # one method per verb
        return await self._registry_subresource(request, path, served, verb)

    async def _registry_subresource(
        self, request: Request, path: ResourcePath, served: Served, verb: str
    ) -> Answer:
        """Everything but status: the registry answers with an object, or with text for logs and proxies."""
        body: Any = None
        content_type = ""
        apply = False
        if verb == "patch":
            content_type, body = self._patch_body(request, served)
            apply = content_type == APPLY
        elif verb in ("create", "update") and path.subresource not in ("proxy", "exec", "attach", "portforward"):
            body = self._body(request, served)
        kind = {"create": "CreateOptions", "update": "UpdateOptions"}.get(verb, "PatchOptions")
        options = WriteOptions.parse(request.query, kind, apply=apply)
        outcome = await self._registry.subresources.handle(
            served, path.namespace, path.name, path.subresource, verb,
            body=body, content_type=content_type, query=request.query, options=options, caller=request.caller,
            rest=path.rest,
        )  # fmt: skip
        if isinstance(outcome, WriteResult):
            return self._written(request, served, outcome)
        if isinstance(outcome, TextStream):
            return Answer(200, b"", stream=await send_text(request.raw, outcome))
        if isinstance(outcome, tuple):
            text, text_type = outcome
            return Answer(200 if text else 204, text, text_type)
        return self._object_answer(request, served, Stored(outcome, 0), self._format(request))

    # -- bodies and answers --------------------------------------------------------------------------------------

    @staticmethod
    def _write_options(request: Request, kind: str) -> WriteOptions:
        return WriteOptions.parse(request.query, kind)

    def _body(self, request: Request, served: Served) -> Body:
        kind = media_type(request)
        if kind == protobuf.MEDIA_TYPE:
            return Body(protobuf.decode_body(request.body), warnings=request.warnings)
        if kind in _YAML_TYPES:
            return Body(parse_yaml(request.body), warnings=request.warnings)
        if kind not in ("application/json", ""):
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json, application/yaml"
            )
        return _json_body(request, served)

    @staticmethod
    def _patch_body(request: Request, served: Served) -> tuple[str, Body]:
        content_type = media_type(request)
        if content_type not in PATCH_TYPES:
            raise UnsupportedMediaType("415: Unsupported Media Type", details={})
        if content_type == APPLY:
            try:
                return content_type, _json_body(request, served)
            except ApiError:
                return content_type, Body(parse_yaml(request.body), warnings=request.warnings)
        try:
            value, duplicates = parse_json(request.body)
        except BadRequest as problem:
            raise BadRequest(str(problem).removeprefix("couldn't get version/kind; json parse error: ")) from None
        return content_type, Body(value, tuple(duplicates), request.warnings)

    def _written(self, request: Request, served: Served, result: WriteResult) -> Answer:
        answer = self._object_answer(request, served, result.stored, self._format(request))
        answer.code = 201 if result.created else 200
        answer.warnings = result.warnings
        return answer

    def _table(
        self, request: Request, served: Served, objects: Sequence[JsonObject], form: Format, *, single: bool = False
    ) -> JsonObject:
        include = include_object(request)
        table = tables.table(served, objects, self._clock.now(), include, single=single)
        if form.form_version != "v1":
            version = f"meta.k8s.io/{form.form_version}"
            table["apiVersion"] = version
            for row in table["rows"]:
                if (row["object"] or {}).get("kind") == "PartialObjectMetadata":
                    row["object"] = {**row["object"], "apiVersion": version}
        return table

    def _object_answer(self, request: Request, served: Served, stored: Stored, form: Format) -> Answer:
        if form.form == "Table":
            return Answer.of(self._table(request, served, [stored.obj], form, single=True), form)
        if form.form == "PartialObjectMetadata":
            return Answer.of(partial_metadata(stored.obj), form)
        if form.yaml or form.pretty or parse_bool(request.query, "pretty"):
            return Answer.of(stored.obj, Format(yaml=form.yaml, pretty=True))
        return Answer(200, stored.raw + b"\n")

    @staticmethod
    def _format(request: Request) -> Format:
        return negotiate(request.headers.get("Accept", ""))


def include_object(request: Request) -> str:
    """How much of each object a table carries."""
    asked = request.query.get("includeObject", "")
    if asked not in ("", "None", "Metadata", "Object"):
        raise BadRequest(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{asked}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    return asked


def _check_form(form: Format, unfit: str) -> None:
    """A list cannot be given as one object, nor an object as a list."""
    if form.form == unfit:
        raise NotAcceptable("only the following media types are accepted: application/json, application/yaml")


def _json_body(request: Request, served: Served) -> Body:
    try:
        value, duplicates = parse_json(request.body)
    except BadRequest as problem:
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {served.kind}): {problem}"
        ) from None
    return Body(value, tuple(duplicates), request.warnings)


