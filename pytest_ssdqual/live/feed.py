"""What the live page is told: kept so far as somebody who opens it later needs it, and handed to all who watch.

The rule of the module: ``publish`` never waits. Every client has a queue with an end; one that does not read loses
its place and is told to come back, which gives it the backlog again.
"""

from __future__ import annotations

import json
import queue
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

#: Of each bay: the quarter of an hour that the page draws, at one a second, and as many loads. Of the log and of the
#: verdicts, and of the broken promises once more: what a person scrolls through.
MOST_POINTS, MOST_LOGGED, MOST_VERDICTS = 1800, 300, 1000
#: Messages that a client may be behind: some minutes of three bays.
MOST_BEHIND = 1000
#: One message to a browser; text in it is cut by whoever publishes.
Message = bytes


class Topic(StrEnum):
    """What a message is about, and with that what is kept of it."""

    #: About the run, the newest one.
    RUN = "run"
    #: About a bay, the newest one of each.
    BAY = "bay"
    #: That a load begins on a bay, and its figures at a moment; together they are its strip.
    LOAD = "load"
    STRIP = "strip"
    LOG = "log"
    VERDICT = "verdict"
    #: As a verdict, and kept when a thousand others have come since.
    BROKEN = "broken"
    #: How many tests and verdicts there were of each kind, the newest one.
    TALLY = "tally"
    #: What time it is: nothing else was to be said. Not kept.
    ALIVE = "alive"
    #: The last one.
    ENDED = "ended"


class Client:
    """One page that is open."""

    def __init__(self, backlog: list[Message]) -> None:
        self._backlog = backlog
        self._queue: queue.Queue[Message | None] = queue.Queue(MOST_BEHIND)
        #: It does not read what it is sent.
        self.is_lost = False
        self._has_ended = False

    def put(self, message: Message | None) -> None:
        """None: there will be no more. Never waits."""
        try:
            self._queue.put_nowait(message)
        except queue.Full:
            self.is_lost = True

    def next(self, timeout_s: float) -> Message | None:
        """The next message, all of the backlog as the first; ``b""`` if none comes in time; None if none will come."""
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
    """The last figures of a bay, and the load that the first of them belong to, however long ago it began."""

    _load: Message = b""
    _messages: deque[tuple[Message, bool]] = field(default_factory=deque)

    def add(self, message: Message, *, begins: bool) -> None:
        """``begins``: it tells of a load."""
        self._messages.append((message, begins))
        if len(self._messages) > MOST_POINTS:
            oldest, was_load = self._messages.popleft()
            if was_load:
                self._load = oldest

    def kept(self) -> list[Message]:
        return [self._load, *(message for message, _ in self._messages)]


@dataclass(slots=True)
class Feed:
    """See the module. Threads may share it."""

    _run: Message = b""
    _bays: dict[str, Message] = field(default_factory=dict)
    _strips: dict[str, FeedStrip] = field(default_factory=dict)
    _log: deque[Message] = field(default_factory=lambda: deque(maxlen=MOST_LOGGED))
    _verdicts: deque[Message] = field(default_factory=lambda: deque(maxlen=MOST_VERDICTS))
    _broken: deque[Message] = field(default_factory=lambda: deque(maxlen=MOST_VERDICTS))
    _tally: Message = b""
    _ended: Message = b""
    _clients: set[Client] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def publish(self, topic: Topic, facts: Mapping[str, object], bay: str = "") -> None:
        """Keep it and hand it on; ``facts`` are plain JSON data."""
        message = encoded(topic, {"bay": bay, **facts})
        with self._lock:
            self._keep(topic, bay, message)
            for client in self._clients:
                client.put(message)
            self._clients = {client for client in self._clients if not client.is_lost}

    def join(self) -> Client:
        """A client that is given all that is kept, and then all that comes."""
        with self._lock:
            strips = [message for strip in self._strips.values() for message in strip.kept()]
            judged = [*self._broken, *self._verdicts, self._tally]
            kept = [self._run, *self._bays.values(), *strips, *self._log, *judged, self._ended]
            client = Client([message for message in kept if message])
            if self._ended:
                client.put(None)
            else:
                self._clients.add(client)
        return client

    def leave(self, client: Client) -> None:
        with self._lock:
            self._clients.discard(client)

    def end(self, facts: Mapping[str, object]) -> None:
        """The last message: nothing comes after it."""
        self.publish(Topic.ENDED, facts)
        with self._lock:
            for client in self._clients:
                client.put(None)

    @property
    def count(self) -> int:
        """Clients that are there now."""
        with self._lock:
            return len(self._clients)

    def _keep(self, topic: Topic, bay: str, message: Message) -> None:
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
            case Topic.BROKEN:
                self._broken.append(message)
            case Topic.TALLY:
                self._tally = message
            case Topic.ALIVE:
                pass
            case Topic.ENDED:
                self._ended = message


def encoded(topic: Topic, facts: Mapping[str, object]) -> Message:
    """A server-sent event. JSON leaves no line ends in it, and everything else is for the page to take as text."""
    text = json.dumps(facts, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return f"event: {topic}\ndata: {text}\n\n".encode("ascii")
