"""Server-sent events out of the bytes of an answer.

Lines end with LF or CRLF and with nothing else: a text in an event may have any other sign that somebody calls a line
break, and libraries that split by those tear it apart.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .errors import UnexpectedAnswer

# A snapshot of a large fleet is a few megabytes.
EVENT_LEN_MAX = 64 * 1024 * 1024


@dataclass(frozen=True)
class Event:
    """Something that happened. Whoever comes back with `id` reads on after it.

    `name` is `snapshot`, `worker.<change>`, `job.updated`, `run.updated` or `workspace.<name>`. A `snapshot` says how
    things stand, and that what happened before will not be told.
    """

    id: str
    name: str
    data: Any


class EventReader:
    """`last_id` is where to go on after a break. A comment that brings nothing but a position moves it, too."""

    def __init__(self, last_id: str | None) -> None:
        self.last_id = last_id
        self._begun = b""
        self._len = 0
        self._id: str | None = None
        self._name = "message"
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[Event]:
        """The events that this piece ends."""
        *lines, self._begun = (self._begun + piece).split(b"\n")
        self._len += len(piece)
        if self._len > EVENT_LEN_MAX:
            raise _unexpected(f"an event is longer than {EVENT_LEN_MAX} bytes")
        events = [self._line(line.removesuffix(b"\r").decode(errors="replace")) for line in lines]
        return [event for event in events if event is not None]

    def broken(self) -> None:
        """The connection is gone, and with it what was said by halves."""
        self._begun = b""
        self._forget()

    def _line(self, line: str) -> Event | None:
        if line == "":
            return self._ended()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id":
            self._id = value
        return None

    def _ended(self) -> Event | None:
        if self._id is not None:
            self.last_id = self._id
        name, data = self._name, "\n".join(self._data)
        self._forget()
        if not data:
            return None
        try:
            return Event(self.last_id or "", name, json.loads(data))
        except ValueError:
            raise _unexpected(f"the data of {name} is not JSON") from None

    def _forget(self) -> None:
        self._len, self._id, self._name, self._data = 0, None, "message", []


def _unexpected(words: str) -> UnexpectedAnswer:
    return UnexpectedAnswer(words, code="unexpected_answer")
