"""What callers say of threads, checked: which ones they ask for, what they call them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypedDict

from langmem_ext.errors import InvalidInput
from langmem_ext.log import bound_owner
from langmem_ext.storage.clock import unix_ms
from langmem_ext.storage.listing_ops import STATUSES, ThreadFilter

LONGEST_TITLE: Final = 1000
"""Characters of a title that somebody gives."""

LONGEST_TAG: Final = 100
"""Characters of a tag."""

LARGEST_METADATA: Final = 64 * 1024
"""Bytes of a thread's metadata, as JSON."""


class Wanted(TypedDict, total=False):
    """Which threads are asked for. Without `status`, archived ones are left out."""

    owner: str
    """Whose, for who is bound to no owner."""
    status: str | None
    """`active`, `archived`, or None for both."""
    waiting_for: str | bool
    """Name of the parameter that they wait for; True: any; False: those that wait for none."""
    tool: str
    """The tool of their newest turn that names one."""
    tag: str
    """A tag that they have."""
    since: datetime
    """Last written then or later; with its time zone."""
    until: datetime
    """Last written before; with its time zone."""
    begins: str
    """What their id begins with."""
    title: str
    """A part of their title; the case of ASCII letters does not count."""


def plan_filter(wanted: Wanted, owner: str | None) -> ThreadFilter:
    """What a caller asks for.

    Args:
        wanted: In the caller's words.
        owner: Whose threads are there for the caller; None: everybody's.

    Raises:
        InvalidInput: It cannot be asked for.
    """
    if unknown := wanted.keys() - Wanted.__annotations__.keys():
        raise InvalidInput(f"threads cannot be listed by {sorted(unknown)[0]!r}: use one of {', '.join(sorted(Wanted.__annotations__))}")
    asked = bound_owner(None, wanted.get("owner"))
    if owner is not None and asked is not None and asked != owner:
        raise InvalidInput("these threads are bound to another owner: ask without one")
    status = wanted.get("status", "active")
    if status is not None and status not in STATUSES:
        raise InvalidInput(f"status is 'active', 'archived' or None for both, not {status!r}")
    waiting = wanted.get("waiting_for")
    title = wanted.get("title")
    return ThreadFilter(
        owner=owner or asked,
        status=status,
        waiting_for=waiting if isinstance(waiting, str) else None,
        waiting=True if waiting is True else None,
        resting=True if waiting is False else None,
        tool=wanted.get("tool"),
        tag=None if wanted.get("tag") is None else checked_tags([wanted["tag"]])[0],
        since=_moment(wanted.get("since"), "since"),
        until=_moment(wanted.get("until"), "until"),
        begins=wanted.get("begins"),
        title=None if title is None else f"%{title.replace('!', '!!').replace('%', '!%').replace('_', '!_')}%",
    )


def _moment(moment: datetime | None, name: str) -> int | None:
    if moment is None:
        return None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InvalidInput(f"{name} is a datetime with its time zone, not {moment!r}")
    return unix_ms(moment)


# -- what somebody says of a thread ------------------------------------------------------------------------------------------------------


def checked_title(title: str) -> str | None:
    """A title in one line; None for an empty one.

    Raises:
        InvalidInput: It is no text, or too long.
    """
    if not isinstance(title, str) or "\0" in title or len(title) > LONGEST_TITLE:
        raise InvalidInput(f"a title is a text of at most {LONGEST_TITLE} characters")
    return _stored(" ".join(title.split())) or None


def checked_tags(tags: Iterable[str]) -> list[str]:
    """Tags without the space around them.

    Raises:
        InvalidInput: One is no text, empty, too long, or has more than one line.
    """
    if isinstance(tags, str):
        raise InvalidInput("tags are several texts, not one: pass [tag]")
    checked = [tag.strip() if isinstance(tag, str) else "" for tag in tags]
    for tag in checked:
        if not tag or len(tag) > LONGEST_TAG or "\0" in tag or len(tag.splitlines()) > 1:
            raise InvalidInput(f"a tag is a text of 1 to {LONGEST_TAG} characters in one line")
    return [_stored(tag) for tag in checked]


def checked_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata as JSON gives it back.

    Raises:
        InvalidInput: JSON cannot say it, or it is too large.
    """
    if not isinstance(metadata, Mapping) or not all(isinstance(name, str) for name in metadata):
        raise InvalidInput("metadata is a dict with names as keys")
    try:
        text = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"metadata is what JSON can say: {error}") from error
    if len(text.encode("utf-8", "replace")) > LARGEST_METADATA or "\0" in text:
        raise InvalidInput(f"metadata takes at most {LARGEST_METADATA} bytes as JSON: keep more than that elsewhere")
    checked: dict[str, Any] = json.loads(_stored(text))
    return checked


def _stored(text: str) -> str:
    """A text as a column takes it: a lone surrogate becomes a question mark."""
    return text.encode("utf-8", "replace").decode()
