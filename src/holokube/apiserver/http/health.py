"""/healthz, /livez and /readyz, with upstream's ``?verbose`` listing."""

from __future__ import annotations

from holokube.apiserver.http.wire import Answer, Request

_CHECKS = ("ping", "log", "etcd", "informer-sync", "poststarthook/start-apiextensions-controllers")
_TEXT = "text/plain; charset=utf-8"


def health_answer(request: Request) -> Answer:
    """The server answers, so it is well: there is nothing behind it that could be down."""
    endpoint, _, check = request.path.strip("/").partition("/")
    checks = [c for c in _CHECKS if endpoint == "readyz" or c != "informer-sync"]
    if check:
        if check not in checks:
            return Answer(404, b"404 page not found\n", _TEXT)
        checks = [check]
        if "verbose" not in request.query:
            return Answer(200, b"ok", _TEXT)
    if "verbose" not in request.query:
        return Answer(200, b"ok", _TEXT)
    excluded = set(request.query.get("exclude", "").split(","))
    lines = [f"[+]{c} excluded: ok" if c in excluded else f"[+]{c} ok" for c in checks]
    return Answer(200, "\n".join([*lines, f"{endpoint} check passed\n"]).encode(), _TEXT)
