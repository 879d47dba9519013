"""Instance types, what they cost, and what a cluster has cost."""
