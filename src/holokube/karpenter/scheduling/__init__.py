"""Where pending pods should go: nodes that are there, nodes on their way, and NodeClaims to be made."""
