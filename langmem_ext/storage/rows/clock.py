"""The clock, read at the edge and passed to operations as an argument."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from langmem_ext.messages.manifest import NUMBERS

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
"""The first and the last moment that a date can name, in Unix milliseconds."""


def ms_of(text: object) -> int | None:
    """The Unix milliseconds of an ISO 8601 text; None if it is invalid, or has no time zone.

    None, too, for a time at which no thread may begin: before 1970, or after 2105.
    """
    try:
        moment = datetime.fromisoformat(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    if moment.tzinfo is None:
        return None
    milliseconds = unix_ms(moment)
    return milliseconds if is_storable(milliseconds) else None


def is_storable(milliseconds: object) -> bool:
    """Whether a thread may begin then: its row counts the seconds from 1970."""
    return isinstance(milliseconds, int) and 0 <= milliseconds < NUMBERS * 1000


@dataclass(frozen=True, slots=True)
class Times:
    """When something was made that is stored only now, in Unix milliseconds.

    Attributes:
        made: When it was made.
        created, updated: When its thread was first and last written, including this and all that is
        still to be stored.
    """

    made: int
    created: int
    updated: int


def moment_of(milliseconds: int) -> datetime:
    """The moment of a Unix time in milliseconds, exactly."""
    return _EPOCH + timedelta(milliseconds=milliseconds)
