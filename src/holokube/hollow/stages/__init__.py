"""kwok's Stages: read, checked, decided and played; everything here is pure."""
