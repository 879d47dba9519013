"""The dry run: what the Cluster Autoscaler would do to a cluster, and why, without touching it.

The real loop runs on a copy of the cluster in an API server of its own, on virtual time, against a provider that only
keeps books.
"""
