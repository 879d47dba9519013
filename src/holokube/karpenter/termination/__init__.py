"""The end of a NodeClaim and its Node: drain, detachment, termination."""
