"""A headless Chromium, driven through its devtools protocol on two pipes.

One browser shows many pages, one after the other, at any width and in any theme; it points, drags
and types as a reader does, and tells what the page's script complained of.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 120.0
"""For an answer [s]."""
TALLEST = 6000
"""Picture [px]."""
FLAGS = (
    "--headless=new", "--no-sandbox", "--remote-debugging-pipe", "--hide-scrollbars",
    "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions",
    "--disable-gpu-rasterization",  # what Debian turns on is twice the work without such hardware
)  # fmt: skip
# the browser reads what it is asked from descriptor 3 and answers on 4
PLUG = (
    "import os, sys; from fcntl import F_DUPFD, fcntl; "
    "r, w = (fcntl(int(x), F_DUPFD, 9) for x in sys.argv[1:3]); "
    "os.dup2(r, 3); os.dup2(w, 4); os.execv(sys.argv[3], sys.argv[3:])"
)


def find_chromium() -> str:
    """The browser; the test is skipped without one."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("there is no Chromium on this machine")
    return browser


class Browser:
    """One tab."""

    def __init__(self, read: int, write: int) -> None:
        """What it says is read from one descriptor, what it is asked goes to the other."""
        self.read, self.write = read, write
        self.asked, self.left, self.session = 0, b"", ""
        self.loaded = False
        self.complaints: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self.session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **options: Any) -> dict[str, Any]:
        """What the protocol's method returns."""
        self.asked += 1
        call = {"id": self.asked, "method": method, "params": options}
        if self.session:
            call["sessionId"] = self.session
        os.write(self.write, json.dumps(call).encode() + b"\0")
        while True:
            told = self.hear()
            if told.get("id") == self.asked:
                assert "error" not in told, f"{method}: {told['error']}"
                result: dict[str, Any] = told["result"]
                return result

    def hear(self) -> dict[str, Any]:
        """The next answer or event."""
        stop = time.monotonic() + PATIENCE
        while b"\0" not in self.left:
            ready, _, _ = select.select([self.read], [], [], max(0.0, stop - time.monotonic()))
            assert ready, "the browser says nothing"
            more = os.read(self.read, 1 << 20)
            assert more, "the browser is gone"
            self.left += more
        own, _, self.left = self.left.partition(b"\0")
        told: dict[str, Any] = json.loads(own)
        self.notice(told.get("method", ""), told.get("params", {}))
        return told

    def notice(self, method: str, told: dict[str, Any]) -> None:
        """Keep what a page complains of."""
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            words = details.get("exception", {}).get("description", details["text"])
            self.complaints.append(f"error: {words.splitlines()[0]}")
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning"):
            words = " ".join(str(each.get("value", "")) for each in told["args"])
            self.complaints.append(f"console: {words}")
        elif method == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.complaints.append(f"console: {told['entry']['text']}")

    def show(self, file: Path, width: int, theme: str, height: int = 900) -> None:
        """Open a page anew."""
        preference = {"name": "prefers-color-scheme", "value": theme}
        self.ask("Emulation.setEmulatedMedia", features=[preference])
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.loaded, self.complaints = False, []
        self.ask("Page.navigate", url=file.as_uri())
        while not self.loaded:
            self.hear()

    def run(self, script: str) -> Any:
        """The value of an expression of the page, waited for."""
        found = self.ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def point(self, *path: tuple[float, float], drag: bool = False, clicks: int = 0) -> None:
        """Lead the mouse along places of the window [px], its button down while it drags."""
        button = {"button": "left", "clickCount": max(1, clicks)}
        for k, (x, y) in enumerate(path):
            held = {"buttons": 1} if drag and k else {}
            self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, **held)
            if drag and k == 0:
                self.ask("Input.dispatchMouseEvent", type="mousePressed", x=x, y=y, **button)
        x, y = path[-1]
        if drag:
            self.ask("Input.dispatchMouseEvent", type="mouseReleased", x=x, y=y, **button)
        for count in range(1, clicks + 1):
            for kind in ("mousePressed", "mouseReleased"):
                told = {"button": "left", "clickCount": count}
                self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **told)

    def press(self, key: str) -> None:
        """A key, by its name."""
        text = {"text": key} if len(key) == 1 else {}
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

    def photograph(self, file: Path) -> list[Path]:
        """Pictures of the page, PNG, one below the other: a browser draws no higher ones."""
        width, height = self.run(
            "[document.documentElement.clientWidth, document.documentElement.scrollHeight]"
        )
        found = []
        for k, top in enumerate(range(0, height, TALLEST), start=1):
            clip = {"x": 0, "y": top, "width": width, "height": min(TALLEST, height - top)}
            shot = self.ask(
                "Page.captureScreenshot",
                format="png",
                captureBeyondViewport=True,
                clip={**clip, "scale": 1},
            )
            found.append(file.with_name(f"{file.stem}-{k}{file.suffix}"))
            found[-1].write_bytes(base64.b64decode(shot["data"]))
        return found


@contextmanager
def open_browser(profile: Path) -> Iterator[Browser]:
    """A browser that is gone afterwards."""
    browser = find_chromium()
    read_there, write = os.pipe()
    read, write_there = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", PLUG, str(read_there), str(write_there), browser, *FLAGS,
         f"--user-data-dir={profile}"],
        pass_fds=(read_there, write_there),
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    for end in (read_there, write_there):
        os.close(end)
    try:
        yield Browser(read, write)
    finally:
        os.close(write)  # at the end of what it is asked, it leaves
        os.close(read)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
