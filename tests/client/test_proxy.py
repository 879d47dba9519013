from __future__ import annotations

import pytest

from holokube.base.errors import ConfigError
from holokube.client.proxy import proxy_from_environment


@pytest.mark.parametrize(
    ("server", "no_proxy", "proxied"),
    [
        ("https://api.example:6443", "", True),
        ("https://api.example:6443", "*", False),
        ("https://api.example:6443", "other,api.example", False),
        ("https://api.example:6443", "example", False),
        ("https://api.example:6443", ".example", False),
        ("https://api.example:6443", "*.example", False),
        ("https://example", ".example", True),
        ("https://notexample", "example", True),
        ("https://api.example:6443", "api.example:6443", False),
        ("https://api.example:6443", "api.example:443", True),
        ("https://API.example", "api.EXAMPLE:443", False),
        ("https://10.1.2.3:6443", "10.0.0.0/8", False),
        ("https://10.1.2.3:6443", "10.0.0.0/16", True),
        ("https://10.1.2.3:6443", "10.1.2.3", False),
        ("https://10.1.2.3:6443", "bad/cidr", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", False),
        ("https://[fd00::1]:6443", "fd00::/8", False),
        ("https://127.0.0.1:6443", "", False),
        ("https://[::1]:6443", "", False),
        ("https://localhost:6443", "", False),
    ],
)
def test_no_proxy_is_read_as_go_does(server: str, no_proxy: str, proxied: bool) -> None:
    environ = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": no_proxy}
    assert proxy_from_environment(server, environ) == ("http://proxy:3128" if proxied else "")


def test_the_scheme_chooses_the_variable() -> None:
    environ = {"https_proxy": "secure:1", "HTTP_PROXY": "http://plain:2"}
    assert proxy_from_environment("https://h", environ) == "http://secure:1"
    assert proxy_from_environment("http://h", environ) == "http://plain:2"
    assert proxy_from_environment("http://h", {}) == ""


def test_a_proxy_that_cannot_be_used_is_refused_with_its_variable() -> None:
    with pytest.raises(ConfigError, match="HTTPS_PROXY"):
        proxy_from_environment("https://h", {"HTTPS_PROXY": "socks5://h:1"})
