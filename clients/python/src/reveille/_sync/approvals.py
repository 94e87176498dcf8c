# Made by generate.py; a change here is lost with the next one.
"""Approvals: what waits for a person, and the person's answer."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

from .._http import segment
from ..models import Approval, ApprovalContext, ApprovalPage, Approved, Rejected, Resolution
from .transport import Transport

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Approvals:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, include_resolved: bool = False, page_size: int | None = None) -> Generator[Approval]:
        """All that wait, newest first, fetched as they are read."""
        query = {"include_resolved": include_resolved, "limit": page_size}
        return self._transport.pages("/api/v1/approvals", ApprovalPage, query)

    def context(self, job_id: str) -> ApprovalContext:
        """What a person should know before they decide."""
        return self._transport.call("GET", _path(job_id) + "/context", ApprovalContext)

    def approve(self, job_id: str, **answer: Unpack[Resolution]) -> Approved:
        """Lets it go on. With `job_hash` only if it is still the request that was looked at."""
        return self._transport.call("POST", _path(job_id) + "/approve", Approved, body=answer)

    def reject(self, job_id: str, **answer: Unpack[Resolution]) -> Rejected:
        return self._transport.call("POST", _path(job_id) + "/reject", Rejected, body=answer)


def _path(job_id: str) -> str:
    return "/api/v1/approvals/" + segment("job_id", job_id)
