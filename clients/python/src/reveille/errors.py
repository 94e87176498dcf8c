"""What can go wrong, as classes for those who tell it apart.

Nothing here keeps the request: it has the key in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class ReveilleError(Exception):
    """The server, or the way to it, did not do what was asked.

    `status` is the HTTP status, or nothing if there was no answer. `code` is the server's own word for it and stays
    the same between versions; `message` is for people. `more` has every other field of the answer, such as `field`.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int | None = None,
        more: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.more = dict(more or {})
        self.retry_after = retry_after
        """Seconds after which to ask again, if the server said so."""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}(status={self.status}, code={self.code!r}, message={self.message!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """So that it survives the way from one process to another."""
        return (_again, (type(self), self.message, self.code, self.status, self.more, self.retry_after))


class BadRequest(ReveilleError):
    """The server cannot make sense of it. `field` says of what, if it is one field."""

    @property
    def field(self) -> str | None:
        named = self.more.get("field")
        return named if isinstance(named, str) else None


class Unauthorized(ReveilleError):
    """There is no key, or it is wrong, expired or revoked."""


class Forbidden(ReveilleError):
    """This key may not do that."""


class Denied(ReveilleError):
    """Policy says no. `message` is the rule's reason; the job is kept, with the decision."""

    @property
    def job_id(self) -> str | None:
        named = self.more.get("job_id")
        return named if isinstance(named, str) else None


class NotFound(ReveilleError):
    """There is none of that name, or it is another tenant's."""


class Conflict(ReveilleError):
    """It is not in a state in which that could be done."""


class Throttled(ReveilleError):
    """Too much at once. `retry_after` says when to come back."""


class Unavailable(ReveilleError):
    """Nobody can say whether it was done: the server cannot now, or cannot be reached."""


class WaitTimeout(ReveilleError, TimeoutError):
    """It was not over when the time to wait was. Nothing has happened to it."""


class UnexpectedAnswer(ReveilleError):
    """What came back is not what this client knows of Reveille."""


def from_answer(status: int, headers: Mapping[str, str], body: bytes) -> ReveilleError:
    """The error that an answer stands for. `headers` has names in small letters, or does not mind."""
    said = _object(body)
    # VoiceGateway's paths say `detail`, all others `error` and `code`.
    message = said.pop("error", None) or said.pop("detail", None)
    code = said.pop("code", None)
    said.pop("status", None)
    if not isinstance(message, str):
        message = f"the server answered {status}"
    if not isinstance(code, str):
        code = CODES.get(status, "unexpected_answer")
    kind = _kind(status, code)
    return kind(message, code=code, status=status, more=said, retry_after=_seconds(headers.get("retry-after")))


KINDS: Mapping[int, type[ReveilleError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: BadRequest,
    422: BadRequest,
    429: Throttled,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}

CODES: Mapping[int, str] = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    409: "conflict",
    413: "body_too_large",
    422: "invalid_request",
    429: "rate_limited",
    502: "unavailable",
    503: "unavailable",
    504: "unavailable",
}


def _kind(status: int, code: str) -> type[ReveilleError]:
    if code == "safety_denied":
        return Denied
    return KINDS.get(status, UnexpectedAnswer if status < 400 else ReveilleError)


def _object(body: bytes) -> dict[str, Any]:
    try:
        said = json.loads(body)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


def _seconds(text: str | None) -> float | None:
    """Reveille says seconds. A proxy may say a date, which is as good as nothing to a clock that may be wrong."""
    try:
        return max(0.0, float(int(text))) if text is not None else None
    except ValueError:
        return None


def _again(
    kind: type[ReveilleError],
    message: str,
    code: str,
    status: int | None,
    more: Mapping[str, Any],
    retry_after: float | None,
) -> ReveilleError:
    return kind(message, code=code, status=status, more=more, retry_after=retry_after)
