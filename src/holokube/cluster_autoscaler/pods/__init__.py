"""Which pods count, and which of them are alike."""
