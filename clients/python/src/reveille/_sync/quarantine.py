# Made by generate.py; a change here is lost with the next one.
"""Quarantine: results that output policy holds back."""

from __future__ import annotations

from collections.abc import Generator

from .._http import segment
from ..models import Held, HeldPage, ResolvedReply
from .transport import Transport


class Quarantine:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, page_size: int | None = None) -> Generator[Held]:
        """All of it, newest first, fetched as it is read."""
        return self._transport.pages("/api/v1/quarantine", HeldPage, {"limit": page_size})

    def get(self, job_id: str) -> Held:
        return self._transport.call("GET", _path(job_id), Held)

    def release(self, job_id: str, *, reason: str = "", note: str = "") -> ResolvedReply:
        """Makes the result readable; the job is not run again. Whoever asked for the job may not."""
        body = {"reason": reason, "note": note}
        return self._transport.call("POST", _path(job_id) + "/release", ResolvedReply, body=body)

    def discard(self, job_id: str, *, reason: str = "", note: str = "") -> ResolvedReply:
        """Throws the result away."""
        body = {"reason": reason, "note": note}
        return self._transport.call("POST", _path(job_id) + "/discard", ResolvedReply, body=body)


def _path(job_id: str) -> str:
    return "/api/v1/quarantine/" + segment("job_id", job_id)
