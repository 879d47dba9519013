"""Discovery, health, version and the OpenAPI documents."""

from __future__ import annotations

from tests.conformance.model import WHOLE, Cases, get

cases = Cases()
CORE = 'components.schemas["io.k8s.api.core.v1.{}"]'
AGGREGATED = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)

cases("discovery/version", get("/version", take=["keys()", "major"]))
cases("discovery/version-with-slash", get("/version/", take=["major"]))
for path in ("healthz", "livez", "readyz"):
    cases(f"discovery/{path}", get(f"/{path}", take=WHOLE, take_headers=["Content-Type"]))
for path in ("livez", "readyz"):
    cases(
        f"discovery/{path}-verbose", get(f"/{path}?verbose", text=["[+]ping ok\n", f"{path} check passed\n"])
    )
cases(
    "discovery/livez-excluding-a-check", get("/livez?verbose&exclude=ping", text=["[+]ping excluded: ok\n"])
)
cases("discovery/one-health-check", get("/livez/ping", take=WHOLE))
cases("discovery/unknown-health-check", get("/livez/frob", 404))
cases("discovery/core-versions", get("/api", take=["kind", "versions"]))
cases("discovery/groups", get("/apis", take=["kind", "apiVersion"]))
cases("discovery/root", get("/", take=["keys()"]))
for group, version in (
    ("apps", "v1"),
    ("batch", "v1"),
    ("policy", "v1"),
    ("coordination.k8s.io", "v1"),
    ("events.k8s.io", "v1"),
    ("scheduling.k8s.io", "v1"),
    ("apiextensions.k8s.io", "v1"),
    ("rbac.authorization.k8s.io", "v1"),
):
    cases(
        f"discovery/group-{group}",
        get(
            f"/apis/{group}",
            take=["kind", "apiVersion", "name", "preferredVersion"],
            has={"preferredVersion.version": version},
        ),
    )
cases("discovery/group-autoscaling", get("/apis/autoscaling", take=WHOLE))
cases("discovery/unknown-group", get("/apis/none.example.com", 404))
cases("discovery/unknown-version", get("/apis/apps/v9", 404))
SERVED = {
    "/api/v1": "pods pods/status pods/binding pods/eviction pods/log pods/ephemeralcontainers pods/resize "
    "nodes nodes/status nodes/proxy namespaces namespaces/status namespaces/finalize services endpoints "
    "services/status configmaps secrets serviceaccounts serviceaccounts/token events persistentvolumes "
    "replicationcontrollers replicationcontrollers/scale persistentvolumeclaims limitranges resourcequotas "
    "podtemplates",
    "/apis/apps/v1": "deployments deployments/scale deployments/status replicasets daemonsets "
    "statefulsets statefulsets/scale controllerrevisions",
    "/apis/batch/v1": "jobs jobs/status cronjobs cronjobs/status",
    "/apis/autoscaling/v2": "horizontalpodautoscalers horizontalpodautoscalers/status",
    "/apis/autoscaling/v1": "horizontalpodautoscalers",
    "/apis/policy/v1": "poddisruptionbudgets poddisruptionbudgets/status",
    "/apis/scheduling.k8s.io/v1": "priorityclasses",
    "/apis/coordination.k8s.io/v1": "leases",
    "/apis/events.k8s.io/v1": "events",
    "/apis/storage.k8s.io/v1": "storageclasses csinodes csidrivers csistoragecapacities volumeattachments",
    "/apis/node.k8s.io/v1": "runtimeclasses",
    "/apis/networking.k8s.io/v1": "ingresses ingresses/status ingressclasses networkpolicies",
    "/apis/discovery.k8s.io/v1": "endpointslices",
    "/apis/resource.k8s.io/v1": "deviceclasses resourceclaims resourceclaims/status "
    "resourceclaimtemplates resourceslices",
    "/apis/rbac.authorization.k8s.io/v1": "roles rolebindings clusterroles clusterrolebindings",
    "/apis/admissionregistration.k8s.io/v1": "mutatingwebhookconfigurations validatingwebhookconfigurations "
    "validatingadmissionpolicies validatingadmissionpolicies/status",
    "/apis/flowcontrol.apiserver.k8s.io/v1": "flowschemas flowschemas/status prioritylevelconfigurations",
    "/apis/apiextensions.k8s.io/v1": "customresourcedefinitions customresourcedefinitions/status",
    "/apis/authentication.k8s.io/v1": "tokenreviews selfsubjectreviews",
    "/apis/authorization.k8s.io/v1": "selfsubjectaccessreviews subjectaccessreviews",
}
FIELDS = ("kind", "namespaced", "singularName", "verbs", "shortNames", "categories", "group", "version")
for path, names in SERVED.items():
    cases(
        f"discovery/resources-of{path.replace('/', '-')}",
        get(
            path,
            has={"kind": "APIResourceList"},
            take=[
                "apiVersion",
                "groupVersion",
                *(f"resources[name={name}].{field}" for name in names.split() for field in FIELDS),
            ],
        ),
    )
cases(
    "discovery/aggregated-core",
    get(
        "/api",
        headers={"Accept": AGGREGATED},
        take_headers=["Content-Type"],
        take=[
            "kind",
            "apiVersion",
            "items[0].metadata.name",
            "items[0].versions[0].version",
            *(
                f"items[0].versions[0].resources[resource={name}]"
                for name in ("pods", "nodes", "namespaces", "configmaps")
            ),
        ],
    ),
)
cases(
    "discovery/aggregated-groups",
    get(
        "/apis",
        headers={"Accept": AGGREGATED},
        take_headers=["Content-Type"],
        take=[
            "kind",
            "apiVersion",
            "items[metadata.name=apps].versions[0].version",
            "items[metadata.name=apps].versions[0].freshness",
            "items[metadata.name=apps].versions[0].resources[resource=deployments]",
            "items[metadata.name=autoscaling].versions.*.version",
        ],
    ),
)
cases(
    "discovery/aggregated-unknown-version",
    get(
        "/api",
        406,
        headers={"Accept": "application/json;g=apidiscovery.k8s.io;v=v2beta9;as=APIGroupDiscoveryList"},
    ),
)
cases(
    "discovery/openapi-v3-index",
    get(
        "/openapi/v3",
        take=[
            *(
                f'paths["{path}"].keys()'
                for path in ("api/v1", "apis/apps/v1", "apis/coordination.k8s.io/v1", "version")
            )
        ],
    ),
)
cases(
    "discovery/openapi-v3-field-validation",
    get(
        "/openapi/v3/api/v1",
        take=[
            'paths["/api/v1/namespaces/{namespace}/pods"].post.parameters[name=fieldValidation].in',
            'paths["/api/v1/namespaces/{namespace}/pods"].post.parameters[name=dryRun].in',
            'paths["/api/v1/namespaces/{namespace}/pods/{name}"].patch.parameters[name=fieldValidation].in',
            'paths["/api/v1/namespaces/{namespace}/pods/{name}"].patch.requestBody.content.keys()',
            'paths["/api/v1/namespaces/{namespace}/pods/{name}"].patch["x-kubernetes-action"]',
            'paths["/api/v1/namespaces/{namespace}/pods/{name}"].patch["x-kubernetes-group-version-kind"]',
        ],
    ),
)
cases(
    "discovery/openapi-v3-schemas",
    get(
        "/openapi/v3/api/v1",
        take=[
            "openapi",
            CORE.format("Pod") + '["x-kubernetes-group-version-kind"]',
            CORE.format("Pod") + ".type",
            CORE.format("Pod") + ".properties.keys()",
            CORE.format("PodSpec") + ".required",
            CORE.format("PodSpec") + '.properties.containers["x-kubernetes-patch-merge-key"]',
            CORE.format("PodSpec") + '.properties.containers["x-kubernetes-list-type"]',
            CORE.format("Container") + '.properties.ports["x-kubernetes-list-map-keys"]',
            CORE.format("Node") + ".properties.keys()",
            'components.schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"].oneOf',
        ],
    ),
)
cases(
    "discovery/openapi-v3-of-a-group",
    get(
        "/openapi/v3/apis/apps/v1",
        take=[
            'components.schemas["io.k8s.api.apps.v1.Deployment"]["x-kubernetes-group-version-kind"]',
            'components.schemas["io.k8s.api.apps.v1.DeploymentSpec"].properties.keys()',
            'paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"].keys()',
        ],
    ),
)
cases("discovery/openapi-v3-unknown", get("/openapi/v3/apis/none.example.com/v1", 404))
cases(
    "discovery/openapi-v2",
    get(
        "/openapi/v2",
        take=[
            "swagger",
            'definitions["io.k8s.api.core.v1.Pod"]["x-kubernetes-group-version-kind"]',
            'definitions["io.k8s.api.apps.v1.DeploymentSpec"].properties.keys()',
        ],
    ),
)
cases(
    "discovery/metrics-of-the-server",
    get(
        "/metrics",
        200,
        headers={"Accept": "*/*"},
        text=[
            "# TYPE apiserver_request_total counter",
            "# TYPE apiserver_request_duration_seconds histogram",
            'resource="pods"',
        ],
    ),
)
