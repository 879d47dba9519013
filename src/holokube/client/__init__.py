"""The one way to a cluster: the client, its transports and caches."""
