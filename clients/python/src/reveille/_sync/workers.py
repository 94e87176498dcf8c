# Made by generate.py; a change here is lost with the next one.
"""Workers: who is there, and who is to get no more jobs."""

from __future__ import annotations

from collections.abc import Generator

from .._http import segment
from ..models import Drained, Undrained, Worker, WorkerPage
from .transport import Transport


class Workers:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, contract: str | None = None, page_size: int | None = None) -> Generator[Worker]:
        """The whole fleet, or the members of a contract: cap, voicegateway or molecule."""
        return self._transport.pages("/api/v1/workers", WorkerPage, {"contract": contract, "limit": page_size})

    def get(self, worker_id: str) -> Worker:
        return self._transport.call("GET", _path(worker_id), Worker)

    def drain(self, worker_id: str, *, timeout_seconds: int | None = None) -> Drained:
        """Gives it no more jobs. Those it has may stay for so long; then they go elsewhere."""
        body = {} if timeout_seconds is None else {"timeout_seconds": timeout_seconds}
        return self._transport.call("POST", _path(worker_id) + "/drain", Drained, body=body)

    def undrain(self, worker_id: str) -> Undrained:
        return self._transport.call("POST", _path(worker_id) + "/undrain", Undrained)


def _path(worker_id: str) -> str:
    return "/api/v1/workers/" + segment("worker_id", worker_id)
