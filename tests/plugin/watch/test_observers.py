from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest_ssdqual.plugin.watch.observers import Observers
from pytest_ssdqual.qual.progress_events import Begun, News
from pytest_ssdqual.report.terminal.progress_spool import SpoolWriter


class Config:
    """That of a session with pytest-xdist and without a terminal."""

    pluginmanager = SimpleNamespace(get_plugin=lambda name: None, hasplugin=lambda name: name == "dsession")

    def __init__(self, ending: ExitStack) -> None:
        self.add_cleanup = ending.callback


def test_progress_of_a_killed_session_is_not_shown(tmp_path: Path) -> None:
    """A killed controller removes no log, and the first worker of the next session has the same name."""
    killed = SpoolWriter(tmp_path, "gw0", clock=lambda: 0.0)
    for number in range(20):
        killed.write(Begun(f"step {number} of the killed session", 3600))
    shown: list[News] = []
    page = SimpleNamespace(take=lambda event, *more: shown.append(event), end=lambda *given: None)
    run: Any = SimpleNamespace(name="", journal=SimpleNamespace(path=tmp_path))
    feed: Any = page
    with ExitStack() as ending:
        config: Any = Config(ending)
        observers = Observers(config, [run], feed, None)
        ending.callback(observers.ended, 0)
        observers.poll()
        SpoolWriter(tmp_path, "gw0").write(Begun("fill", 60))
        observers.poll()
    assert [event for event in shown if isinstance(event, Begun)] == [Begun("fill", 60)]
