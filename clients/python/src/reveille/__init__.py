"""A client for Reveille: `Client` for plain code, `AsyncClient` for asyncio. Both have the same methods."""

from . import errors, models
from ._async.client import AsyncClient
from ._async.presence import AsyncMember
from ._http import VERSION as __version__
from ._sse import Event
from ._sync.client import Client
from ._sync.presence import Member
from .beat import Beat, BeatChange, Heard
from .errors import (
    BadRequest,
    Conflict,
    Denied,
    Forbidden,
    NotFound,
    ReveilleError,
    Throttled,
    Unauthorized,
    Unavailable,
    UnexpectedAnswer,
    WaitTimeout,
)
from .retry import Retry
from .states import JOB_ENDS, RUN_ENDS

__all__ = [
    "JOB_ENDS",
    "RUN_ENDS",
    "AsyncClient",
    "AsyncMember",
    "BadRequest",
    "Beat",
    "BeatChange",
    "Client",
    "Conflict",
    "Denied",
    "Event",
    "Forbidden",
    "Heard",
    "Member",
    "NotFound",
    "Retry",
    "ReveilleError",
    "Throttled",
    "Unauthorized",
    "Unavailable",
    "UnexpectedAnswer",
    "WaitTimeout",
    "__version__",
    "errors",
    "models",
]
