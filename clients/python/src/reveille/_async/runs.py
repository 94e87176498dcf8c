"""Runs of workflows: started, watched, cancelled, repeated."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from .._http import new_idempotency_key, segment
from ..models import RunDetail, RunPage, RunRecord, StartedReply, TimelineLine
from ..states import RUN_ENDS
from .transport import AsyncTransport

# Named out here: in the class `list` is the method.
Lines = list[TimelineLine]


class AsyncRuns:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def start(
        self,
        workflow_id: str,
        input: Any = None,
        *,
        idempotency_key: str | None = None,
        team_id: str | None = None,
    ) -> StartedReply:
        """The same `idempotency_key` gives the same run. There is always one: if none is given, a new one."""
        path = f"/api/v1/workflows/{segment('workflow_id', workflow_id)}/runs"
        key = idempotency_key or new_idempotency_key()
        body = {"input": {} if input is None else input, "idempotency_key": key}
        query = {"team_id": team_id}
        return await self._transport.call("POST", path, StartedReply, query=query, body=body, is_safe=True)

    async def get(self, run_id: str) -> RunDetail:
        return await self._transport.call("GET", _path(run_id), RunDetail)

    async def wait(self, run_id: str, timeout: float | None = None) -> RunDetail:
        """The run once it has ended, however it did. Raises `WaitTimeout` after `timeout` seconds."""
        return await self._transport.wait(_path(run_id), RunDetail, lambda run: run.status in RUN_ENDS, timeout)

    def list(
        self,
        *,
        status: str | None = None,
        workflow_id: str | None = None,
        org_id: str | None = None,
        team_id: str | None = None,
        updated_after: int | None = None,
        updated_before: int | None = None,
        page_size: int | None = None,
    ) -> AsyncGenerator[RunRecord]:
        """All that fit, newest first, fetched as they are read. Times are microseconds since the epoch."""
        query = {
            "status": status,
            "workflow_id": workflow_id,
            "org_id": org_id,
            "team_id": team_id,
            "updated_after": updated_after,
            "updated_before": updated_before,
            "limit": page_size,
        }
        return self._transport.pages("/api/v1/workflow-runs", RunPage, query)

    async def timeline(
        self, run_id: str, *, after: int = 0, page_size: int | None = None
    ) -> AsyncGenerator[TimelineLine]:
        """What happened in it, from the line after `after` on, fetched as it is read."""
        while True:
            query = {"after": after, "limit": page_size}
            page = await self._transport.call("GET", _path(run_id) + "/timeline", Lines, query=query)
            for line in page:
                yield line
            if not page:
                return
            after = page[-1].n

    async def cancel(self, run_id: str, *, reason: str = "") -> None:
        """And the jobs and runs that it has under way. A `Conflict` if it is over."""
        await self._transport.call("POST", _path(run_id) + "/cancel", object, body={"reason": reason})

    async def rerun(self, run_id: str, *, from_step: str | None = None) -> StartedReply:
        """A new run that begins with this step, or with the first; what comes before it is taken over."""
        body = {"from_step": from_step}
        return await self._transport.call("POST", _path(run_id) + "/rerun", StartedReply, body=body)

    async def delete(self, run_id: str) -> None:
        """A `Conflict` if it is not over."""
        await self._transport.call("DELETE", _path(run_id), object)


def _path(run_id: str) -> str:
    return "/api/v1/workflow-runs/" + segment("run_id", run_id)
