"""Karpenter on hollow nodes: provisioning, the life of NodeClaims, disruption."""
