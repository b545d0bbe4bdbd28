"""A headless Chromium, driven over a pipe by the DevTools protocol with the standard library alone.

Source: chromedevtools.github.io/devtools-protocol; `--remote-debugging-pipe` reads commands from
file descriptor 3 and writes answers to 4, each ended by a zero byte.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_SECONDS = 60.0
# Puts the ends of two pipes where Chromium looks for them, whatever numbers they have.
_LAUNCH = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find() -> str | None:
    """The program, None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page. `requests` holds the addresses it asked for, `problems` errors and warnings."""

    def __init__(self, folder: Path, width: int = 1280, height: int = 900) -> None:
        program = find()
        assert program is not None
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        options = [
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={folder}",
            f"--window-size={width},{height}", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LAUNCH, str(commands), str(answers), program, *options],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session: str | None = None
        self.requests: list[str] = []
        self.problems: list[str] = []
        targets = self._call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        attached = self._call("Target.attachToTarget", targetId=page, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def open(self, page: Path) -> None:
        """Shows a file, once its scripts have run."""
        self._call("Page.navigate", url=page.resolve().as_uri())
        self.wait(lambda: self.run("document.readyState") == "complete")
        self.wait(lambda: self.run("location.protocol") == "file:")

    def run(self, script: str) -> Any:
        """The value of an expression. Raises AssertionError where it throws."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, done: Callable[[], bool]) -> None:
        """Until something is true."""
        end = time.monotonic() + _SECONDS
        while not done():
            assert time.monotonic() < end
            time.sleep(0.02)

    def click(self, selector: str) -> None:
        """Clicks into the middle of an element."""
        x, y = self.middle(selector)
        self.mouse("Pressed", x, y)
        self.mouse("Released", x, y)

    def middle(self, selector: str) -> tuple[float, float]:
        """Of an element, once it is in view."""
        place = self.run(
            f"(e => {{ e.scrollIntoView({{block: 'center'}}); const r = e.getBoundingClientRect();"
            "return [r.x + r.width / 2, r.y + r.height / 2] })"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        return place[0], place[1]

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Moves the mouse with its button held."""
        self.mouse("Moved", *start)
        self.mouse("Pressed", *start)
        for share in (0.25, 0.5, 0.75, 1.0):
            x, y = (a + share * (b - a) for a, b in zip(start, end, strict=True))
            self.mouse("Moved", x, y)
        self.mouse("Released", *end)

    def mouse(self, what: str, x: float, y: float) -> None:
        """'Moved', 'Pressed' or 'Released'."""
        button = {"Moved": "none"}.get(what, "left")
        self._call(
            "Input.dispatchMouseEvent", type=f"mouse{what}", x=x, y=y, button=button, clickCount=1
        )

    def type_text(self, text: str) -> None:
        """Types into what has the focus."""
        self._call("Input.insertText", text=text)

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """A picture of what is in view, or of the whole page."""
        shot = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        """Ends the browser."""
        self._process.terminate()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], _SECONDS)
            assert ready, "Chromium does not answer"
            more = os.read(self._read, 1 << 20)
            assert more, "Chromium has ended"
            self._buffer += more
        message, _, self._buffer = self._buffer.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.problems.append(str(params["args"]))
        elif method == "Log.entryAdded":
            self.problems.append(params["entry"]["text"])
        elif method == "Page.javascriptDialogOpening":
            self.problems.append(f"dialog: {params['message']}")
