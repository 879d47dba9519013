"""What Kubernetes values mean: quantities, selectors, taints, requirements, patches, status errors."""
