"""The hot path of a fleet, straight on the wire.

A fleet of a thousand nodes writes a hundred leases a second, all alike. Through the ordinary client each costs a
task, a wake-up for its answer and two objects decoded; here requests are made from templates, all that are due leave
in one piece per connection, and answers are fetched together a little later, by bytes rather than by objects.

``WireCarrier`` carries writes, ``WireTransport`` watches, both to any API server over HTTP/1.1 and TLS, with the
credentials of the ordinary client. What they cannot do, or what goes wrong, is left to that client.
"""

from holokube.hollow.wire.carrier import WireCarrier
from holokube.hollow.wire.dialer import Dialer, can_dial
from holokube.hollow.wire.echoes import Echoes
from holokube.hollow.wire.slim import Slimmer
from holokube.hollow.wire.watching import WireTransport

__all__ = ["Dialer", "Echoes", "Slimmer", "WireCarrier", "WireTransport", "can_dial"]
