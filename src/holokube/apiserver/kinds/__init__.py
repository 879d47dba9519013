"""The rules of each kind: defaults, validation, what the server sets itself. One module per family."""
