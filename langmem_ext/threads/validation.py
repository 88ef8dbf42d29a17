"""Checks what callers pass about threads: which to search for, and how to describe them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypedDict

from langmem_ext._internal.json import require_shallow
from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import bound_owner
from langmem_ext.messages.text import column_text
from langmem_ext.storage.rows.clock import unix_ms
from langmem_ext.storage.threads.list import LARGEST_METADATA, STATUSES, ThreadFilter, metadata_text

LONGEST_TITLE: Final = 1000
"""Characters of a title that somebody gives."""

LONGEST_TAG: Final = 100
"""Characters of a tag."""

MOST: Final = 1 << 31
"""Larger limits count as this: no database holds so many, and its integers are bounded."""


class Wanted(TypedDict, total=False):
    """Which threads to search for. Without `status`, archived ones are left out."""

    owner: str
    """Their owner, if the caller is not bound to one."""
    status: str | None
    """`active`, `archived`, or None for both."""
    waiting_for: str | bool
    """Name of the parameter that they wait for; True for any; False if they wait for none."""
    tool: str
    """The tool of their newest turn that names one."""
    tag: str
    """A tag that they have."""
    since: datetime
    """Last written then or later; with its time zone."""
    until: datetime
    """Last written before; with its time zone."""
    begins: str
    """The beginning of their id."""
    title: str
    """A part of their title; the case of ASCII letters does not count."""


def plan_filter(wanted: Wanted, owner: str | None) -> ThreadFilter:
    """A caller's filter, checked.

    Args:
        wanted: The filter as the caller passes it.
        owner: The owner whose threads the caller may see; None for everybody's.

    Raises:
        InvalidInput: The filter is invalid.
    """
    if unknown := wanted.keys() - Wanted.__annotations__.keys():
        raise InvalidInput(
            f"unknown filter {sorted(unknown)[0]!r}: use one of"
            f" {', '.join(sorted(Wanted.__annotations__))}"
        )
    asked = bound_owner(None, wanted.get("owner"))
    if owner is not None and asked is not None and asked != owner:
        raise InvalidInput("this object is bound to another owner: omit `owner`")
    status = wanted.get("status", "active")
    if status is not None and status not in STATUSES:
        raise InvalidInput(f"status must be 'active', 'archived' or None for both, not {status!r}")
    waiting = wanted.get("waiting_for")
    title = _asked(wanted.get("title"), "title")
    if title is not None and len(title) > LONGEST_TITLE:
        raise InvalidInput(f"titles have at most {LONGEST_TITLE} characters: search for less")
    return ThreadFilter(
        owner=owner or asked,
        status=status,
        waiting_for=None if isinstance(waiting, bool) else _asked(waiting, "waiting_for"),
        waiting=True if waiting is True else None,
        resting=True if waiting is False else None,
        tool=_asked(wanted.get("tool"), "tool"),
        tag=None if wanted.get("tag") is None else checked_tags([wanted["tag"]])[0],
        since=_moment(wanted.get("since"), "since"),
        until=_moment(wanted.get("until"), "until"),
        begins=_asked(wanted.get("begins"), "begins"),
        title=(
            None
            if title is None
            else f"%{title.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%"
        ),
    )


def _asked(text: object, name: str) -> str | None:
    """A text as the column that it is compared with would have it."""
    if text is None:
        return None
    if not isinstance(text, str) or "\0" in text:
        raise InvalidInput(f"{name} must be a string, not {text!r}")
    return column_text(text)


def _moment(moment: datetime | None, name: str) -> int | None:
    if moment is None:
        return None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidInput(f"{name} must be a datetime with a time zone, not {moment!r}")
    return unix_ms(moment)


def checked_limit(limit: int, what: str) -> int:
    """A maximum number of results, checked.

    Raises:
        InvalidInput: It is invalid.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise InvalidInput(f"limit (how many {what}) must be at least 1, not {limit!r}")
    return min(limit, MOST)


# -- a thread's description ------------------------------------------------------------------------


def checked_title(title: str) -> str | None:
    """A title in one line; None for an empty one.

    Raises:
        InvalidInput: It is not text, or too long.
    """
    if not isinstance(title, str) or "\0" in title or len(title) > LONGEST_TITLE:
        raise InvalidInput(f"a title must be text of at most {LONGEST_TITLE} characters")
    return column_text(" ".join(title.split())) or None


def checked_tags(tags: Iterable[str]) -> list[str]:
    """Tags without the space around them.

    Raises:
        InvalidInput: One is not text, empty, too long, or has more than one line.
    """
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise InvalidInput(f"tags must be a list of strings, not {tags!r}: pass [tag]")
    checked = [tag.strip() if isinstance(tag, str) else "" for tag in tags]
    for tag in checked:
        if not tag or len(tag) > LONGEST_TAG or "\0" in tag or len(tag.splitlines()) > 1:
            raise InvalidInput(f"a tag must be text of 1 to {LONGEST_TAG} characters, in one line")
    return [column_text(tag) for tag in checked]


def checked_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as it comes back from JSON.

    Raises:
        InvalidInput: It is not JSON, or too large.
    """
    if not isinstance(metadata, Mapping) or not all(isinstance(name, str) for name in metadata):
        raise InvalidInput("metadata must be a dict with strings as keys")
    try:
        text = metadata_text(metadata)
        checked: dict[str, Any] = json.loads(column_text(text))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"metadata must be JSON: {error}") from error
    if len(text.encode("utf-8", "replace")) > LARGEST_METADATA or "\0" in text:
        raise InvalidInput(
            f"metadata must not exceed {LARGEST_METADATA} bytes of JSON: store larger data"
            " elsewhere"
        )
    require_shallow(checked, "metadata")
    return checked
