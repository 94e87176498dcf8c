# Made by generate.py; a change here is lost with the next one.
"""Dead letters: jobs that came to nothing, kept until somebody retries or drops them."""

from __future__ import annotations

from collections.abc import Generator

from .._http import segment
from ..models import DeadLetter, DeadLetterPage, RetriedJob
from .transport import Transport


class DeadLetters:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self, *, topic: str | None = None, reason_code: str | None = None, page_size: int | None = None
    ) -> Generator[DeadLetter]:
        """All that fit, newest first, fetched as they are read."""
        query = {"topic": topic, "reason_code": reason_code, "limit": page_size}
        return self._transport.pages("/api/v1/dlq/page", DeadLetterPage, query)

    def get(self, job_id: str) -> DeadLetter:
        return self._transport.call("GET", _path(job_id), DeadLetter)

    def retry(self, job_id: str) -> RetriedJob:
        """Makes a new job of it, which policy judges like any other."""
        return self._transport.call("POST", _path(job_id) + "/retry", RetriedJob)

    def delete(self, job_id: str) -> None:
        self._transport.call("DELETE", _path(job_id), object)


def _path(job_id: str) -> str:
    return "/api/v1/dlq/" + segment("job_id", job_id)
