"""Why a pod found no place, in words."""

from __future__ import annotations

from holokube.karpenter.scheduling.groundwork import Groundwork
from holokube.karpenter.scheduling.pod_forms import PodForm
from holokube.karpenter.scheduling.solve_run import RESOURCE_CLAIMS_IGNORED, Failure, SolveRun
from holokube.karpenter.scheduling.templates import Template
from holokube.kube.resources import to_json
from holokube.kube.taints import ALL_EFFECTS, find_untolerated


def explain(ground: Groundwork, run: SolveRun, failure: Failure) -> str:
    """Why no new node would do for a pod; nodes that are there were tried before."""
    if failure.is_dra:
        return RESOURCE_CLAIMS_IGNORED
    if failure.reserved:
        return failure.reserved
    if not ground.templates:
        found = ground.problem.pools
        return "no NodePool has instance types that meet its requirements" if found else "no NodePool found"
    return "; ".join(f"NodePool {t.pool.name}: {_why(run, t, failure.form)}" for t in ground.templates)


def _why(run: SolveRun, template: Template, form: PodForm) -> str:
    taint = find_untolerated(
        template.taints, form.demands.tolerations, effects=ALL_EFFECTS | {""}, comparison_operators=True
    )
    if taint is not None:
        return f"did not tolerate taint {taint}"
    claim = run.blank_claim(template)
    if claim is None:
        return "its limits leave no instance type"
    state = claim.state.taking(form.requirements)
    if state is None:
        why = claim.state.requirements.why_incompatible(
            form.requirements, allow_undefined=run.problem.well_known
        )
        return f"incompatible requirements, {why}"
    if form.hostname is not None and not form.hostname.has(claim.hostname):
        return f"incompatible requirements, {form.hostname} is not a new node"
    topology = run.topology_of(form)
    if not topology.opens_new() or topology.step(state) is None:
        groups = ", ".join(str(spec) for spec in form.specs) or "anti-affinity of other pods"
        return f"unsatisfiable topology constraint ({groups})"
    after = topology.step(state)
    assert after is not None
    agreeing = template.table.rows(after)[claim.rows]
    fitting = (claim.free >= form.vector[:, None]).all(axis=0)
    wanted = ", ".join(f"{name}={amount}" for name, amount in to_json(form.requests).items())
    if not agreeing.any():
        return f"no instance type has the required offering and meets the requirements {after.requirements}"
    if not fitting.any():
        return f"no instance type has enough resources for {wanted}"
    if not (agreeing & fitting).any():
        return f"no instance type that meets the requirements {after.requirements} has enough resources for {wanted}"
    return "minValues, host ports or volumes leave no instance type"
