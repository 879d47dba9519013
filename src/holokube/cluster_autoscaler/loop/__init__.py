"""One turn of the autoscaler after the other: look, decide, act, tell."""
