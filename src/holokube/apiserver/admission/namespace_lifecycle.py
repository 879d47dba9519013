"""NamespaceLifecycle: nothing new without its namespace, nothing new in one that goes away."""

from __future__ import annotations

from typing import Final

from holokube.apiserver.admission.base import (
    ANY_WRITE,
    NAMESPACES,
    Attributes,
    GroupResource,
    Operation,
    Plugin,
    refuse,
)
from holokube.apiserver.kinds.base import Lookup
from holokube.kube.errors import Cause, forbidden, not_found

# kube-node-lease is not among them, upstream neither.
IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
# To answer these with 404 would tell strangers which namespaces there are.
_ACCESS_REVIEWS: Final = ("authorization.k8s.io", "localsubjectaccessreviews")


class NamespaceLifecycle(Plugin):
    operations = ANY_WRITE
    subresources = None
    only_refuses = True
    looks_at = frozenset({"namespaces"})
    heeds = looks_at
    goes_by_spec = True

    def wants(self, resource: GroupResource, operation: Operation, subresource: str) -> bool:
        return (operation != "DELETE" or resource == NAMESPACES) and super().wants(resource, operation, subresource)

    def has_no_say(self, lookup: Lookup, operation: Operation, namespace: str) -> bool:
        if not namespace:
            return operation != "DELETE"
        found = lookup.find("", "namespaces", "", namespace)
        if found is None:
            return False
        return operation != "CREATE" or (found.get("status") or {}).get("phase") != "Terminating"

    def mutate(self, attributes: Attributes) -> None:
        served, namespace = attributes.served, attributes.namespace
        resource = (served.type.group, served.type.plural)
        if resource == NAMESPACES:
            if attributes.operation == "DELETE" and attributes.name in IMMORTAL:
                raise forbidden("", "namespaces", attributes.name, "this namespace may not be deleted")
            return
        if not namespace or attributes.operation == "DELETE" or resource == _ACCESS_REVIEWS:
            return
        found = attributes.lookup.find("", "namespaces", "", namespace)
        if found is None:
            raise not_found("", "namespaces", namespace)
        if attributes.operation == "CREATE" and (found.get("status") or {}).get("phase") == "Terminating":
            cause = Cause(
                "NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace"
            )
            raise refuse(
                attributes,
                f"unable to create new content in namespace {namespace} because it is being terminated",
                [cause],
            )
