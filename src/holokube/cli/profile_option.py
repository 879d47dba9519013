"""``--profile``: a profile by its name, or from a file."""

from __future__ import annotations

from pathlib import Path

from holokube.hollow.profile import Profile, load_profile, named_profile


def choose_profile(text: str) -> Profile:
    """``fast``, ``kubelet``, or the path of a profile file."""
    if text == "fast":
        return named_profile("fast")
    if text == "kubelet":
        return named_profile("kubelet")
    return load_profile(Path(text))
