"""The ground floor: clock, virtual-time event loop, seeded randomness, errors, logging."""
