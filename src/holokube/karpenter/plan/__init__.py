"""Dry runs: what Karpenter would do to a cluster that is only a file, and why."""
