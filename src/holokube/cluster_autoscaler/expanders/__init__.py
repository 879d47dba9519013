"""Which of several ways to enlarge the cluster is taken: one strategy per file, run one after the other."""
