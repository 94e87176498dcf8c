# Made by generate.py; a change here is lost with the next one.
"""The client itself: where the server is, who asks, and the nouns."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from types import TracebackType
from typing import Any, TypeVar

from .._http import Query
from .._sse import Event
from ..retry import Retry
from .approvals import Approvals
from .dead_letters import DeadLetters
from .jobs import Jobs
from .presence import Presence
from .quarantine import Quarantine
from .runs import Runs
from .transport import Transport
from .workers import Workers
from .workflows import Workflows

T = TypeVar("T")
TIMEOUT_S = 30.0


class Client:
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
        self._transport = Transport(url, key, tenant, timeout, retry or Retry())
        self.jobs = Jobs(self._transport)
        self.dead_letters = DeadLetters(self._transport)
        self.approvals = Approvals(self._transport)
        self.quarantine = Quarantine(self._transport)
        self.workers = Workers(self._transport)
        self.workflows = Workflows(self._transport)
        self.runs = Runs(self._transport)
        self.presence = Presence(self._transport)

    def events(
        self,
        *,
        kinds: str | Sequence[str] | None = None,
        worker: str | None = None,
        job: str | None = None,
        contract: str | None = None,
        tenant: str | None = None,
        after: str | None = None,
    ) -> Generator[Event]:
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

    def call(self, method: str, path: str, kind: type[T], *, query: Query | None = None, body: Any = None) -> T:
        """Whatever else the server can do, such as `call("GET", "/api/v1/pools", models.PoolList)`.

        `kind` is a model, or `object` for the JSON as it is. Only a GET is asked again.
        """
        return self._transport.call(method, path, kind, query=query, body=body)

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._transport.url!r}, tenant={self._transport.tenant!r})"
