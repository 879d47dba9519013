"""Who is asking, and what reviews answer."""

from __future__ import annotations

from typing import Any

from tests.conformance.model import WHOLE, Cases, get, post

cases = Cases()
AUTHN, AUTHZ = "authentication.k8s.io/v1", "authorization.k8s.io/v1"


def review(kind: str, api_version: str = AUTHZ, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, **({"spec": spec} if spec else {})}


cases("auth/anonymous", get("*pods", 401, "Unauthorized", authenticated=False))
cases("auth/anonymous-discovery", get("/apis", 401, "Unauthorized", authenticated=False))
cases("auth/bad-token", get("*pods", 401, "Unauthorized", headers={"Authorization": "Bearer frob"}))
cases(
    "auth/bad-token-on-health", get("/readyz", 401, "Unauthorized", headers={"Authorization": "Bearer frob"})
)
cases("auth/basic", get("*pods", 401, "Unauthorized", headers={"Authorization": "Basic YTpi"}))
cases("auth/empty-bearer", get("*pods", 401, "Unauthorized", headers={"Authorization": "Bearer"}))
cases(
    "auth/bearer-in-lower-case",
    post(
        "selfsubjectreviews",
        review("SelfSubjectReview", AUTHN),
        401,
        "Unauthorized",
        headers={"Authorization": "bearer frob"},
    ),
)
cases(
    "auth/token-with-other-characters",
    get("*pods", 401, "Unauthorized", headers={"Authorization": "Bearer a.b.c"}),
)
cases(
    "auth/who-am-i",
    post(
        "selfsubjectreviews",
        review("SelfSubjectReview", AUTHN),
        take=["kind", "apiVersion", "metadata", "status.userInfo.groups"],
    ),
)
cases(
    "auth/may-i",
    post(
        "selfsubjectaccessreviews",
        review(
            "SelfSubjectAccessReview",
            resourceAttributes={"verb": "get", "resource": "pods", "namespace": "{ns}"},
        ),
        take=["kind", "apiVersion", "metadata", "spec", "status.allowed"],
    ),
)
cases(
    "auth/may-i-of-a-path",
    post(
        "selfsubjectaccessreviews",
        review("SelfSubjectAccessReview", nonResourceAttributes={"verb": "get", "path": "/healthz"}),
        has={"status.allowed": True},
    ),
)
cases(
    "auth/may-i-without-attributes",
    post("selfsubjectaccessreviews", review("SelfSubjectAccessReview", x=1), 422, "Invalid"),
)
cases(
    "auth/may-i-with-both",
    post(
        "selfsubjectaccessreviews",
        review(
            "SelfSubjectAccessReview", resourceAttributes={"verb": "get"}, nonResourceAttributes={"path": "/"}
        ),
        422,
        "Invalid",
    ),
)
cases(
    "auth/may-they",
    post(
        "subjectaccessreviews",
        review(
            "SubjectAccessReview",
            user="system:admin",
            groups=["system:masters"],
            resourceAttributes={"verb": "get", "resource": "pods"},
        ),
        has={"status.allowed": True},
        take=["spec"],
    ),
)
cases(
    "auth/may-they-without-user",
    post(
        "subjectaccessreviews",
        review("SubjectAccessReview", resourceAttributes={"verb": "get"}),
        422,
        "Invalid",
    ),
)
cases(
    "auth/may-they-locally",
    post(
        "/apis/authorization.k8s.io/v1/namespaces/{ns}/localsubjectaccessreviews",
        review(
            "LocalSubjectAccessReview",
            user="x",
            groups=["system:masters"],
            resourceAttributes={"verb": "get", "resource": "pods", "namespace": "{ns}"},
        ),
        has={"status.allowed": True},
    ),
)
cases(
    "auth/my-rules",
    post(
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        review("SelfSubjectRulesReview", namespace="{ns}"),
        take=["status"],
    ),
)
cases(
    "auth/token-review-of-nonsense",
    post(
        "tokenreviews",
        review("TokenReview", AUTHN, token="frob"),
        take=["spec", "status.authenticated", "status.user"],
    ),
)
cases(
    "auth/token-review-empty", post("tokenreviews", review("TokenReview", AUTHN, token=""), 400, "BadRequest")
)
cases(
    "auth/token-review-of-an-account",
    post(
        "serviceaccounts/default/token",
        {"apiVersion": AUTHN, "kind": "TokenRequest", "spec": {}},
        save={"t": "status.token"},
    ),
    post(
        "tokenreviews",
        review("TokenReview", AUTHN, token="{t}"),
        has={"status.authenticated": True},
        take=["status.user.username", "status.user.groups", "status.audiences"],
    ),
)
cases(
    "auth/review-with-a-name",
    post(
        "selfsubjectaccessreviews",
        {**review("SelfSubjectAccessReview", resourceAttributes={"verb": "get"}), "metadata": {"name": "x"}},
        422,
        "Invalid",
    ),
)
cases(
    "auth/review-of-other-kind", post("selfsubjectreviews", review("TokenReview", AUTHN), 400, "BadRequest")
)
cases("auth/unauthorized-whole", get("*pods", 401, "Unauthorized", authenticated=False, take=WHOLE))
