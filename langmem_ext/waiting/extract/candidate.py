"""A span of a reply that may be the value, before anything decides that it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import JsonValue

from langmem_ext.waiting.extract.english.tokens import before

_CORRECTION = re.compile(
    r"\b(?:sorry|i meant?|i mean|actually|rather|hang on|hold on|scratch that|correction"
    r"|make (?:that|it)|or rather|wait)\b|\bor no\b|(?<=[.,;…])\s*(?:well|or)\s*$"
    r"|\bso\b\s+(?:(?:he|she|it|they|we|i|that)(?:['’]?(?:ll|s|d))?\s+(?:be\s+)?)?$",
    re.I,
)
_REJECTED = re.compile(
    r"\b(?:not|there(?:['’]?s| is| are)"
    r" no|neither|isn't|isnt|except|any(?:\s+\w+)?\s+but|before|anything but"
    r"|other than|apart from|aside from|except for|rather than|instead of|used to (?:be|have)"
    r"|(?:i|we)(?:['’]?(?:ll|m)| will| want to| would like to|['’]?d like to)? keep(?:ing)?"
    r"|nor|but not|no (?:use|need) for|don['’]?t want|do not want|cannot do|can['’]?t do|too"
    r"|(?:have|has)(?:n['’]?t| not) got|(?:do|does)(?:n['’]?t| not) (?:have|do|use|like|take))"
    r"(?:\s+(?:on|at|for|in|from|to|the|a|an|my|until|till|with|want|any|by|doctor|(?:dr|mrs?|ms)\.?))*"
    r"\s*$",
    re.I,
)


_UNABLE = re.compile(
    r"\b(?:can(?:no|['’]?)t|can not|won['’]?t|could(?:n['’]?t|"
    r" not))\s+(?:\w+\s+)?(?:make|come|do|be|manage)\b[^.,;!?]*$"
    r"|\bno way (?:i|we|he|she|they)(?:['’]?ll)? (?:can|could|be|make|will)\b[^.,;!?]*$"
    r"|\b(?:i|we|he|she|they)(?:['’]?(?:m|re|s|ll be)| am| are| is| will be)\s+"
    r"(?:(?:at|in|on|off)\b[^.,;!?]{0,30}\b(?:all|most of|half of)\s+$"
    r"|(?:away|abroad|busy|working)\b[^.,;!?]{0,20}$)"
    r"|\b(?:am|was|are|were|i['’]?m|we['’]?re)\s+(?:meant|supposed|due|booked|down)\b[^.,;!?]*$"
    r"|\b(?:(?:was|were)\s+to|(?:is|it['’]?s|that['’]?s)\s+(?:meant|supposed|due))\b[^.,;!?]*$",
    re.I,
)
"""A clause up to a value that is not possible, or was arranged; where no other is named, it may be
what the message is about."""
_UNABLE_THEN = re.compile(
    r"\s*(?:i|we)(?:\s+(?:have|have got|got)|['’]ve got)\s+no time\b"
    r"|\s*,?\s*(?:but )?(?:i |we )?(?:can(?:no|['’]?)t|can not|won['’]?t be able to|am not able to)"
    r"\s+(?:make|do|manage|come)\b"
    r"|\s*,?\s*(?:i['’]?m|i am|i['’]?ll be|we['’]?re|we are|she['’]?s|he['’]?s|they['’]?re)\s+(?:at"
    r" (?:work|school)|away|busy|working|out of|on (?:holiday|shift)|not (?:there|free|in))\b",
    re.I,
)
"""The same behind the value."""
_UNLESS = re.compile(r"\s*(?:if|in case|otherwise|as a backup)\b", re.I)
"""What follows a second choice."""

_OR = re.compile(
    r"\s*,?\s*or\s+(?:(?:maybe|even|perhaps|on|at|in|from|to|the|a|around|about|for)\s+)*", re.I
)


_PREFERRED = re.compile(
    r"\s*(?:(?:is|would be|['’]s|['’]d be)\s+)?(?:even |a bit |much"
    r" )?(?:better|best|preferable|preferred|ideal|safer|easier|nicer)\b",
    re.I,
)
"""What follows the value that is wanted most, of several."""
_DECIDED = re.compile(
    r"\b(?:put(?: down)?|[,.;]\s*do|make it|call it|go (?:with|for)|let['’]?s say)"
    r"\s+(?:me down for\s+)?$",
    re.I,
)
"""Words before the value that is decided on, of several: "8, or 9 if he comes. put 9"."""
_ENOUGH = re.compile(
    r"\s*(?P<noun>(?!(?:will|would|should|is|are)\b)[a-z]+\s+)?(?:(?:will|would|should)\s+(?:do\b"
    r"|be\s+(?:\w+\s+)?(?:enough|plenty|fine|sufficient|ok(?:ay)?)\b)"
    r"|(?:is|are)\s+(?:enough|plenty|fine|sufficient|ok(?:ay)?)\b)",
    re.I,
)
"""What follows the value that will do, of several."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible value and its place in the text.

    Attributes:
        start: Offset of its first character in the message.
        end: Offset after its last character.
        value: What it means, normalised.
        confidence: 0 to 1: how sure it is that these words name such a value.
        fit: How well it fits this parameter among others of its kind (role cues, own nouns); higher
            wins, negative never fills.
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
    return [
        candidate
        for candidate in candidates
        if not any(candidate.overlaps(start, end) for start, end in spans)
    ]


def longest(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those left when of two that overlap the longer stays, in the order of the text."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda c: (c.start - c.end, c.start)):
        if not any(candidate.overlaps(other.start, other.end) for other in kept):
            kept.append(candidate)
    return sorted(kept, key=lambda c: c.start)


_FORBIDDEN = re.compile(
    r"\b(?:do(?:n['’]?t|"
    r" not)|never)\s+(?:deliver|send|bring|take|ship|post|book|put|come|use|call|pick|make)\b"
    r"(?:(?!\b(?:but|only|so|and)\b)[^.,;!?])*\b(?:to|at|on|in|into|from|for|before|after"
    r"|by)\s+(?:the\s+)?$",
    re.I,
)
"""A clause up to a value that it forbids: "don't send it to X"."""
_RULED_OUT = re.compile(
    r"\s*(?:is|are|was|really|just|definitely|sadly)?\s*(?:(?:does|do|will|would|wo"
    r"|can)(?:\s?n['’]?t|\s?not)\s+(?:really\s+)?"
    r"(?:work|suit|fit|do|be good)\b|(?:['’]?s|is|are)\s+out\b(?!"
    r" of)|(?:['’]?s|is|are)\s+(?:off|bad|no good"
    r"|not (?:good|possible|ok|an option)|impossible|full)\b"
    r"|(?:is|are|was|wo|would)(?:\s?n['’]?t|\s?not)\s+(?:\w+\s+)?(?:enough|right|correct)\b"
    r"|(?:['’]?s|is|are)\s+(?:a\s+)?(?:bit|little)\s+(?:too\s+)?(?:much|many|steep|high|early|late)\b"
    r"|(?:['’]s|is|are)\s+(?:\w+\s+)?too\s+(?:little|few|small|low|short|much|many|long|high|early"
    r"|late)\b)",
    re.I,
)


_GOES_OUT = re.compile(r"\b(?:lights?|lamps?|bulbs?|power|electricity|heating|boiler)\b", re.I)
"""What is out when it does not work."""


_CODE: Final = re.compile(r"[A-Za-z][-/]?\d")
"""What bears a code is off, or full, and is meant all the same: "S5102 is full"."""


def is_impossible(text: str, start: int, end: int) -> bool:
    """Whether the clause says that the value there is not possible: "I can't come on friday"."""
    return (
        _UNABLE.search(before(text, start)) is not None or _UNABLE_THEN.match(text, end) is not None
    )


def turned_down(text: str, start: int, end: int | None = None) -> bool:
    """Whether the words around a span reject it: "not X", "instead of X", "X is no good"."""
    lead = before(text, start)
    if _REJECTED.search(lead) or _FORBIDDEN.search(lead):
        return True
    is_code = end is not None and _CODE.search(text, start, end) is not None
    ruled_out = _RULED_OUT.match(text, end) if end is not None and not is_code else None
    return ruled_out is not None and not (
        ruled_out.group().endswith("out") and _GOES_OUT.search(lead)
    )


def _alternative(text: str, first: Candidate, second: Candidate) -> bool:
    if first.value == second.value or not first.end <= second.start <= first.end + 20:
        return False
    between = text[first.end : second.start].strip().lower() == "and" and before(
        text, first.start
    ).rstrip().lower().endswith("between")
    return between or _OR.fullmatch(text, first.end, second.start) is not None


_WAS = re.compile(
    r"\b(?:was|were|had|used to|said|last (?:time|year|week)|before|normally|usually)\b[^.;!?]*$",
    re.I,
)
_NOW = re.compile(
    r"\b(?:now|this time|today)\b"
    r"|\b(?:but|only)\b[^.;!?]{0,60}?\b(?:it['’]?s|that['’]?s|we['’]?re|they['’]?re|i['’]?m"
    r"|(?:it|that) is|(?:we|they) are|i am)\b",
    re.I,
)
_SO_FAR = re.compile(
    r"\s*(?:\w+\s+)?(?:at the moment|at present|currently|right now|so far|until now|up to now)\b",
    re.I,
)
"""What follows a value that is, and is to be another: "every 4 weeks at the moment"."""
_CURRENTLY = re.compile(
    r"\b(?:currently|at the moment|at present|so far|up to now|until now)\b[^.,;!?]*$", re.I
)


def is_so_far(text: str, candidate: Candidate) -> bool:
    """Whether words say that a value is so at present: "every 4 weeks at the moment"."""
    led = _CURRENTLY.search(before(text, candidate.start))
    return led is not None or _SO_FAR.match(text, candidate.end) is not None


def _is_former(text: str, candidate: Candidate, others: Sequence[Candidate]) -> bool:
    """Whether a value was, and another now is: "there were 6 of us but now it's 5"."""
    if any(other.value != candidate.value for other in others) and is_so_far(text, candidate):
        return True
    last = max(other.start for other in others)
    return (
        candidate.end <= last
        and _WAS.search(before(text, candidate.start)) is not None
        and _NOW.search(text, candidate.end, last) is not None
    )


def _will_do(text: str, candidate: Candidate, fit: int) -> bool:
    """Whether words say that a value is enough; with a noun, only one of the best fit."""
    match = _ENOUGH.match(text, candidate.end)
    return match is not None and (match["noun"] is None or candidate.fit == fit)


def best(text: str, candidates: Sequence[Candidate]) -> Candidate | None:
    """The candidate to take: by fit, then confidence, then order.

    When the user corrects himself between two equal ones, the later one is taken.

    None when there is none, or when two stand to choose from ("three or four"). Of equal fit, what
    the bounds allow goes first.
    """
    rejected = {
        str(candidate.value)
        for candidate in candidates
        if turned_down(text, candidate.start, candidate.end)
    }
    able = [
        candidate
        for candidate in candidates
        if candidate.fit >= 0 and str(candidate.value) not in rejected
    ]
    if not able:
        return None
    fit = max(candidate.fit for candidate in able)
    if any(candidate.fit == fit and not candidate.refused for candidate in able):
        able = [candidate for candidate in able if not candidate.refused]
    able = [c for c in able if not _is_former(text, c, able)] or able
    able = [c for c in able if not is_impossible(text, c.start, c.end)] or able
    able = [
        c
        for c in able
        if not (_UNLESS.match(text, c.end) and re.search(r"\bor\s+$", before(text, c.start)))
    ] or able
    if decided := [option for option in able if _DECIDED.search(before(text, option.start))]:
        able = decided
    if preferred := [candidate for candidate in able if _PREFERRED.match(text, candidate.end)]:
        able = preferred
    elif any(
        _alternative(text, first, second)
        for first in able
        for second in able
        if first.start < second.start
    ):
        return None
    elif sufficient := [option for option in able if _will_do(text, option, fit)]:
        able = sufficient
    top = max((candidate.fit, candidate.confidence) for candidate in able)
    equals = [candidate for candidate in able if (candidate.fit, candidate.confidence) == top]
    chosen = equals[0]
    for later in equals[1:]:
        if later.start >= chosen.end and _CORRECTION.search(
            text[max(chosen.end, later.start - 60) : later.start]
        ):
            chosen = later
    return chosen
