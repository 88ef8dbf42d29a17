"""A process whose clock is wrong, simulated: the package reads, and ids get, another time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from langgraph.checkpoint.base import id as checkpoint_ids

SKEWS = (-0.1, -60, -86_400, -365 * 86_400)
"""How far behind clocks are, in seconds: a step of NTP, two machines, a restored machine, an empty
battery."""


@contextmanager
def clock_off_by(seconds: float) -> Iterator[None]:
    """Set the clock off by seconds (negative: behind); no earlier id is remembered."""
    right, apart = time.time_ns, int(seconds * 1e9)
    with (
        patch.object(time, "time_ns", lambda: right() + apart),
        patch.object(checkpoint_ids, "_last_v6_timestamp", None),
    ):
        yield
