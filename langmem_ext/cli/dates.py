"""Moments as a person names them on the command line."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from langmem_ext.errors import InvalidInput

_DAYS: Final = {"today": 0, "yesterday": 1}


def moment_of(text: str, option: str, *, now: datetime | None = None) -> datetime:
    """A day, a moment, `today` or `yesterday`; a day means its beginning.

    Without a time zone, the machine's is meant.

    Args:
        text: What was typed.
        option: The option that it was typed for.
        now: The clock; None: the machine's.

    Raises:
        InvalidInput: It is not a date.

    >>> moment_of("yesterday", "--since", now=datetime(2026, 2, 1, 9, 30)).replace(tzinfo=None)
    datetime.datetime(2026, 1, 31, 0, 0)
    """
    try:
        if (days := _DAYS.get(text.strip().lower())) is not None:
            # The day before is found without a time zone: a day may have 23 or 25 hours.
            moment = datetime.combine(now or datetime.now(), datetime.min.time()) - timedelta(
                days=days
            )
        else:
            moment = datetime.fromisoformat(text)
        return moment if moment.tzinfo is not None else moment.astimezone()
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidInput(
            f"{option} {text!r} is not a date: write 2026-01-31, 2026-01-31T09:30, today or"
            " yesterday"
        ) from error
