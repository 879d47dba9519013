"""Holokube: a Kubernetes autoscaling laboratory that fits on a laptop."""

__version__ = "0.1.0"
