"""Scenarios: what a run begins with, what happens in it and when, and what is expected of it."""
