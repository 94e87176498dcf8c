"""What an agent says of itself when it beats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypedDict


class BeatChange(TypedDict, total=False):
    """What may change from one beat to the next."""

    dispatch_name: str | None
    status: Literal["idle", "busy", "offline"]
    active_sessions: int
    version: str | None
    project: str
    region: str | None
    host: str | None
    started_at: float | None
    """Seconds since the epoch."""
    memory_rss_bytes: int | None
    memory_total_bytes: int | None
    cpu_pct: float | None
    """From 0 to 100."""


class _BeatNeeded(TypedDict):
    agent_id: str
    agent_name: str


class Beat(_BeatNeeded, BeatChange):
    """A beat: who it is, and how it is."""


@dataclass(frozen=True)
class Heard:
    """`next_beat_s` is how long the agent may be silent before its next beat is due."""

    next_beat_s: int
