"""What owns the machines: the interface of the Cluster Autoscaler to a cloud, and the providers behind it."""
