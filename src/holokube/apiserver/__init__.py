"""What the Kubernetes API means, and its HTTP face."""
