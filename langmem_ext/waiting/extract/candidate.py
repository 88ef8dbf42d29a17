"""A span of a reply that may be the value, before anything decides that it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from langmem_ext.waiting.extract.english.tokens import before

_CORRECTION = re.compile(r"\b(?:sorry|i meant?|i mean|actually|rather|scratch that|correction|make (?:that|it)|or rather|wait)\b", re.I)
_REJECTED = re.compile(
    r"\b(?:not|isn't|isnt|except|anything but|other than|rather than|instead of|nor|but not|don't want|do not want|cannot do|can't do)"
    r"(?:\s+(?:on|at|for|in|from|to|the|a|an|my|until|till|with|want|any))*\s*$",
    re.I,
)


_OR = re.compile(r"\s*,?\s*or\s+(?:(?:maybe|even|perhaps|on|at|in|from|to|the|a|around|about|for)\s+)*", re.I)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible value and where it stands.

    Attributes:
        start: Offset of its first character in the message.
        end: Offset after its last character.
        value: What it means, normalised.
        confidence: 0 to 1: how sure it is that these words name such a value.
        fit: How well it fits this parameter among others of its kind (role cues, own nouns); higher wins, negative never fills.
        reason: Why, in a few words, without the value.
        alternatives: Other readings of the same words, the likelier ones first.
        undecided: Whether none of the readings is likelier than the others.
        refused: Whether the parameter's bounds exclude every reading.
    """

    start: int
    end: int
    value: JsonValue
    confidence: float
    fit: int = 0
    reason: str = ""
    alternatives: tuple[JsonValue, ...] = ()
    undecided: bool = False
    refused: bool = False

    def overlaps(self, start: int, end: int) -> bool:
        """Whether it shares a character with `[start, end)`."""
        return self.start < end and start < self.end

    def moved(self, fit: int) -> Candidate:
        """The same with `fit` added to its own."""
        return replace(self, fit=self.fit + fit)


def outside(candidates: Iterable[Candidate], spans: Sequence[tuple[int, int]]) -> list[Candidate]:
    """Those that touch none of `spans`."""
    return [candidate for candidate in candidates if not any(candidate.overlaps(start, end) for start, end in spans)]


def longest(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those left when of two that overlap the longer stays, in the order of the text."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.start - c.end, c.start)):
        if not any(candidate.overlaps(other.start, other.end) for other in kept):
            kept.append(candidate)
    return sorted(kept, key=lambda c: c.start)


def turned_down(text: str, start: int) -> bool:
    """Whether the words before `start` turn down what begins there: "not X", "instead of X"."""
    return _REJECTED.search(before(text, start)) is not None


def _alternative(text: str, one: Candidate, other: Candidate) -> bool:
    return one.value != other.value and one.end <= other.start <= one.end + 20 and _OR.fullmatch(text, one.end, other.start) is not None


def best(text: str, candidates: Sequence[Candidate]) -> Candidate | None:
    """The one to take: best fit, then confidence, then the first; the last when the user corrects himself between two equals.

    None when there is none, or when two stand to choose from ("three or four"). Of equal fit, what the bounds allow goes first.
    """
    able = [candidate for candidate in candidates if candidate.fit >= 0 and not turned_down(text, candidate.start)]
    if not able:
        return None
    fit = max(candidate.fit for candidate in able)
    if any(candidate.fit == fit and not candidate.refused for candidate in able):
        able = [candidate for candidate in able if not candidate.refused]
    if any(_alternative(text, one, other) for one in able for other in able if one.start < other.start):
        return None
    top = max((candidate.fit, candidate.confidence) for candidate in able)
    equals = [candidate for candidate in able if (candidate.fit, candidate.confidence) == top]
    chosen = equals[0]
    for later in equals[1:]:
        if later.start >= chosen.end and _CORRECTION.search(text[max(chosen.end, later.start - 60) : later.start]):
            chosen = later
    return chosen
