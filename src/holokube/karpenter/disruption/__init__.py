"""Which nodes may go, which should, and what replaces them: decisions only, made on a picture of the cluster."""
