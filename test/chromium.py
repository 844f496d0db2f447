"""A headless Chromium for tests of pages, driven by its DevTools protocol over a WebSocket."""

import base64
import itertools
import json
import shutil
import subprocess
import time
from pathlib import Path
from urllib.request import urlopen

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_S = 300.0


def require_chromium():
    """Skip where there is no Chromium, or no WebSocket library; -> path of the program."""
    pytest.importorskip("websockets", reason="the browser is driven by websockets (extra `view`)")
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("no Chromium is installed (apt install chromium)")
    return program


class Chromium:
    """One page. `with Chromium(tmp_path) as page: page.open(address)`. messages: what its console said"""

    def __init__(self, folder: Path, size=(1400, 900)):
        program = require_chromium()
        self.size, self.messages, self._numbers = size, [], itertools.count(1)
        profile = Path(folder) / "chromium"
        self._process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--no-sandbox",
                "--disable-dev-shm-usage",
                "--use-angle=swiftshader",
                "--enable-unsafe-swiftshader",
                "--hide-scrollbars",
                "--no-first-run",
                "--disable-background-networking",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",  # no internet
                f"--window-size={size[0]},{size[1]}",
                "--remote-debugging-port=0",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            port = self._wait(lambda: (profile / "DevToolsActivePort").read_text().split()[0])
            tabs = self._wait(lambda: json.load(urlopen(f"http://127.0.0.1:{port}/json", timeout=5)))
            from websockets.sync.client import connect

            address = next(tab["webSocketDebuggerUrl"] for tab in tabs if tab["type"] == "page")
            self._socket = connect(address, max_size=None)
            self.command("Page.enable")
            self.command("Runtime.enable")
            self.command("Log.enable")
        except BaseException:
            self._process.kill()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def open(self, address, until="document.readyState === 'complete'"):
        """Go to an address and wait until a JavaScript expression is true."""
        self.command("Page.navigate", url=str(address))
        self.wait_for(until)

    def value(self, expression):
        """What a JavaScript expression gives."""
        answer = self.command("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait_for(self, expression):
        """Wait until a JavaScript expression is true."""
        self._wait(lambda: self.value(expression) or 1 / 0)

    def text(self):
        """What can be read on the page."""
        return self.value("document.body.innerText")

    def picture(self, file):
        """Write a PNG of the page."""
        data = self.command("Page.captureScreenshot", format="png")["data"]
        Path(file).write_bytes(base64.b64decode(data))
        return Path(file)

    def drag(self, start, end, steps=12, pause_s=0.05, release=True):
        """Press the mouse at (x, y), move it in steps, and let go."""
        self.mouse("mouseMoved", *start)
        time.sleep(0.3)
        self.mouse("mousePressed", *start, button="left", clickCount=1)
        for step in range(1, steps + 1):
            share = step / steps
            self.mouse("mouseMoved", *(a + share * (b - a) for a, b in zip(start, end)), button="left", buttons=1)
            time.sleep(pause_s)
        if release:
            self.mouse("mouseReleased", *end, button="left", clickCount=1)

    def click(self, x, y):
        """Press and release at a point."""
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def mouse(self, kind, x, y, **more):
        """One event of the mouse."""
        self.command("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def command(self, method, **arguments):
        """A command of the DevTools protocol -> its result."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": arguments}))
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            message = json.loads(self._socket.recv(timeout=PATIENCE_S))
            if message.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                self.messages.append(message)
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
        raise TimeoutError(method)

    def _wait(self, look):
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                return look()
            except Exception:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
