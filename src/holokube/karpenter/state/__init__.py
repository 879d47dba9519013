"""What Karpenter knows of the cluster: nodes and claims in pairs, their pods, and what is planned for them."""
