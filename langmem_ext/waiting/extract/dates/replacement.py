"""What a day or a time takes the place of is no value of it: "I can't come at 2, 3 would do"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date as Day

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate, is_impossible
from langmem_ext.waiting.extract.dates import days
from langmem_ext.waiting.extract.english.tokens import before
from langmem_ext.waiting.extract.reply import Reply

_TAKES_PLACE = re.compile(r"\b(?:new|instead|other|another)\b", re.I)
"""Words of a parameter that takes the place of what was arranged."""
_KNOWN = re.compile(
    r"\b(?:my|our|his|her|their|['’]s)\s+(?:\w+\s+)?(?:appointments?|bookings?|sessions?|lessons?"
    r"|visits?|tests?|slots?|reservations?|class(?:es)?|tables?|viewings?|deliver(?:y|ies)|orders?"
    r"|flights?|tickets?|pick-?ups?|collections?|meetings?|stays?|one)\s+(?:(?:is|was|that|which|'s)"
    r"\s+)*(?:on|for|at|of)\s+(?:the\s+)?$",
    re.I,
)
"""Words before what another is to take the place of: "my appointment on the 10th"."""


_MOVED_TO = re.compile(
    r"\b(?:to|until|till|for)\s+(?:(?:the|next|this|on|at|about|around)\s+)*$", re.I
)
"""Words before what takes the place of another: "move it to monday"."""


_OR = re.compile(r"\s*,?\s*or\b", re.I)


def _moved_to(text: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those before which words say that something is moved there; all where none is."""
    named = [candidate for candidate in candidates if _MOVES.search(text, 0, candidate.start)]
    to = [candidate for candidate in named if _MOVED_TO.search(before(text, candidate.start))]
    if any(_OR.match(text, candidate.end) for candidate in to):
        return list(candidates)
    return to or list(candidates)


_MOVES = re.compile(
    r"\b(?:move|change|shift|postpone|reschedule|push|put|bring|swap|switch|rebook)\b", re.I
)


def without_old(param: Param, text: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates of a parameter; what it takes the place of never fills it."""
    described = f"{param.name.replace('_', ' ')} {param.description} {param.prompt}"
    if not _TAKES_PLACE.search(described):
        return list(candidates)
    candidates = _moved_to(text, candidates)
    return [
        (
            replace(candidate, fit=-1)
            if is_impossible(text, candidate.start, candidate.end)
            or _KNOWN.search(before(text, candidate.start))
            else candidate
        )
        for candidate in candidates
    ]


def wished_first(param: Param, reply: Reply, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, those raised that a wish leads to: "we open the 27th but need it the 24th".

    For the last day of something also the one behind "by". None is raised where a word like "from"
    or another parameter of the type tells them apart.
    """
    rivals = any(other.type == param.type and other.name != param.name for other in reply.others)
    if len(candidates) < 2 or rivals or len({candidate.fit for candidate in candidates}) > 1:
        return list(candidates)
    limit = _IS_LIMIT.search(f"{param.name.replace('_', ' ')} {param.description} {param.prompt}")
    limits = [day for day in candidates if _BY.search(before(reply.text, day.start))]
    if not limit and 0 < len(limits) < len(candidates):
        return [day.moved(-(day in limits)) for day in candidates]  # "before the 14th: the 12th?"
    for leads in (_BY, _WISHED) if limit else (_WISHED,):
        led = led_to(reply.text, candidates, leads)
        if 0 < len(led) < len(candidates):
            return [candidate.moved(candidate in led) for candidate in candidates]
    return list(candidates)


def led_to(
    text: str, candidates: Sequence[Candidate], leads: re.Pattern[str] | None = None
) -> list[Candidate]:
    """The candidates that certain words lead to: those of a wish, if no others are given."""
    begins = [0, *(candidate.end for candidate in candidates)]
    return [
        candidate
        for begin, candidate in zip(begins, candidates, strict=False)
        if (leads or _WISHED).search(text[begin : max(begin, candidate.start)])
    ]


def is_for_limit(param: Param, text: str, day: Candidate) -> bool:
    """Whether words make a day the end of something else: "need it back by the 20th"."""
    limit = _IS_LIMIT.search(f"{param.name.replace('_', ' ')} {param.description} {param.prompt}")
    return not limit and _FOR_LIMIT.search(before(text, day.start)) is not None


_FOR_LIMIT = re.compile(
    r"\b(?:before|ahead of|in time for)\s+(?:an?|the|my|our|his|her|their)\s+(?:\w+\s+)?"
    r"(?:funeral|wedding|party|birthday|christening|interview|exam|holiday|trip|match|concert)\s+"
    r"(?:(?:is|on|at)\s+)+(?:the\s+)?$"
    r"|\b(?:needs?|wants?)\s+(?:it|them|her|him|this)\s+(?:back|ready|done|finished)\s+"
    r"(?:by|before|for)\s+(?:the\s+|next\s+|this\s+)?$",
    re.I,
)
"""Words before a day by which, or before which, something else is to be."""
_IS_LIMIT = re.compile(r"\b(?:by|before|due|deadline|latest|need(?:ed)?|ready|until)\b", re.I)
"""Words of a parameter that is the last day, or the last hour, for something."""
_BY = re.compile(r"\bby\s+(?:\w+\s+)?$", re.I)
_WISHED = re.compile(
    r"\b(?:(?:i|we|she|he|they|you)(?:['’]?d)?\s+(?:\w+\s+)?(?:need|want|wish|like|love|prefer|rather"
    r"|must|have to|could do)s?|(?:can|could|would|will|may) (?:you|we|i|he|she|it)|please|pls"
    r"|has to|have to|make it)\b[^.,;!?]*$",
    re.I,
)
"""Words of a wish, up to what it is for."""


def in_month_of(day: Candidate, old: object, *, least: str) -> Candidate:
    """A day named by its number alone, in the month of the day that it takes the place of."""
    if day.reason != days.NTH:
        return day
    moved = days.numbered(old, Day.fromisoformat(str(day.value)).day, later=False)
    return replace(day, value=f"{moved}") if moved and f"{moved}" >= least else day
