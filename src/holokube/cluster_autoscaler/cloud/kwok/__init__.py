"""The kwok provider: groups of hollow nodes, made from templates, with the faults of real clouds on request.

A machine is a Node object that a fleet (``holokube fleet``, or kwok) brings to life. ``provider.build`` is the way in.
"""
