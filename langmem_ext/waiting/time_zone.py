"""The user's time zone from a run's configuration: `configurable["tz"]`, like `Europe/Rome`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from langmem_ext.errors import InvalidInput


def zoned_now(config: Mapping[str, Any]) -> datetime:
    """Now, on the user's clock; on this machine's, where the configuration names no time zone.

    Raises:
        InvalidInput: There is no such time zone.
    """
    name = (config.get("configurable") or {}).get("tz")
    return datetime.now(time_zone(name)) if name else datetime.now().astimezone()


def time_zone(name: object) -> ZoneInfo:
    """A time zone by its IANA name.

    Raises:
        InvalidInput: There is no time zone of that name.
    """
    try:
        return ZoneInfo(str(name))
    except (
        OSError,
        ValueError,
        KeyError,
    ) as error:  # a folder's name, an impossible one, an unknown one
        raise InvalidInput(f"unknown time zone {name!r}: use a name like Europe/Rome") from error
