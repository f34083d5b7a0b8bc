"""A browser without a window, asked over the pipe of Chromium's debugging protocol; skipped where there is none."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
#: What it is started with: no sandbox, because tests may be run as root.
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--remote-debugging-pipe",
    "--disable-background-networking",
)
#: Its descriptors, by its own rule: it reads from 3 and writes to 4.
SHELL = 'exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1'
LIMIT_S = 60.0


class Page:
    """One tab."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0
        self._unread = b""
        self._session = ""
        #: Errors, warnings and dialogs.
        self.complaints: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for name in ("Runtime.enable", "Log.enable", "Page.enable"):
            self.ask(name)

    def ask(self, method: str, **params: object) -> dict[str, Any]:
        """The answer to one command."""
        self._number += 1
        asked: dict[str, object] = {"id": self._number, "method": method, "params": params}
        if self._session:
            asked["sessionId"] = self._session
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(asked).encode() + b"\0")
        self._process.stdin.flush()
        while True:
            while b"\0" in self._unread:
                message, _, self._unread = self._unread.partition(b"\0")
                found = json.loads(message)
                if found.get("id") == self._number:
                    assert "error" not in found, found
                    return dict(found["result"])
                self._hear(found)
            data = os.read(self._process.stdout.fileno(), 1 << 16)
            assert data, "the browser has ended"
            self._unread += data

    def open(self, url: str) -> None:
        self.ask("Page.navigate", url=url)

    def value(self, script: str) -> Any:  # noqa: ANN401 (whatever the script gives)
        """Of an expression in JavaScript."""
        found = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, script: str, seconds: float = 30.0) -> None:
        """Wait until it is true; so long at most, which only ends what hangs."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.value(script):
                return
            threading.Event().wait(0.1)
        raise AssertionError(f"{script}: {self.value('document.body.innerText')}")

    def _hear(self, event: dict[str, Any]) -> None:
        told = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown" | "Page.javascriptDialogOpening":
                self.complaints.append(json.dumps(told))
            case "Log.entryAdded" if told["entry"]["level"] in ("error", "warning"):
                self.complaints.append(json.dumps(told))


@contextmanager
def browser(profile: Path, limit_s: float = LIMIT_S) -> Iterator[Page]:
    """A fresh one; ``profile`` is a folder for what it keeps. Nothing of it is left, whatever happens."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip("there is no Chromium here; it is in the package chromium")
    argv = ["sh", "-c", SHELL, "sh", program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    # One that hangs would hang the tests.
    alarm = threading.Timer(limit_s, process.kill)
    alarm.start()
    try:
        yield Page(process)
    finally:
        alarm.cancel()
        # Asked to end it takes three seconds, for a profile that no test needs. Its processes are of its group.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
