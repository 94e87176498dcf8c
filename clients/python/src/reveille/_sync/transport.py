# Made by generate.py; a change here is lost with the next one.
"""One exchange, and the three things made of it: asking again, waiting, and reading a list to its end."""

from __future__ import annotations

import time
from collections.abc import Generator, Callable
from typing import Any, TypeVar

import httpx

from .._decode import decode
from .._http import Page, Query, answered, base_url, header_value, headers, parameters, unreachable
from .._sse import Event, EventReader
from .._waiting import Clock
from ..errors import ReveilleError, Throttled, Unavailable, WaitTimeout, from_answer
from ..retry import Retry

T = TypeVar("T")

# How long the server is asked to wait at a time. Proxies cut what is silent for a minute.
POLL_S_MAX = 30.0
# Between two polls, in case that a server answers at once however long it was asked to wait.
PAUSE_S = 0.1
# A stream says something every 15 s; one that missed three of those is broken.
SILENCE_S_MAX = 45.0


class Transport:
    def __init__(self, url: str, key: str | None, tenant: str | None, timeout: float, retry: Retry) -> None:
        self.url = base_url(url)
        self.tenant = tenant
        self._timeout_s = timeout
        self._retry = retry
        self._http = httpx.Client(base_url=self.url, headers=headers(key, tenant), timeout=timeout)

    def close(self) -> None:
        self._http.close()

    def call(
        self,
        method: str,
        path: str,
        kind: type[T],
        *,
        query: Query | None = None,
        body: Any = None,
        is_safe: bool = False,
        read_s: float = 0.0,
        deadline: float | None = None,
    ) -> T:
        """One question and its answer. What is safe to ask twice is asked again, if that may help.

        `read_s` is how much longer than usual the answer may take. After `deadline` nothing is asked again.
        """
        tries = 0
        while True:
            try:
                return decode(kind, self._exchange(method, path, query, body, read_s))
            except (Throttled, Unavailable) as error:
                tries += 1
                pause_s = self._retry.pause_s(tries, error.retry_after)
                if not (is_safe or method == "GET") or pause_s is None:
                    raise
                if deadline is not None and time.monotonic() + pause_s > deadline:
                    raise
            Clock.sleep(pause_s)

    def _exchange(self, method: str, path: str, query: Query | None, body: Any, read_s: float) -> Any:
        patience = httpx.Timeout(self._timeout_s, read=self._timeout_s + read_s)
        try:
            response = self._http.request(method, path, params=parameters(query), json=body, timeout=patience)
        except httpx.RequestError as problem:
            error = unreachable(problem)
        else:
            return answered(response)
        # Raised out here, so that the library's own, which has the request in it, is not its context.
        raise error

    def wait(self, path: str, kind: type[T], is_over: Callable[[T], bool], timeout: float | None) -> T:
        """Asks until it is over. The server does the waiting."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left_s = POLL_S_MAX if deadline is None else max(0.0, deadline - time.monotonic())
            poll_s = min(POLL_S_MAX, left_s)
            query = {"wait": f"{round(poll_s * 1000)}ms"}
            found = self.call("GET", path, kind, query=query, read_s=poll_s, deadline=deadline)
            if is_over(found):
                return found
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitTimeout(f"it is not over after {timeout} s", code="wait_timeout")
            Clock.sleep(PAUSE_S)

    def pages(self, path: str, kind: type[Page[T]], query: Query) -> Generator[T]:
        """Every item of a list, page by page."""
        cursor = None
        while True:
            page = self.call("GET", path, kind, query={**query, "cursor": cursor})
            for item in page.items:
                yield item
            cursor = page.next_cursor
            if not cursor:
                return

    def events(self, path: str, query: Query, after: str | None) -> Generator[Event]:
        """What happens, over broken connections too: each time it goes on after what was read last."""
        reader, tries = EventReader(after), 0
        patience = httpx.Timeout(self._timeout_s, read=max(self._timeout_s, SILENCE_S_MAX))
        while True:
            sent = {"Accept": "text/event-stream"}
            if reader.last_id:
                sent["Last-Event-ID"] = header_value("after", reader.last_id)
            error: ReveilleError = Unavailable("the stream has ended", code="stream_ended")
            try:
                asked = self._http.stream("GET", path, params=parameters(query), headers=sent, timeout=patience)
                with asked as response:
                    if not response.is_success:
                        raise from_answer(response.status_code, response.headers, response.read())
                    for piece in response.iter_bytes():
                        for event in reader.feed(piece):
                            tries = 0
                            yield event
            except httpx.RequestError as problem:
                error = unreachable(problem)
            except (Throttled, Unavailable) as problem:
                error = problem
            reader.broken()
            tries += 1
            pause_s = self._retry.pause_s(tries, error.retry_after)
            if pause_s is None:
                raise error
            Clock.sleep(pause_s)
