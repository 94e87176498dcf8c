"""The client itself: where the server is, who asks, and the nouns."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from types import TracebackType
from typing import Any, TypeVar

from .._http import Query
from .._sse import Event
from ..retry import Retry
from .approvals import AsyncApprovals
from .dead_letters import AsyncDeadLetters
from .jobs import AsyncJobs
from .presence import AsyncPresence
from .quarantine import AsyncQuarantine
from .runs import AsyncRuns
from .transport import AsyncTransport
from .workers import AsyncWorkers
from .workflows import AsyncWorkflows

T = TypeVar("T")
TIMEOUT_S = 30.0


class AsyncClient:
    """A Reveille server.

    `tenant` is for operators that act for one; every other key has its own. `timeout` is how many seconds one exchange
    may take, beyond what the server was asked to wait. Close it, or use it as a context manager.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        tenant: str | None = None,
        timeout: float = TIMEOUT_S,
        retry: Retry | None = None,
    ) -> None:
        self._transport = AsyncTransport(url, key, tenant, timeout, retry or Retry())
        self.jobs = AsyncJobs(self._transport)
        self.dead_letters = AsyncDeadLetters(self._transport)
        self.approvals = AsyncApprovals(self._transport)
        self.quarantine = AsyncQuarantine(self._transport)
        self.workers = AsyncWorkers(self._transport)
        self.workflows = AsyncWorkflows(self._transport)
        self.runs = AsyncRuns(self._transport)
        self.presence = AsyncPresence(self._transport)

    def events(
        self,
        *,
        kinds: str | Sequence[str] | None = None,
        worker: str | None = None,
        job: str | None = None,
        contract: str | None = None,
        tenant: str | None = None,
        after: str | None = None,
    ) -> AsyncGenerator[Event]:
        """What happens from now on, or after the event with the id `after`.

        `kinds` are of worker, job, run and workspace. A broken connection is made again and nothing is missed; if the
        server no longer has what came between, there is a `snapshot`. It raises when it cannot come back.
        """
        query = {
            "kinds": kinds if kinds is None or isinstance(kinds, str) else ",".join(kinds),
            "worker": worker,
            "job": job,
            "contract": contract,
            "tenant": tenant,
        }
        return self._transport.events("/api/v1/events", query, after)

    async def call(self, method: str, path: str, kind: type[T], *, query: Query | None = None, body: Any = None) -> T:
        """Whatever else the server can do, such as `call("GET", "/api/v1/pools", models.PoolList)`.

        `kind` is a model, or `object` for the JSON as it is. Only a GET is asked again.
        """
        return await self._transport.call(method, path, kind, query=query, body=body)

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"AsyncClient({self._transport.url!r}, tenant={self._transport.tenant!r})"
