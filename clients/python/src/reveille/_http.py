"""What both clients need to know of HTTP: how a question is put, and what an answer means."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import httpx

from .errors import ReveilleError, Unavailable, UnexpectedAnswer, from_answer

VERSION = "0.1.0"

Query = Mapping[str, "str | int | bool | None"]
T_co = TypeVar("T_co", covariant=True)


class Page(Protocol[T_co]):
    """A part of a list, and how to ask for the next one."""

    @property
    def items(self) -> Sequence[T_co]: ...

    @property
    def next_cursor(self) -> str | None: ...


def base_url(url: str) -> str:
    """The address without the slash at its end. One with a password in it is refused, and not repeated."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as problem:
        raise ValueError(f"url: {problem}") from None
    if parsed.userinfo:
        raise ValueError("url: has a name or password in it; the key is an argument of its own")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError("url: is not an address such as http://127.0.0.1:8080")
    return str(parsed).rstrip("/")


def headers(key: str | None, tenant: str | None) -> dict[str, str]:
    """The key goes as a bearer: that is the header that every library and log knows to leave out."""
    sent = {"User-Agent": f"reveille-python/{VERSION}", "Accept": "application/json"}
    if key is not None:
        sent["Authorization"] = "Bearer " + header_value("key", key.strip())
    if tenant is not None:
        sent["X-Tenant-ID"] = header_value("tenant", tenant)
    return sent


def header_value(name: str, value: str) -> str:
    """Checked here, because what a library says of a bad header has the header in it."""
    if not value or not value.isascii() or not value.isprintable():
        raise ValueError(f"{name}: is empty, or has signs in it that no header can have")
    return value


def segment(name: str, value: str) -> str:
    """A part of a path. What has a meaning of its own in a path would lead elsewhere."""
    if value in ("", ".", ".."):
        raise ValueError(f"{name}: {value!r} cannot be one")
    return quote(value, safe="")


def parameters(query: Query | None) -> dict[str, str]:
    """What is said, without what is not."""
    said = {name: value for name, value in (query or {}).items() if value is not None}
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in said.items()}


def new_idempotency_key() -> str:
    return uuid.uuid4().hex


def unreachable(problem: httpx.RequestError) -> ReveilleError:
    """In words only: what the library raised has the request in it, and that has the key."""
    words = str(problem) or "no more is known"
    is_late = isinstance(problem, httpx.TimeoutException)
    return Unavailable(f"{type(problem).__name__}: {words}", code="timeout" if is_late else "unreachable")


def answered(response: httpx.Response) -> Any:
    """The JSON of an answer, nothing if it is empty, or the error that it stands for."""
    if not response.is_success:
        raise from_answer(response.status_code, response.headers, response.content)
    if not response.content:
        return None
    try:
        return response.json()
    except ValueError:
        status = response.status_code
        raise UnexpectedAnswer("the answer is not JSON", code="unexpected_answer", status=status) from None
