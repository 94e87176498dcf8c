"""When to ask again, and how long to wait before.

Only what is safe to ask twice is asked again: reading, beats, and what has an idempotency key.
"""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True)
class Retry:
    """How patient a client is with a server that cannot be reached, or says that it cannot now.

    The pause doubles from `first_s` to `pause_s_max`, less up to half of it by chance, so that clients that were cut
    off together do not come back together. `Retry(tries_max=1)` never asks again.
    """

    tries_max: int = 6
    first_s: float = 0.25
    pause_s_max: float = 10.0

    def __post_init__(self) -> None:
        if self.tries_max < 1 or self.first_s < 0 or self.pause_s_max < 0:
            raise ValueError("tries_max is at least 1, and no pause is shorter than nothing")

    def pause_s(self, tries: int, retry_after: float | None) -> float | None:
        """Seconds to wait after this many tries that failed, or nothing: give up.

        Never sooner than the server said. What would take longer than `pause_s_max` is for the caller to decide.
        """
        if tries >= self.tries_max:
            return None
        if retry_after is not None and retry_after > self.pause_s_max:
            return None
        doubled = min(self.pause_s_max, self.first_s * 2.0 ** min(tries - 1, 60))
        return max(retry_after or 0.0, doubled * random.uniform(0.5, 1.0))
