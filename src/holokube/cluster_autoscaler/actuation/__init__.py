"""Carries out a scale-down: taints, drains and deletes the nodes that the planner chose, and undoes what fails."""
