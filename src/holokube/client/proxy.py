"""The proxy the environment asks for (``HTTPS_PROXY``, ``HTTP_PROXY``, ``NO_PROXY``), as Go reads it."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from holokube.base.errors import ConfigError

SUPPORTED_SCHEMES = ("http", "https")


def proxy_from_environment(server: str, environ: Mapping[str, str]) -> str:
    """The proxy's URL for a server's URL; empty to connect directly."""
    url = urlsplit(server)
    host = url.hostname or ""
    names = ("HTTPS_PROXY", "https_proxy") if url.scheme == "https" else ("HTTP_PROXY", "http_proxy")
    name = next((name for name in names if environ.get(name)), "")
    if not name or _is_local(host):
        return ""
    port = url.port or (443 if url.scheme == "https" else 80)
    if _excluded(host, port, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return ""
    proxy = environ[name].strip()
    return check_proxy(proxy if "://" in proxy else f"http://{proxy}", f"the environment variable {name}")


def check_proxy(proxy: str, where: str) -> str:
    """The proxy's URL, if it is one that can be used."""
    try:
        parts = urlsplit(proxy)
        usable = bool(parts.hostname) and parts.scheme in SUPPORTED_SCHEMES
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"{where}: the proxy {proxy!r} cannot be used",
            hint="Give an http:// or https:// URL with a host; SOCKS proxies are not supported.",
        )
    return proxy


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    address = _address(host)
    return address is not None and address.is_loopback


def _excluded(host: str, port: int, no_proxy: str) -> bool:
    rules = [rule.strip().lower() for rule in no_proxy.split(",")]
    return any(_matches(host.lower(), port, rule) for rule in rules if rule)


def _matches(host: str, port: int, rule: str) -> bool:
    if rule == "*":
        return True
    if "/" in rule:
        address = _address(host)
        try:
            return address is not None and address in ipaddress.ip_network(rule, strict=False)
        except ValueError:
            return False
    pattern, pattern_port = _split_port(rule)
    if pattern_port and pattern_port != str(port):
        return False
    literal = _address(pattern)
    if literal is not None:
        return _address(host) == literal
    if pattern.startswith("*."):
        pattern = pattern[1:]
    if pattern.startswith("."):
        return host.endswith(pattern)
    return host == pattern or host.endswith(f".{pattern}")


def _split_port(rule: str) -> tuple[str, str]:
    if rule.startswith("["):
        inside, _, rest = rule[1:].partition("]")
        return inside, rest.removeprefix(":")
    if rule.count(":") == 1:
        name, _, port = rule.partition(":")
        return name, port
    return rule, ""


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
