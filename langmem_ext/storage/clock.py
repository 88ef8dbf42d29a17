"""The clock, read at the edge and passed to operations as an argument."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Final

MINUTE_MS: Final = 60_000
"""A minute, in milliseconds."""


def now_ms() -> int:
    """Unix time in milliseconds."""
    return time.time_ns() // 1_000_000


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def unix_ms(moment: datetime) -> int:
    """A moment, which has a time zone, in whole Unix milliseconds."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


FIRST_MS: Final = unix_ms(datetime.min.replace(tzinfo=UTC))
LAST_MS: Final = unix_ms(datetime.max.replace(tzinfo=UTC))
"""The first and the last moment that there is a name for, in Unix milliseconds."""


def moment_of(milliseconds: int) -> datetime:
    """The moment of a Unix time in milliseconds, exactly."""
    return _EPOCH + timedelta(milliseconds=milliseconds)
