"""pytest plugin (``-p traced_modules``): record the modules of the package in which a function runs, as JSON.

The file is named by the environment variable ``TRACED_MODULES``. It is recorded from pytest's configuration to the end
of the last test's teardown: pages and summaries, which the session writes afterwards, are another way. Only calls
count: neither statements that run while a module is imported, nor what they call, nor the lab that boots a machine.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from types import FrameType

PACKAGE = f"{os.sep}pytest_ssdqual{os.sep}"
LAB = f"{PACKAGE}lab{os.sep}"
_files: set[str] = set()


def _profile(frame: FrameType, event: str, argument: object) -> None:
    name = frame.f_code.co_filename or ""
    if event == "call" and PACKAGE in name and LAB not in name and name not in _files and not _imports(frame):
        _files.add(name)


def _imports(frame: FrameType | None) -> bool:
    """Whether a call is part of an import: of a module's statements, its classes' bodies or what they call."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and PACKAGE in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


def pytest_runtest_logfinish() -> None:
    _write()


def pytest_unconfigure() -> None:
    """End the recording: while the interpreter exits, the names of this module are gone before the last calls."""
    sys.setprofile(None)
    threading.setprofile(None)


def _write() -> None:
    Path(os.environ["TRACED_MODULES"]).write_text(json.dumps(sorted(_files)), encoding="utf-8")


if "TRACED_MODULES" in os.environ:
    threading.setprofile(_profile)
    sys.setprofile(_profile)
