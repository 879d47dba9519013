"""The HTTP face of the registry: routes, content negotiation, authentication, watch streams."""
