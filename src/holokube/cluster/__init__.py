"""What makes an API server a cluster: scheduler, controllers and hollow kubelets, put together."""

from holokube.cluster.components import PARTS, Part
from holokube.cluster.living import LivingCluster, LivingOptions

__all__ = ["PARTS", "LivingCluster", "LivingOptions", "Part"]
