"""Which tag an image name carries, as container runtimes read it."""

from __future__ import annotations

import re
from functools import lru_cache

_PATH_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DOMAIN_PART = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_DOMAIN_PART}(?:\.{_DOMAIN_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?{_PATH_PART}(?:/{_PATH_PART})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?",
    re.ASCII,
)
_BARE_ID = re.compile("[a-f0-9]{64}")
_NAME_MAX_LENGTH = 255
_DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}


@lru_cache(maxsize=8_192)
def default_pull_policy(image: str) -> str:
    """``Always`` for the moving tag ``latest``, written or implied; ``IfNotPresent`` for everything else.

    A name that cannot be read has no tag, and therefore gets ``IfNotPresent``.
    """
    return "Always" if _tag(image) == "latest" else "IfNotPresent"


def _tag(image: str) -> str:
    if _BARE_ID.fullmatch(image):
        return ""
    match = _REFERENCE.fullmatch(_normalized(image))
    if match is None or len(match["name"]) > _NAME_MAX_LENGTH or not _is_digest(match["digest"]):
        return ""
    tag: str | None = match["tag"]
    if tag is None and match["digest"] is None:
        return "latest"
    return tag or ""


def _normalized(image: str) -> str:
    """With the registry and the ``library`` that short names leave out; upper case is refused by both."""
    domain, slash, rest = image.partition("/")
    has_domain = slash and (
        "." in domain or ":" in domain or domain == "localhost" or domain.lower() != domain
    )
    if not has_domain:
        domain, rest = "docker.io", image
    if domain == "index.docker.io":
        domain = "docker.io"
    if domain == "docker.io" and "/" not in rest:
        rest = f"library/{rest}"
    return f"{domain}/{rest}"


def _is_digest(digest: str | None) -> bool:
    if digest is None:
        return True
    algorithm, _, code = digest.partition(":")
    return len(code) == _DIGEST_LENGTHS.get(algorithm, 0) and code == code.lower()
