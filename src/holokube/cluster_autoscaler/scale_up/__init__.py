"""Deciding which node group to enlarge, and by how many nodes. Nothing here talks to anybody."""
