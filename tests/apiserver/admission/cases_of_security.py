"""What the Pod Security Standards refuse; every answer is a real server's."""

from __future__ import annotations

from typing import Any

from .steps import case, pod_refused, put, try_pod


def labelled(level: str, version: str = "latest") -> Any:
    return put(
        "/api/v1/namespaces/{ns}",
        {
            "metadata": {
                "name": "{ns}",
                "labels": {
                    "pod-security.kubernetes.io/enforce": level,
                    "pod-security.kubernetes.io/enforce-version": version,
                },
            }
        },
    )


def insecure(why: str, level: str = "baseline:latest") -> dict[str, Any]:
    return pod_refused(f'violates PodSecurity "{level}": {why}')


def with_security(**context: Any) -> dict[str, Any]:
    return {"containers": [{"name": "c", "image": "i", "securityContext": context}]}


SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
SECURITY = [
    case("no label, no rules", try_pod({"hostNetwork": True})),
    case(
        "host namespaces",
        labelled("baseline"),
        try_pod(
            {"hostNetwork": True, "hostPID": True},
            **insecure("host namespaces (hostNetwork=true, hostPID=true)"),
        ),
    ),
    case(
        "host ports",
        labelled("baseline"),
        try_pod(
            {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
            **insecure('hostPort (container "c" uses hostPort 80)'),
        ),
    ),
    case(
        "host paths",
        labelled("baseline"),
        try_pod(
            {"volumes": [{"name": v, "hostPath": {"path": "/"}} for v in "ab"]},
            **insecure('hostPath volumes (volumes "a", "b")'),
        ),
    ),
    case(
        "privileged",
        labelled("baseline"),
        try_pod(
            with_security(privileged=True),
            **insecure('privileged (container "c" must not set securityContext.privileged=true)'),
        ),
    ),
    case(
        "capabilities",
        labelled("baseline"),
        try_pod(
            with_security(capabilities={"add": ["NET_RAW", "CHOWN", "BPF"]}),
            **insecure(
                'non-default capabilities (container "c" must not include "BPF", "NET_RAW" in '
                "securityContext.capabilities.add)"
            ),
        ),
    ),
    case(
        "sysctls by version",
        labelled("baseline", "v1.28"),
        try_pod(
            {
                "securityContext": {
                    "sysctls": [
                        {"name": "net.ipv4.tcp_fin_timeout", "value": "1"},
                        {"name": "kernel.x", "value": "1"},
                    ]
                }
            },
            **insecure("forbidden sysctls (net.ipv4.tcp_fin_timeout, kernel.x)", "baseline:v1.28"),
        ),
    ),
    case(
        "profiles",
        labelled("baseline"),
        try_pod(
            {
                "securityContext": {
                    "seccompProfile": {"type": "Unconfined"},
                    "appArmorProfile": {"type": "Unconfined"},
                    "seLinuxOptions": {"type": "x", "user": "u"},
                }
            },
            **insecure(
                'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined"), '
                'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "x"; '
                "user may not be set), "
                'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")'
            ),
        ),
    ),
    case(
        "probes of other hosts",
        labelled("baseline"),
        try_pod(
            {
                "containers": [
                    {"name": "c", "image": "i", "livenessProbe": {"httpGet": {"port": 1, "host": "h"}}}
                ]
            },
            **insecure('probe or lifecycle host (container "c" uses probe or lifecycle host "h")'),
        ),
    ),
    case(
        "restricted",
        labelled("restricted"),
        try_pod(
            {},
            **insecure(
                'allowPrivilegeEscalation != false (container "c" must set '
                "securityContext.allowPrivilegeEscalation=false), "
                'unrestricted capabilities (container "c" must set '
                'securityContext.capabilities.drop=["ALL"]), '
                'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true), '
                'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to '
                '"RuntimeDefault" or "Localhost")',
                "restricted:latest",
            ),
        ),
    ),
    case("restricted can be had", labelled("restricted"), try_pod(with_security(**SAFE))),
    case(
        "restricted volumes and users",
        labelled("restricted"),
        try_pod(
            {
                **with_security(**SAFE, runAsUser=0),
                "volumes": [{"name": "v", "nfs": {"server": "s", "path": "/"}}],
            },
            **insecure(
                'restricted volume types (volume "v" uses restricted volume type "nfs"), '
                'runAsUser=0 (container "c" must not set runAsUser=0)',
                "restricted:latest",
            ),
        ),
    ),
    case(
        "labels must make sense",
        put(
            "/api/v1/namespaces/{ns}",
            {"metadata": {"name": "{ns}", "labels": {"pod-security.kubernetes.io/enforce": "x"}}},
            422,
            'Namespace "{ns}" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: '
            'Invalid value: "x": '
            "must be one of privileged, baseline, restricted",
        ),
    ),
]
