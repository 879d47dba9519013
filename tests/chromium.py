"""A real Chromium for tests, driven through its DevTools pipe: no driver, no port, no waiting by the clock."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from holokube.base.errors import HolokubeError
from holokube.testing.controlplane import ProgramsMissingError

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ANSWER_WITHIN_S = 60.0
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-extensions",
    "--disable-dev-shm-usage", "--force-color-profile=srgb", "--font-render-hinting=none", "--remote-debugging-pipe",
)
KEYS = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}


class ChromiumError(HolokubeError):
    """Chromium refused, or did not answer."""


def find_chromium() -> Path:
    """The program: ``HOLOKUBE_CHROMIUM``, or the first of the usual names on the path."""
    told = os.environ.get("HOLOKUBE_CHROMIUM", "")
    for name in (told,) if told else PROGRAMS:
        found = shutil.which(name)
        if found:
            return Path(found)
    raise ProgramsMissingError(
        "Chromium is not here.", hint="Install it (Debian: chromium), or set HOLOKUBE_CHROMIUM to its path.")


class Chromium:
    """A running browser."""

    def __init__(self, program: Path, home: Path) -> None:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self._in, self._out = ours_in, ours_out
        self._buffer = bytearray()
        self._next = 0
        self._events: deque[dict[str, Any]] = deque()
        self.pages: dict[str, Page] = {}
        # Chromium reads commands from descriptor 3 and writes answers to 4.
        script = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, str(program), *FLAGS, f"--user-data-dir={home}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        try:
            self.call("Browser.close")
        except ChromiumError:
            self._process.kill()
        self._process.wait(ANSWER_WITHIN_S)
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, params: Mapping[str, Any] | None = None, session: str = "") -> dict[str, Any]:
        """Send a command and wait for its answer; events that come first are handed to their pages."""
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": dict(params or {})}
        if session:
            message["sessionId"] = session
        try:
            _write_all(self._out, json.dumps(message).encode() + b"\0")
        except BrokenPipeError as error:
            raise ChromiumError(f"Chromium has ended before {method}.") from error
        while True:
            answer = self._read(method)
            if answer.get("id") == self._next:
                if "error" in answer:
                    raise ChromiumError(f"{method}: {answer['error'].get('message')}")
                result: dict[str, Any] = answer["result"]
                return result

    def wait(self, what: str, happened: Callable[[], bool]) -> None:
        """Take in events until something has happened."""
        while not happened():
            self._read(what)

    def open(self, address: str, *, width: int = 1280, height: int = 900, **media: str) -> Page:
        """Open a page; ``media`` sets features such as ``prefers_color_scheme="dark"``."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = Page(self, target, session)
        self.pages[session] = page
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        page.resize(width, height)
        if media:
            features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
            page.call("Emulation.setEmulatedMedia", {"features": features})
        page.loaded = False
        page.call("Page.navigate", {"url": address})
        self.wait(f"loading {address}", lambda: page.loaded)
        return page

    def _read(self, what: str) -> dict[str, Any]:
        while (end := self._buffer.find(b"\0")) < 0:
            if not select.select([self._in], [], [], ANSWER_WITHIN_S)[0]:
                raise ChromiumError(f"Chromium does not answer: {what}.")
            part = os.read(self._in, 1 << 16)
            if not part:
                raise ChromiumError(f"Chromium has ended: {what}.")
            self._buffer += part
        message: dict[str, Any] = json.loads(bytes(self._buffer[:end]))
        del self._buffer[:end + 1]
        page = self.pages.get(message.get("sessionId", ""))
        if page is not None and "method" in message:
            page.take(message["method"], message["params"])
        return message


class Page:
    """A tab, with what it complained of and what it asked the network for."""

    def __init__(self, browser: Chromium, target: str, session: str) -> None:
        self._browser = browser
        self._target = target
        self._session = session
        self.loaded = False
        self.complaints: list[str] = []
        self.requests: list[str] = []

    def take(self, event: str, params: Mapping[str, Any]) -> None:
        """Remember an event."""
        if event == "Page.loadEventFired":
            self.loaded = True
        elif event == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif event == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif event == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(" ".join(str(one.get("value", one.get("description"))) for one in params["args"]))
        elif event == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])

    def call(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a command to this tab."""
        return self._browser.call(method, params, self._session)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited."""
        answer = self.call("Runtime.evaluate", {"expression": expression, "awaitPromise": True, "returnByValue": True})
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise ChromiumError(details.get("exception", {}).get("description") or details["text"])
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Wait, picture by picture, until an expression is true."""
        self.evaluate(
            "new Promise((done, fail) => { let left = 1200; const look = () => { "
            f"if ({condition}) done(); else if (--left) requestAnimationFrame(look); "
            f"else fail(new Error({json.dumps('never true: ' + condition)})); }}; look(); }})")

    def settle(self) -> None:
        """Let the page draw what it has put off to the next picture."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def text(self, selector: str) -> str:
        """The text of an element as it is shown."""
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def resize(self, width: int, height: int, *, touch: bool = False) -> None:
        """Make the window as large as this; with ``touch`` it is a phone."""
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 2 if touch else 1, "mobile": touch})
        self.call("Emulation.setTouchEmulationEnabled", {"enabled": touch})

    def box(self, selector: str) -> tuple[float, float, float, float]:
        """Left, top, width and height of an element that is scrolled into view."""
        found = self.evaluate(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)}); "
            "one.scrollIntoView({block: 'center', behavior: 'instant'}); const box = one.getBoundingClientRect(); "
            "return [box.left, box.top, box.width, box.height]; })()")
        return found[0], found[1], found[2], found[3]

    def mouse(self, kind: str, x: float, y: float, *, clicks: int = 0) -> None:
        """``mousePressed``, ``mouseMoved`` or ``mouseReleased`` at a point."""
        pressed = kind != "mouseReleased" and clicks > 0
        self.call("Input.dispatchMouseEvent", {
            "type": kind, "x": x, "y": y, "button": "left" if clicks else "none", "clickCount": clicks,
            "buttons": 1 if pressed else 0})

    def click(self, selector: str) -> None:
        """Click the middle of an element."""
        left, top, width, height = self.box(selector)
        self.click_at(left + width / 2, top + height / 2)

    def click_at(self, x: float, y: float, *, clicks: int = 1) -> None:
        """Click a point; twice for a double click."""
        self.mouse("mouseMoved", x, y)
        for number in range(1, clicks + 1):
            self.mouse("mousePressed", x, y, clicks=number)
            self.mouse("mouseReleased", x, y, clicks=number)
        self.settle()

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press at one point, move to the other, let go."""
        self.mouse("mouseMoved", *start)
        self.mouse("mousePressed", *start, clicks=1)
        for step in (0.25, 0.5, 0.75, 1.0):
            self.mouse("mouseMoved", start[0] + (end[0] - start[0]) * step, start[1] + (end[1] - start[1]) * step,
                       clicks=1)
        self.mouse("mouseReleased", *end, clicks=1)
        self.settle()

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key."""
        params: dict[str, Any] = {"key": key, "code": key, "modifiers": 8 if shift else 0}
        if key in KEYS:
            params["windowsVirtualKeyCode"] = KEYS[key]
        if len(key) == 1:
            params["text"] = key
        self.call("Input.dispatchKeyEvent", {"type": "keyDown", **params})
        self.call("Input.dispatchKeyEvent", {"type": "keyUp", **{k: v for k, v in params.items() if k != "text"}})
        self.settle()

    def write(self, selector: str, text: str) -> None:
        """Type into a field, in place of what is there."""
        self.evaluate(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)}); one.focus(); one.select(); }})()")
        self.call("Input.insertText", {"text": text})
        self.settle()

    def choose(self, selector: str, value: str) -> None:
        """Choose from a list, or set a slider."""
        self.evaluate(
            f"(() => {{ const one = document.querySelector({json.dumps(selector)}); one.value = {json.dumps(value)}; "
            "one.dispatchEvent(new Event('input', {bubbles: true})); "
            "one.dispatchEvent(new Event('change', {bubbles: true})); })()")
        self.settle()

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Write a PNG of the page."""
        answer = self.call("Page.captureScreenshot", {"format": "png", "captureBeyondViewport": whole})
        path.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self, path: Path) -> None:
        """Print to a file."""
        answer = self.call("Page.printToPDF", {"printBackground": True, "preferCSSPageSize": True})
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        """Close the tab."""
        self._browser.call("Target.closeTarget", {"targetId": self._target})
        self._browser.pages.pop(self._session, None)


def _write_all(descriptor: int, data: bytes) -> None:
    view: Sequence[int] | memoryview = memoryview(data)
    while len(view):
        view = view[os.write(descriptor, bytes(view)):]
