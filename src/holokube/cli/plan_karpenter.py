"""``holokube plan --policy karpenter``: reads the files, plans, hands back the answer."""

from __future__ import annotations

from typing import Any

from holokube.apiserver.manifests import Manifests, read_manifests
from holokube.base.clock import WallClock
from holokube.base.errors import UsageError
from holokube.cli.catalog_option import catalog_from
from holokube.cli.plan import Answer, Request
from holokube.cli.plan_files import paths_of
from holokube.cli.plan_karpenter_tables import show_plan
from holokube.karpenter.plan.case import is_case, read_case
from holokube.karpenter.plan.given import Given
from holokube.karpenter.plan.planner import plan_karpenter
from holokube.karpenter.plan.snapshot import read_snapshot
from holokube.karpenter.settings import parse_flags
from holokube.pricing.instance_types import Catalog


def plan(request: Request) -> Answer:
    """The plan for what the files hold."""
    settings = parse_flags(request.flags)
    values = plan_karpenter(read_given(request), settings, WallClock())
    return Answer(values, lambda console: show_plan(console, values))


def read_given(request: Request) -> Given:
    """The cluster or the problem in the files."""
    if request.templates:
        raise UsageError("--templates is for the cluster-autoscaler, whose nodes come from groups",
                         hint="Karpenter's come from NodePools in the files, and --catalog has the instance types.")
    catalog = catalog_of(request)
    documents = [read_manifests(path) for path in paths_of(request.files)]
    cases = [(found, obj) for found in documents for obj in found.objects if is_case(obj)]
    if cases:
        return _case(documents, cases, catalog)
    objects = [obj for found in documents for obj in found.objects]
    return read_snapshot(objects, catalog, waits=request.waits, default_now_s=WallClock().time())


def _case(documents: list[Manifests], cases: list[tuple[Manifests, Any]], catalog: Catalog) -> Given:
    found, obj = cases[0]
    if len(cases) > 1 or len(documents) > 1 or len(found.objects) > 1:
        raise UsageError(
            f"{found.name} holds a problem, which is planned by itself",
            hint="Give one file with one problem, or objects of a cluster in any number of files.")
    return read_case(obj, found.name, catalog)


def catalog_of(request: Request) -> Catalog:
    """The instance types; the generator's unless a file is named."""
    return catalog_from(request.catalog, request.overlays)
