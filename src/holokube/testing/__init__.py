"""Kubernetes for tests: clusters in a process, pytest fixtures, and a launcher for a real control plane.

::

    from holokube.testing import Cluster, serve

    with serve() as server:                    # HTTPS, for any client in any process
        subprocess.run(["kubectl", "get", "ns"], env={"KUBECONFIG": str(server.kubeconfig)})

    with Cluster() as cluster:                 # in this process, on virtual time
        cluster.run(cluster.client.list(NODES))

Under pytest both come as fixtures; see ``holokube.testing.plugin``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holokube.testing.cluster import Cluster
    from holokube.testing.server_thread import Server, serve

__all__ = ["Cluster", "Server", "serve"]


def __getattr__(name: str) -> Any:
    """Loaded on first use: pytest imports this package in every run of everybody who has installed it."""
    if name == "Cluster":
        from holokube.testing.cluster import Cluster

        return Cluster
    if name in ("Server", "serve"):
        from holokube.testing import server_thread

        return getattr(server_thread, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
