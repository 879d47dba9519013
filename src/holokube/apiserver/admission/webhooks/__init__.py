"""Admission webhooks: HTTPS servers of the user that change or refuse writes."""
