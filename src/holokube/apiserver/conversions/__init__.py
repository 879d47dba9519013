"""One module per kind that is served in more than one shape."""
