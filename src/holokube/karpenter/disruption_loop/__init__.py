"""Carrying out what the disruption methods decide: the loop, and the queue of commands under way."""
