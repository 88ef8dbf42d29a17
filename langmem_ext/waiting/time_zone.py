"""The user's time zone, as a run's configuration names it: `configurable["tz"]`, an IANA name like `Europe/Rome`."""

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
        InvalidInput: There is none of that name.
    """
    try:
        return ZoneInfo(str(name))
    except (OSError, ValueError, KeyError) as error:  # a folder's name, an impossible one, an unknown one
        raise InvalidInput(f"there is no time zone {name!r}: name one like Europe/Rome") from error
