"""Facts that a summary must keep, found without a model: numbers, ids, paths, quoted names.

Pure.

>>> find_details('Ship O-17 (2 boxes, $40) to "North Gate", see /etc/ship.toml')
['O-17', '$40', '"North Gate"', '/etc/ship.toml']
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from langmem_ext.context.summary.extract import TextCounter
from langmem_ext.messages.search.spans import squeezed

LABEL: Final = "Also mentioned: "
"""Begins the line of details that a summary has besides its own words."""

LONGEST_READ: Final = 2000
"""Characters of a message that are looked through: what is pasted holds more numbers than anybody
refers to."""

_KINDS: Final = (
    "py|js|ts|go|rs|java|c|h|cpp|sh|sql|md|txt|csv|json|ya?ml|toml|ini|cfg|conf|env|xml|html?|css"
    "|log|db|pdf|docx?|xlsx?|png|jpe?g|zip"
)
_DETAIL: Final = re.compile(
    r"""
      # quoted names; paths from a root; files; ids
      "[^"\n]{2,60}" | “[^”\n]{2,60}” | «[^»\n]{2,60}»
    | `[^`\n]{2,60}` | (?<!\w)'[^'\n]{2,60}'(?!\w)
    | https?://[^\s<>"'`]+
    | (?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+
    | [A-Za-z]:\\[^\s"'`<>]+
    | (?<![\w/.~])(?:~|\.{1,2})?/[\w.@+-]+(?:/[\w.@+-]+)*
    | (?<![\w/.@+-])(?:[\w.@+-]++/)*+[\w@+-][\w.@+-]*\.(?:KINDS)\b
    | [$€£¥\#]\d[\d.,:/-]*
    | (?<![\w-])(?=[\w-]*\d)(?=[\w-]*[^\W\d_])(?!\d+(?:st|nd|rd|th)\b)\w[\w-]*\w\b
    | \d[\d.,:/-]*\d%? | \d%
    """.replace("KINDS", _KINDS),
    re.VERBOSE,
)
"""Each kind begins only where a word does, so a text of any form is read in one pass."""

_RUN: Final = re.compile(r"\d+(?:[.,:/'-]\d+)*")


def find_details(text: str) -> list[str]:
    """The details in a text, each once, in their order. A single digit does not count."""
    details = (match.group().rstrip(".,:;/-") for match in _DETAIL.finditer(text))
    return list(dict.fromkeys(detail for detail in details if squeezed(detail)))


def missing_details(texts: Iterable[str], summary: str) -> list[str]:
    """The details that are in no form in the summary, each once.

    Case, and signs between digits, do not count.
    """
    letters = squeezed(summary)
    runs = _RUN.findall(summary)
    numbers = {squeezed(part) for run in runs for part in (run, *re.findall(r"\d+", run))}
    wanted: dict[str, str] = {}
    for text in texts:
        for detail in find_details(text):
            wanted.setdefault(squeezed(detail), detail)
    return [detail for word, detail in wanted.items() if not _has_word(word, letters, numbers)]


def _has_word(word: str, letters: str, numbers: set[str]) -> bool:
    return word in numbers if word.isdigit() else word in letters


def with_details(summary: str, details: Sequence[str], limit: int, counter: TextCounter) -> str:
    """The summary with a last line of details, as many of the latest as fit.

    Args:
        summary: The summary; a line of details that it ends with is carried on.
        details: What is added, oldest first.
        limit: What the whole may cost.
        counter: Measures texts.
    """
    last = summary.rpartition("\n")[2]
    start = f"{summary}, " if last.startswith(LABEL) else f"{summary}\n{LABEL}"
    room = limit - counter.count_text(start)
    kept: list[str] = []
    for detail in reversed(details):
        room -= counter.count_text(f"{detail}, ")
        if room < 0:
            break
        kept.append(detail)
    while kept:
        whole = start + ", ".join(reversed(kept))
        if counter.count_text(whole) <= limit:  # the sum of the parts is no more than near it
            return whole
        kept.pop()
    return summary
