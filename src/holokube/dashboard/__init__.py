"""A live page of a cluster: its nodes, pods, cost and decisions as they happen."""
