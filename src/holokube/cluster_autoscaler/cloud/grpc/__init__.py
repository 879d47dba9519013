"""A door for the real cluster-autoscaler: any ``CloudProvider`` as a server of its ``externalgrpc`` protocol.

``messages`` are the protocol's field numbers, ``service`` answers calls with plain objects, ``statuses`` makes gRPC's
codes of errors, ``server`` listens, ``tls`` keeps certificates fresh. Only ``server`` and ``tls`` need grpcio, which is
an extra and is imported when it is used.
"""
