"""The part of the day that words name: "tonight", "for lunch", "pm".

It decides whether an hour is in the morning or in the evening.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_NOON, _MIDNIGHT = 12 * 60, 24 * 60


@dataclass(frozen=True, slots=True)
class DayPart:
    """A part of the day, and where the text names it.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last one.
        first: Its first minute of the day.
        last: Its last minute; the small hours of the next day lie behind midnight.
    """

    start: int
    end: int
    first: int
    last: int

    def holds(self, minute: int) -> bool:
        """Whether a minute of the day lies in it."""
        return self.first <= minute <= self.last or self.first <= minute + _MIDNIGHT <= self.last


_PARTS: dict[str, tuple[int, int]] = {
    "morning": (0, _NOON - 1),
    "brunch": (9 * 60, 15 * 60),
    "lunch": (11 * 60, 16 * 60),
    "evening": (_NOON, _MIDNIGHT - 1),
    "night": (17 * 60, _MIDNIGHT + 5 * 60 - 1),
}
_WORDS = re.compile(
    r"(?P<greeting>\bgood\s+(?:morning|afternoon|evening|night)\b)"
    r"|(?P<morning>\b(?:mornings?|breakfast|sunrise|dawn)\b|(?<=\d)\s?a\.?\s?m\b|(?:ish"
    r"|clock)\s?a\.?m\b|\ba\.m\b)"
    r"|(?P<brunch>\bbrunch\b)"
    r"|(?P<lunch>\blunch(?:time)?\b)"
    r"|(?P<evening>\b(?:afternoons?|evenings?|dinner(?:time)?|supper|teatime|sunset|after"
    r" work)\b|(?<=\d)\s?p\.?\s?m\b|\bp\.?m\b)"
    r"|(?P<night>\b(?:to)?(?:night|nite)s?\b)",
    re.I,
)


def day_parts(text: str) -> list[DayPart]:
    """The parts of the day that `text` names, in its order; a greeting names none."""
    spans = [(match.start(), match.end(), match.lastgroup or "") for match in _WORDS.finditer(text)]
    return [DayPart(start, end, *_PARTS[kind]) for start, end, kind in spans if kind in _PARTS]


def nearest(parts: Sequence[DayPart], start: int, end: int) -> DayPart | None:
    """The part of the day that is named nearest to `[start, end)`, the later one of two."""
    return min(
        parts,
        key=lambda part: (max(part.start - end, start - part.end, 0), -part.start),
        default=None,
    )


def common(parts: Sequence[DayPart]) -> DayPart | None:
    """The part of the day that a text speaks of, when it speaks of one only."""
    return parts[0] if len({(part.first, part.last) for part in parts}) == 1 else None
