"""The laboratory: scenarios on virtual time, policies side by side."""
