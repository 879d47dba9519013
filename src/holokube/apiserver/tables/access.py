"""Accounts, secrets, role bindings, certificates, webhooks and admission policies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holokube.apiserver.tables.cells import name_of, spec_of, status_of
from holokube.apiserver.tables.layout import AGE, NAME, NONE, UNSET, Ages, Cells, Layout, column, wide
from holokube.kube.timeformat import format_age
from holokube.kube.types import JsonObject


def name_and_age(obj: JsonObject, ages: Ages) -> list[Any]:
    return [name_of(obj), ages.of(obj)]


def secret_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    return [name_of(obj), obj.get("type") or "", len(obj.get("data") or ()), ages.of(obj)]


def role_binding_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    role: JsonObject = obj.get("roleRef") or {}
    users, groups, accounts = [], [], []
    for subject in obj.get("subjects") or ():
        name = subject.get("name") or ""
        if subject.get("kind") == "User":
            users.append(name)
        elif subject.get("kind") == "Group":
            groups.append(name)
        elif subject.get("kind") == "ServiceAccount":
            accounts.append(f"{subject.get('namespace') or ''}/{name}")
    return [
        name_of(obj),
        f"{role.get('kind') or ''}/{role.get('name') or ''}",
        ages.of(obj),
        ", ".join(users),
        ", ".join(groups),
        ", ".join(accounts),
    ]


def signing_request_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    seconds = spec.get("expirationSeconds")
    return [
        name_of(obj),
        ages.of(obj),
        spec.get("signerName") or NONE,
        spec.get("username") or "",
        NONE if seconds is None else format_age(seconds),
        _signing_state(status),
    ]


def _signing_state(status: JsonObject) -> str:
    found = {condition.get("type") for condition in status.get("conditions") or ()}
    state = "Denied" if "Denied" in found else "Approved" if "Approved" in found else "Pending"
    if "Failed" in found:
        state += ",Failed"
    return f"{state},Issued" if status.get("certificate") else state


def webhook_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    return [name_of(obj), len(obj.get("webhooks") or ()), ages.of(obj)]


def _policy_cells(rules: str) -> Cells:
    def cells(obj: JsonObject, ages: Ages) -> list[Any]:
        spec = spec_of(obj)
        kind = spec.get("paramKind")
        shown = UNSET if kind is None else f"{kind.get('apiVersion') or ''}/{kind.get('kind') or ''}"
        return [name_of(obj), len(spec.get(rules) or ()), shown, ages.of(obj)]

    return cells


def policy_binding_cells(obj: JsonObject, ages: Ages) -> list[Any]:
    spec = spec_of(obj)
    reference = spec.get("paramRef")
    shown = UNSET
    if reference is not None:
        if reference.get("name"):
            shown = f"{reference.get('namespace') or '*'}/{reference['name']}"
        elif reference.get("selector") is not None:
            shown = _go_selector(reference["selector"])
    return [name_of(obj), spec.get("policyName") or "", shown, ages.of(obj)]


def _go_selector(selector: JsonObject) -> str:
    """Upstream prints the Go value here, not the selector."""
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{e.get('key') or ''},Operator:{e.get('operator') or ''},"
        f"Values:[{' '.join(e.get('values') or ())}],}},"
        for e in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )


_BINDING = Layout(
    (
        NAME,
        column("Role", "Role that is granted."),
        AGE,
        wide("Users", "Users it is granted to."),
        wide("Groups", "Groups it is granted to."),
        wide("ServiceAccounts", "Service accounts it is granted to."),
    ),
    role_binding_cells,
)
_WEBHOOKS = Layout(
    (NAME, column("Webhooks", "Number of webhooks.", type="integer"), AGE), webhook_cells
)
_PARAM_KIND = column("ParamKind", "Kind of the objects that parameterize the policy.")
_POLICY_BINDING = Layout(
    (
        NAME,
        column("PolicyName", "Policy that is bound."),
        column("ParamRef", "Object that parameterizes it here."),
        AGE,
    ),
    policy_binding_cells,
)
_ADMISSION = "admissionregistration.k8s.io"

LAYOUTS: Mapping[tuple[str, str], Layout] = {
    ("", "serviceaccounts"): Layout((NAME, AGE), name_and_age),
    ("", "secrets"): Layout(
        (NAME, column("Type", "What the secret is for."), column("Data", "Number of entries."), AGE),
        secret_cells,
    ),
    ("rbac.authorization.k8s.io", "rolebindings"): _BINDING,
    ("rbac.authorization.k8s.io", "clusterrolebindings"): _BINDING,
    ("certificates.k8s.io", "certificatesigningrequests"): Layout(
        (
            NAME,
            AGE,
            column("SignerName", "Signer that is asked."),
            column("Requestor", "Who asks."),
            column("RequestedDuration", "How long the certificate should be valid."),
            column("Condition", "Pending, Approved, Denied; Failed; Issued."),
        ),
        signing_request_cells,
    ),
    (_ADMISSION, "mutatingwebhookconfigurations"): _WEBHOOKS,
    (_ADMISSION, "validatingwebhookconfigurations"): _WEBHOOKS,
    (_ADMISSION, "validatingadmissionpolicies"): Layout(
        (NAME, column("Validations", "Number of validation rules.", type="integer"), _PARAM_KIND, AGE),
        _policy_cells("validations"),
    ),
    (_ADMISSION, "mutatingadmissionpolicies"): Layout(
        (NAME, column("Mutations", "Number of mutations.", type="integer"), _PARAM_KIND, AGE),
        _policy_cells("mutations"),
    ),
    (_ADMISSION, "validatingadmissionpolicybindings"): _POLICY_BINDING,
    (_ADMISSION, "mutatingadmissionpolicybindings"): _POLICY_BINDING,
}
