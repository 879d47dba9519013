"""What the kubelets of a fleet answer when they are asked: logs, statistics, metrics. One for all nodes."""
