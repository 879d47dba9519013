"""Runs of scenarios: a whole cluster on virtual time, driven, disturbed and measured."""
