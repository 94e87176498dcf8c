"""Jobs: ask for one, look at them, change your mind, and ask why."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from .._http import new_idempotency_key, segment
from ..models import Cancelled, DecisionRecord, Explained, JobDetail, JobPage, JobRecord, SubmitReply, SubmitRequest
from ..states import JOB_ENDS
from .transport import AsyncTransport

if TYPE_CHECKING:
    from typing_extensions import Unpack


# Named out here: in the class `list` is the method.
Decisions = list[DecisionRecord]


class AsyncJobs:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def submit(self, **job: Unpack[SubmitRequest]) -> SubmitReply:
        """Asks for a job; `topic` and `context` are most of it. Raises `Denied` if policy says no.

        The same `idempotency_key` gives the same job, so it can be asked for again when the answer was lost. There is
        always one: if none is given, a new one.
        """
        job["idempotency_key"] = job.get("idempotency_key") or new_idempotency_key()
        return await self._transport.call("POST", "/api/v1/jobs", SubmitReply, body=job, is_safe=True)

    async def get(self, job_id: str) -> JobDetail:
        return await self._transport.call("GET", _path(job_id), JobDetail)

    async def wait(self, job_id: str, timeout: float | None = None) -> JobDetail:
        """The job once it has ended, however it did. Raises `WaitTimeout` after `timeout` seconds."""
        return await self._transport.wait(_path(job_id), JobDetail, lambda job: job.state in JOB_ENDS, timeout)

    def list(
        self,
        *,
        state: str | None = None,
        topic: str | None = None,
        tenant: str | None = None,
        team: str | None = None,
        trace_id: str | None = None,
        updated_after: int | None = None,
        updated_before: int | None = None,
        page_size: int | None = None,
    ) -> AsyncGenerator[JobRecord]:
        """All that fit, newest first, fetched as they are read. Times are microseconds since the epoch."""
        query = {
            "state": state,
            "topic": topic,
            "tenant": tenant,
            "team": team,
            "trace_id": trace_id,
            "updated_after": updated_after,
            "updated_before": updated_before,
            "limit": page_size,
        }
        return self._transport.pages("/api/v1/jobs", JobPage, query)

    async def cancel(self, job_id: str) -> Cancelled:
        """If it has ended already, `reason` says so."""
        return await self._transport.call("POST", _path(job_id) + "/cancel", Cancelled)

    async def explain(self, job_id: str) -> Explained:
        """Why it is where it is, since when, and what would help."""
        return await self._transport.call("GET", _path(job_id) + "/explain", Explained)

    async def decisions(self, job_id: str) -> Decisions:
        """What policy said of it, with what it knew."""
        return await self._transport.call("GET", _path(job_id) + "/decisions", Decisions)

    async def remediate(self, job_id: str, remediation_id: str) -> SubmitReply:
        """Asks for it again in one of the ways that the last decision offered."""
        body = {"remediation_id": remediation_id}
        return await self._transport.call("POST", _path(job_id) + "/remediate", SubmitReply, body=body)


def _path(job_id: str) -> str:
    return "/api/v1/jobs/" + segment("job_id", job_id)
