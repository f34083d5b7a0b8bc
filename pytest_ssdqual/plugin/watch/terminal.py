"""Writes the progress line to pytest's terminal, past its capturing, and lets a run outlive the loss of its output."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

import pytest

from pytest_ssdqual.report.terminal.progress import Progress

#: Width of lines for a reporter that does not say.
COLUMNS = 80


def on_terminal(config: pytest.Config) -> Progress:
    """Return the progress line of this run; without a terminal reporter, or with ``-q``, it writes nothing."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or config.get_verbosity() < 0:
        return Progress(_closed_with(config, _nowhere()), terminal=False)
    stream = _uncaptured(config)
    # A dumb terminal cannot erase a line.
    can_erase = stream.isatty() and os.environ.get("TERM") != "dumb"
    is_verbose = config.get_verbosity() > 0
    # In a log with a line for each verdict, pytest would name the file again behind each.
    names_again = can_erase or is_verbose
    # Per cent of the tests would contradict the time left: a test takes nothing or half an hour.
    if getattr(reporter, "_show_progress_info", None) == "progress":
        reporter._show_progress_info = "count"

    def fresh_line() -> None:
        # A reporter of another plugin (pytest-tldr) has no such attributes.
        if not isinstance(reporter, pytest.TerminalReporter):
            return
        # reporter.ensure_newline() would write into the captured output of the test.
        # Under xdist there is no file name before the dots.
        if reporter._tw.width_of_current_line or (names_again and reporter.currentfspath):
            stream.write("\n")
            reporter._tw._current_line = ""
            reporter.currentfspath = None if names_again else reporter.currentfspath

    def size() -> os.terminal_size:
        try:
            return os.get_terminal_size(stream.fileno())
        except (OSError, ValueError):
            return os.terminal_size((0, 0))

    return Progress(
        stream,
        terminal=can_erase,
        width=lambda: size().columns or columns(reporter),
        height=lambda: size().lines or 24,
        fresh_line=fresh_line,
        has_gauges=is_verbose,
    )


def columns(reporter: object) -> int:
    """Return the width of the lines of a reporter, which may be of another plugin and have none."""
    return int(getattr(getattr(reporter, "_tw", None), "fullwidth", COLUMNS))


class SurvivingStream:
    """A text file whose ``OSError`` does not reach pytest; ``lost`` is called with the first one."""

    def __init__(self, file: TextIO, lost: Callable[[OSError], None]) -> None:
        self.file = file
        self._lost: Callable[[OSError], None] | None = lost

    def write(self, text: str) -> int:
        """Write the text, or drop it."""
        try:
            return self.file.write(text)
        except OSError as error:
            self._lose(error)
            return len(text)

    def flush(self) -> None:
        """Flush the file; what it cannot write is tried again with the next text."""
        try:
            self.file.flush()
        except OSError as error:
            self._lose(error)

    def close(self) -> None:
        """Let Python end without an error: what the file still holds goes nowhere if it cannot be written."""
        try:
            self.file.flush()
        except OSError:
            # pytest's console_main and Python itself flush it again, and would end with status 1 or 120.
            with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nowhere:  # noqa: PTH123
                os.dup2(nowhere.fileno(), self.file.fileno())

    def _lose(self, error: OSError) -> None:
        lost, self._lost = self._lost, None
        if lost:
            lost(error)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (whatever the file has)
        return getattr(self.file, name)


def outlive(config: pytest.Config, lost: Callable[[OSError], None]) -> None:
    """Let the run go on if pytest's output cannot be written; call ``lost`` once.

    A log on a full disk, a closed pipe or a terminal that is gone must not end a run of hours. pytest's terminal
    reporter raises what the file raises, which ends the session, and has no hook for it.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if not isinstance(reporter, pytest.TerminalReporter):
        return
    stream = SurvivingStream(reporter._tw._file, lost)
    reporter._tw._file = stream
    config.add_cleanup(stream.close)


def _uncaptured(config: pytest.Config) -> TextIO:
    """Return the original standard output, for writes from any thread at any time.

    pytest's public interface works only in the main thread between two captures. With ``--capture=fd`` the original is
        the descriptor that the capture saved, otherwise it is Python's own.
    """
    capture = config.pluginmanager.get_plugin("capturemanager")
    saved = getattr(getattr(getattr(capture, "_global_capturing", None), "out", None), "targetfd_save", None)
    if isinstance(saved, int):
        return _closed_with(config, os.fdopen(os.dup(saved), "w", encoding="utf-8", errors="backslashreplace"))
    return sys.__stdout__ or _closed_with(config, _nowhere())


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 (closed with the session)


def _closed_with(config: pytest.Config, stream: TextIO) -> TextIO:
    """Close the stream with the session; the garbage collector would raise a ResourceWarning in some test."""

    def close() -> None:
        with contextlib.suppress(OSError):  # it still holds lines of progress that a full disk did not take
            stream.close()

    config.add_cleanup(close)
    return stream
