"""pytest plugin (``-p traced_modules``): record the modules of the package in which a function runs, as JSON.

The file is named by the environment variable ``TRACED_MODULES``. Statements that run while a module is imported do not
count: importing a module is not running through it.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
from pathlib import Path
from types import FrameType

PACKAGE = f"{os.sep}pytest_ssdqual{os.sep}"
_files: set[str] = set()


def _profile(frame: FrameType, event: str, argument: object) -> None:
    code = frame.f_code
    if event == "call" and PACKAGE in code.co_filename and code.co_name != "<module>":
        _files.add(code.co_filename)


def _write() -> None:
    Path(os.environ["TRACED_MODULES"]).write_text(json.dumps(sorted(_files)), encoding="utf-8")


if "TRACED_MODULES" in os.environ:
    threading.setprofile(_profile)
    sys.setprofile(_profile)
    atexit.register(_write)
