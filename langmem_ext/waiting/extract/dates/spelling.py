"""Misspelt names of weekdays, months and near days, put right: "satuday", "febuary", "tmrw"."""

from __future__ import annotations

import re
from functools import lru_cache

from rapidfuzz.distance import DamerauLevenshtein

_SHORT = {
    short: "tomorrow" for short in ("tmrw", "tmr", "tmw", "tmrrw", "tmoro", "tomoz", "tomo", "tomm", "2moro", "2morrow", "2mrw", "tommorw")
} | {"2day": "today", "2nite": "tonight", "2night": "tonight", "tonite": "tonight", "weds": "wednesday", "wens": "wednesday"}
_NAMES = (
    *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "tomorrow", "yesterday"),
    *("january", "february", "august", "september", "october", "november", "december"),
)
"""Words long enough that a slip in one of them makes no other word."""

_OTHERS = frozenset(("sundry", "sundae", "sundaes", "mondays", "fridays", "sundays", "augustus", "auguste", "augusta", "mandate"))
_WORD = re.compile(r"[2A-Za-z][a-z]{2,12}(?![\w'’-])", re.I)


@lru_cache(maxsize=4096)
def _meant(word: str) -> str | None:
    """The name that a word in small letters most likely misspells; None where it misspells none."""
    if word in _SHORT:
        return _SHORT[word]
    if len(word) < 5 or word in _OTHERS or word in _NAMES:
        return None
    for name in _NAMES:
        if word[0] == name[0] and word not in (f"{name}s", name):
            distance = DamerauLevenshtein.distance(word, name, score_cutoff=2)
            if distance <= (2 if len(name) >= 8 else 1):
                return name
    return None


class Spelled:
    """A text with such names put right, and where each of its characters stood.

    Attributes:
        text: The text as it was meant.
    """

    __slots__ = ("_edits", "text")

    def __init__(self, text: str) -> None:
        found = [(match.start(), match.end(), meant) for match in _WORD.finditer(text) if (meant := _meant(match.group().lower()))]
        pieces, reached, self._edits = [], 0, []
        moved = 0
        for start, end, meant in found:
            pieces += [text[reached:start], meant]
            reached = end
            self._edits.append((start + moved, start + moved + len(meant), start, end))
            moved += len(meant) - (end - start)
        self.text = "".join([*pieces, text[reached:]]) if found else text

    def place(self, offset: int) -> int:
        """The offset in the text as it was written; of one inside a corrected word, the word's nearer end."""
        moved = 0
        for start, end, old_start, old_end in self._edits:
            if offset <= start:
                break
            if offset < end:
                return old_start if offset - start < end - offset else old_end
            moved = old_end - end
        return offset + moved
