"""Hollow nodes as pods of another cluster: the kubemark provider."""
