"""A real Chromium, driven over its DevTools protocol through a pair of pipes: no driver, no port, no package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 20.0  # seconds
FLAGS = [
    "--headless=new",
    "--no-sandbox",  # its sandbox refuses to run as root, which build machines are
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--remote-debugging-pipe",
]


def program() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Chromium reads commands from its descriptor 3 and answers on 4."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    command = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
    process = subprocess.Popen(
        ["bash", "-c", command, str(program()), *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        pass_fds=(theirs_in, theirs_out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Browser(ours_in, ours_out)
    finally:
        os.close(ours_out)
        os.close(ours_in)
        process.terminate()
        process.wait(PATIENCE)


class Browser:
    """Commands and events; every message is JSON that ends with a zero byte."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming, self._outgoing, self._rest, self._last = incoming, outgoing, b"", 0
        self.events: list[dict[str, Any]] = []
        os.set_blocking(incoming, False)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        os.write(self._outgoing, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for received in self._received():
                if received.get("id") != self._last:
                    self.events.append(received)
                elif "error" in received:
                    raise RuntimeError(f"{method}: {received['error']}")
                else:
                    found: dict[str, Any] = received["result"]
                    return found
        raise TimeoutError(f"Chromium did not answer {method}")

    def open(self, address: str, width: int = 1400, height: int = 900, mobile: bool = False) -> Page:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session, target, address, (width, height), mobile)

    def _received(self) -> list[dict[str, Any]]:
        try:
            part = os.read(self._incoming, 1 << 20)
        except BlockingIOError:
            time.sleep(0.005)
            return []
        if not part:
            raise RuntimeError("Chromium has ended")
        *whole, self._rest = (self._rest + part).split(b"\0")
        return [json.loads(message) for message in whole]


class Page:
    """One tab."""

    def __init__(
        self, browser: Browser, session: str, target: str, address: str, size: tuple[int, int], mobile: bool
    ) -> None:
        self._browser, self._session, self._target = browser, session, target
        for domain in ("Page", "Runtime", "Network", "Log", "DOM", "Accessibility"):
            self.call(f"{domain}.enable")
        scale = 2 if mobile else 1
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": scale, "mobile": mobile}
        self.call("Emulation.setDeviceMetricsOverride", **metrics)
        self.call("Page.addScriptToEvaluateOnNewDocument", source="window.find = (id) => document.getElementById(id)")
        self.call("Page.navigate", url=address)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def run(self, expression: str) -> Any:
        """The value of a JavaScript expression; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", expression))
        return answer["result"].get("value")

    def wait(self, expression: str) -> Any:
        """Until the expression is true; its value."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if value := self.run(expression):
                return value
            time.sleep(0.02)
        raise TimeoutError(f"never true on the page: {expression}; it reads {self.run('document.body.innerText')!r}")

    def text(self, identity: str) -> str:
        return str(self.run(f"find('{identity}').innerText"))

    def choose(self, identity: str, *paths: Path) -> None:
        """Give files to a file input, as its dialog would."""
        found = self.call("Runtime.evaluate", expression=f"find('{identity}')")["result"]
        self.call("DOM.setFileInputFiles", objectId=found["objectId"], files=[str(path) for path in paths])

    def press(self, key: str, code: int = 0) -> None:
        """A key as a keyboard sends it, to whatever has the focus."""
        what = {"key": key, "windowsVirtualKeyCode": code or ord(key.upper()[0])}
        text = {"text": "\r" if key == "Enter" else key} if len(key) == 1 or key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **what, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **what)

    def events(self, method: str) -> list[dict[str, Any]]:
        """What of this kind has happened on this page so far."""
        self.run("1")
        return [
            event["params"]
            for event in self._browser.events
            if event.get("method") == method and event.get("sessionId") == self._session
        ]

    def screenshot(self, path: Path, whole: bool = False) -> None:
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)
