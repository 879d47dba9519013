"""Where nodes come from: the protocol of a cloud, and the hollow one."""
