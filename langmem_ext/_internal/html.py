"""Objects as a notebook shows them: small pieces of escaped HTML, for light and dark pages.

GitHub strips styles, so a table alone must be readable. Callers hide sensitive values beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from typing import Final

_LEFT: Final = 'style="text-align: left; vertical-align: top"'
"""A notebook would put cells right."""


def table(rows: Iterable[Sequence[object]], head: Sequence[str] = ()) -> str:
    """A table. Without a head, the first cell of each row is its name."""
    top = f"<tr>{''.join(_cell(name, 'th') for name in head)}</tr>" if head else ""
    body = "".join(
        "<tr>"
        + "".join(
            _cell(value, "td" if head or number else "th") for number, value in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f"<table>{top}{body}</table>"


def titled(title: str, body: str) -> str:
    """A piece of HTML below its title."""
    return f"<div><strong>{escape(title)}</strong>{body}</div>"


def highlighted(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """A text with some of it marked."""
    parts, at = [], 0
    for start, end in spans:
        parts += [escape(text[at:start]), f"<mark>{escape(text[start:end])}</mark>"]
        at = end
    return "".join([*parts, escape(text[at:])])


class Raw(str):
    """HTML that a table includes as it is."""

    __slots__ = ()


def _cell(value: object, tag: str) -> str:
    return f"<{tag} {_LEFT}>{_written(value)}</{tag}>"


def _written(value: object) -> str:
    match value:
        case Raw():
            return str(value)
        case None:
            return ""
        case datetime():
            return escape(f"{value:%Y-%m-%d %H:%M}")
        case bool():
            return str(value).lower()
        case int():
            return f"{value:,}"
        case tuple() | list():
            return escape(", ".join(map(str, value)))
        case _:
            return escape(str(value)).replace("\n", "<br>")
