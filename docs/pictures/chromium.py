"""Headless Chromium, controlled through a pipe with its DevTools protocol: no driver and no network is needed."""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_SECONDS: Final = 60.0


def installed() -> str | None:
    """The path of an installed browser."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """The device that a page is shown on."""

    width: int
    height: int
    is_dark: bool = False


class Chromium:
    """A browser with one page. A context manager that ends it."""

    def __init__(self, path: str) -> None:
        self._directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._commands = os.pipe()
        self._answers, from_browser = os.pipe()
        # The protocol uses the descriptors 3 and 4 of the browser.
        command = f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}'
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe")
        self._process = subprocess.Popen(
            ["bash", "-c", command, path, *options, f"--user-data-dir={self._directory.name}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(to_browser, from_browser),
        )
        os.close(to_browser)
        os.close(from_browser)
        self._numbers = itertools.count(1)
        self._left = b""
        self._session: str | None = None
        self.problems: list[str] = []
        """What the browser reported since the last page was opened: refused styles and scripts, failed requests."""
        self._loads = 0
        (target,) = (each for each in self._call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Log", "Runtime", "Network"):
            self._call(f"{domain}.enable")

    def show_on(self, screen: Screen) -> None:
        """Show pages on this device from now on."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=screen.width,
            height=screen.height,
            deviceScaleFactor=1,
            mobile=screen.width < 600,
        )
        theme = {"name": "prefers-color-scheme", "value": "dark" if screen.is_dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[theme])

    def open(self, url: str) -> None:
        """Load a page, and wait for it."""
        self.problems.clear()
        before = self._loads
        self._call("Page.navigate", url=url)
        self._wait_for_load(before)

    def press(self, selector: str) -> None:
        """Press the first button that the CSS selector finds, and wait for the page that follows."""
        before = self._loads
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")
        self._wait_for_load(before)

    def wait_for_load(self) -> None:
        """Wait until the page loads again by itself."""
        self._wait_for_load(self._loads)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def screenshot(self) -> bytes:
        """A PNG picture of what the screen shows."""
        return base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])

    def close(self) -> None:
        """End the browser."""
        self._session = None
        self._send("Browser.close", {})
        self._process.wait(_SECONDS)
        os.close(self._commands)
        os.close(self._answers)
        self._directory.cleanup()

    def __enter__(self) -> Chromium:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        number = self._send(method, arguments)
        while True:
            message = self._message()
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    def _send(self, method: str, arguments: Mapping[str, Any]) -> int:
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": arguments}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        return number

    def _wait_for_load(self, before: int) -> None:
        deadline = time.monotonic() + _SECONDS
        while self._loads == before:
            assert time.monotonic() < deadline, "the page did not load"
            self._message()

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            read = os.read(self._answers, 1 << 20)
            assert read, "the browser ended"
            self._left += read
        text, _, self._left = self._left.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        match message.get("method"):
            case "Page.loadEventFired":
                self._loads += 1
            case "Log.entryAdded":
                self.problems.append(message["params"]["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.problems.append(str(message["params"]["exceptionDetails"]))
            case "Page.javascriptDialogOpening":
                self.problems.append(f"dialog: {message['params']['message']}")
                self._send("Page.handleJavaScriptDialog", {"accept": True})
        return message
