"""Receivers of notifications."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import apprise  # noqa: F401 (pytester forgets what is first imported inside)
import pytest
from support.fakes.webhook import Webhook


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with Webhook() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()
