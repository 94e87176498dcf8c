# Made by generate.py; a change here is lost with the next one.
"""Presence: agents that say that they are there, once or for as long as they run."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from .._waiting import Background, Bell
from ..beat import Beat, BeatChange, Heard
from ..errors import BadRequest, ReveilleError
from ..models import Taken
from .transport import Transport

if TYPE_CHECKING:
    from typing_extensions import Unpack

LOG = logging.getLogger("reveille")


class Presence:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def beat(self, **beat: Unpack[Beat]) -> Heard:
        """One beat of one agent, as VoiceGateway's agents send it."""
        if self._transport.tenant is None:
            return self._transport.call("POST", "/v1/agents/heartbeat", Heard, body=beat, is_safe=True)
        # That path knows only the key's own tenant.
        taken = self.beats([beat])
        for refused in taken.rejected:
            raise BadRequest(refused.error, code="invalid_request", more={"field": refused.field})
        return Heard(taken.next_beat_s)

    def beats(self, beats: Sequence[Beat]) -> Taken:
        """Beats of many agents at once, at most 1,000. Each is taken or refused by itself."""
        body = {"beats": list(beats)}
        return self._transport.call("POST", "/api/v1/presence", Taken, body=body, is_safe=True)

    def register(self, **beat: Unpack[Beat]) -> Member:
        """An agent that beats by itself, as often as the server wants, from `with` to its end."""
        return Member(self, beat)


class Member:
    """An agent that is there. The first beat raises if it is refused; later ones are tried until one is heard."""

    def __init__(self, presence: Presence, beat: Beat) -> None:
        self._presence = presence
        self._beat = beat
        self._next_s = 0.0
        self._is_closing = False
        self._bell = Bell()
        self._background: Background | None = None
        self.last_error: ReveilleError | None = None
        """Why the last beat was not heard; nothing if it was."""

    def update(self, **changes: Unpack[BeatChange]) -> None:
        """What is said from now on, starting with a beat at once."""
        # A new one, not the old one changed: a beat may be on its way.
        self._beat = {**self._beat, **changes}
        self._bell.ring()

    def __enter__(self) -> Member:
        self._next_s = (self._presence.beat(**self._beat)).next_beat_s
        self._background = Background(self._keep_beating, f"reveille beats of {self._beat['agent_id']}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """The last beat says offline, so that nobody has to wait for it to be missed."""
        self._is_closing = True
        self._bell.ring()
        if self._background is not None:
            self._background.join()
        self._beat = {**self._beat, "status": "offline", "active_sessions": 0}
        self._say()

    def _keep_beating(self) -> None:
        while True:
            self._bell.wait(self._next_s)
            if self._is_closing:
                return
            self._say()

    def _say(self) -> None:
        try:
            self._next_s = (self._presence.beat(**self._beat)).next_beat_s
            self.last_error = None
        except ReveilleError as error:
            self.last_error = error
            LOG.warning("a beat of %s was not heard: %s", self._beat["agent_id"], error)
