"""Writes the progress line to pytest's terminal, past its capturing."""

from __future__ import annotations

import os
import sys
from typing import TextIO

import pytest

from pytest_ssdqual.report.terminal.progress import Progress


def on_terminal(config: pytest.Config) -> Progress:
    """Return the progress line of this run; without a terminal reporter, or with ``-q``, it writes nothing."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or config.get_verbosity() < 0:
        return Progress(_closed_with(config, _nowhere()), terminal=False)
    stream = _uncaptured(config)
    # Per cent of the tests would contradict the time left: a test takes nothing or half an hour.
    if getattr(reporter, "_show_progress_info", None) == "progress":
        reporter._show_progress_info = "count"

    def fresh_line() -> None:
        # reporter.ensure_newline() would write into the captured output of the test.
        # Under xdist there is no file name before the dots.
        if reporter.currentfspath or reporter._tw.width_of_current_line:
            stream.write("\n")
            reporter.currentfspath, reporter._tw._current_line = None, ""

    def width() -> int:
        try:
            return os.get_terminal_size(stream.fileno()).columns or reporter._tw.fullwidth
        except (OSError, ValueError):
            return int(reporter._tw.fullwidth)

    def height() -> int:
        try:
            return os.get_terminal_size(stream.fileno()).lines or 24
        except (OSError, ValueError):
            return 24

    # A dumb terminal cannot erase a line.
    can_erase = stream.isatty() and os.environ.get("TERM") != "dumb"
    return Progress(stream, terminal=can_erase, width=width, height=height, fresh_line=fresh_line)


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
    config.add_cleanup(stream.close)
    return stream
