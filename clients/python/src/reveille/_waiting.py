"""Waiting and working in the background: once with threads, once with tasks.

Everything else is written once, for asyncio, and the rest is made from it. These pairs have the same methods, so that
it reads the same.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any


class Clock:
    @staticmethod
    def sleep(seconds: float) -> None:
        time.sleep(seconds)


class AsyncClock:
    @staticmethod
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds)


class Bell:
    """Rings once for whoever waits, or for whoever waits next."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def ring(self) -> None:
        self._event.set()

    def wait(self, seconds: float) -> None:
        """Until it rings, or for so long."""
        self._event.wait(seconds)
        self._event.clear()


class AsyncBell:
    def __init__(self) -> None:
        self._event = asyncio.Event()

    def ring(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> None:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._event.wait(), seconds)
        self._event.clear()


class Background:
    """Something that goes on by itself. It does not keep the program alive."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        self._thread = threading.Thread(target=work, name=name, daemon=True)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()


class AsyncBackground:
    def __init__(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        self._task = asyncio.create_task(work(), name=name)

    async def join(self) -> None:
        await self._task
