"""Messages for the live page: sent to every open page, with a backlog for pages that are opened later.

``publish`` never blocks. Every client has a bounded queue; a client that does not read is disconnected, and gets the
backlog again when it reconnects.
"""

from __future__ import annotations

import json
import queue
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

#: Backlog. Points of a bay: the quarter of an hour that the page draws, one a second, and as many loads. Log lines,
#: verdicts and failed verdicts: as many as a person scrolls through.
MOST_POINTS, MOST_LOGGED, MOST_VERDICTS = 1800, 300, 1000
#: Length of a client's queue: some minutes of three bays.
MOST_BEHIND = 1000
#: One message to a browser; the publisher limits the length of its text.
Message = bytes


class Topic(StrEnum):
    """Topic of a message; decides how many of them the backlog retains."""

    #: The run; only the newest is retained.
    RUN = "run"
    #: A bay; only the newest of each bay is retained.
    BAY = "bay"
    #: Start of a load on a bay, and its figures at one moment; together they are the strip chart.
    LOAD = "load"
    STRIP = "strip"
    LOG = "log"
    VERDICT = "verdict"
    #: A failed verdict; retained in a backlog of its own, so that later verdicts do not displace it.
    FAILED = "failed"
    #: Numbers of tests and verdicts of each kind; only the newest is retained.
    TALLY = "tally"
    #: Keep-alive with the time; not retained.
    ALIVE = "alive"
    #: The last message.
    ENDED = "ended"


class Client:
    """An open page."""

    def __init__(self, backlog: list[Message]) -> None:
        self._backlog = backlog
        self._queue: queue.Queue[Message | None] = queue.Queue(MOST_BEHIND)
        #: True if the client does not read its queue.
        self.is_lost = False
        self._has_ended = False

    def put(self, message: Message | None) -> None:
        """Append a message, None for the end; never blocks."""
        try:
            self._queue.put_nowait(message)
        except queue.Full:
            self.is_lost = True

    def next(self, timeout_s: float) -> Message | None:
        """Return the next message (first the whole backlog), ``b""`` after the timeout, None after the end."""
        if self._backlog:
            joined, self._backlog = b"".join(self._backlog), []
            return joined
        if self.is_lost or self._has_ended:
            return None
        try:
            found = self._queue.get(timeout=timeout_s)
        except queue.Empty:
            return b""
        self._has_ended = found is None
        return found


@dataclass(slots=True)
class FeedStrip:
    """Latest figures of a bay, and the load that the oldest of them belong to."""

    _load: Message = b""
    _messages: deque[tuple[Message, bool]] = field(default_factory=deque)

    def add(self, message: Message, *, begins: bool) -> None:
        """Append a message; ``begins`` if it starts a load."""
        self._messages.append((message, begins))
        if len(self._messages) > MOST_POINTS:
            oldest, was_load = self._messages.popleft()
            if was_load:
                self._load = oldest

    def backlog(self) -> list[Message]:
        return [self._load, *(message for message, _ in self._messages)]


@dataclass(slots=True)
class Feed:
    """Backlog and clients of one run's live page; thread-safe."""

    _run: Message = b""
    _bays: dict[str, Message] = field(default_factory=dict)
    _strips: dict[str, FeedStrip] = field(default_factory=dict)
    _log: deque[Message] = field(default_factory=lambda: deque(maxlen=MOST_LOGGED))
    _verdicts: deque[Message] = field(default_factory=lambda: deque(maxlen=MOST_VERDICTS))
    _failed: deque[Message] = field(default_factory=lambda: deque(maxlen=MOST_VERDICTS))
    _tally: Message = b""
    _ended: Message = b""
    _clients: set[Client] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def publish(self, topic: Topic, facts: Mapping[str, object], bay: str = "") -> None:
        """Store a message and send it to every client; ``facts`` are plain JSON data."""
        message = encoded(topic, {"bay": bay, **facts})
        with self._lock:
            self._store(topic, bay, message)
            for client in self._clients:
                client.put(message)
            self._clients = {client for client in self._clients if not client.is_lost}

    def join(self) -> Client:
        """Return a new client, which gets the backlog and then every new message."""
        with self._lock:
            strips = [message for strip in self._strips.values() for message in strip.backlog()]
            judged = [*self._failed, *self._verdicts, self._tally]
            backlog = [self._run, *self._bays.values(), *strips, *self._log, *judged, self._ended]
            client = Client([message for message in backlog if message])
            if self._ended:
                client.put(None)
            else:
                self._clients.add(client)
        return client

    def leave(self, client: Client) -> None:
        with self._lock:
            self._clients.discard(client)

    def end(self, facts: Mapping[str, object]) -> None:
        """Publish the last message and end every client's stream."""
        self.publish(Topic.ENDED, facts)
        with self._lock:
            for client in self._clients:
                client.put(None)

    @property
    def count(self) -> int:
        """Number of connected clients."""
        with self._lock:
            return len(self._clients)

    def _store(self, topic: Topic, bay: str, message: Message) -> None:
        match topic:
            case Topic.RUN:
                self._run = message
            case Topic.BAY:
                self._bays[bay] = message
            case Topic.LOAD | Topic.STRIP:
                self._strips.setdefault(bay, FeedStrip()).add(message, begins=topic is Topic.LOAD)
            case Topic.LOG:
                self._log.append(message)
            case Topic.VERDICT:
                self._verdicts.append(message)
            case Topic.FAILED:
                self._failed.append(message)
            case Topic.TALLY:
                self._tally = message
            case Topic.ALIVE:
                pass
            case Topic.ENDED:
                self._ended = message


def encoded(topic: Topic, facts: Mapping[str, object]) -> Message:
    """Return a server-sent event. JSON contains no line ends, and the page treats everything else as text."""
    text = json.dumps(facts, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return f"event: {topic}\ndata: {text}\n\n".encode("ascii")
