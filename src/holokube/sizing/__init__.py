"""The admission webhook that sizes pods of DaemonSets by their node, and all that it takes to run it.

Start reading in ``app.py``. ``review.py`` answers one request and ``resize_decisions.py`` decides about one running
pod, both purely; the arithmetic is in ``holokube.kube.sizing``, where the packing engine uses it too.
"""
