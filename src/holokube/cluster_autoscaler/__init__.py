"""The Cluster Autoscaler on hollow nodes.

``cloud`` is what owns the machines: the interface and the providers behind it. ``pods`` says which pods count,
``snapshot`` is the cluster to experiment on, ``scale_up`` and ``scale_down`` decide, ``expanders`` choose among
options, ``cluster_state`` remembers what was asked for and what came of it, ``actuation`` carries removals out, and
``loop`` is one turn of it all. Decisions are pure; only providers, ``actuation`` and ``loop`` speak to anybody.
"""
