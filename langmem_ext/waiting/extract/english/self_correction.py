"""Self-corrections within one message: of "Friday, no wait, Saturday" the last counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate, is_impossible
from langmem_ext.waiting.extract.dates.replacement import in_month_of
from langmem_ext.waiting.extract.numbers.numerals import UNITS
from langmem_ext.waiting.extract.reading_cache import remembered
from langmem_ext.waiting.extract.reply import Reply

Read = Callable[[Reply], list[Candidate]]

_OPEN = frozenset(
    (ParamType.TEXT, ParamType.NAME, ParamType.PLACE, ParamType.PERSON, ParamType.BOOLEAN)
)
"""Types of which the words after a correction may be anything at all."""

_OF_DAYS = frozenset((ParamType.DATE, ParamType.TIME))
_MARK = re.compile(
    r"(?<![\s,.;:!–—-])"
    r"(?:[\s,.;:!–—-]+(?:no(?! (?:idea|more|less)\b)|nope|oops|sorry|wait|hang on|hold on|hmm+"
    r"|scratch that|i meant?|i mean to say|actually|or rather|rather"
    r"|make (?:that|it)|correction|better|my (?:bad|mistake)|let'?s"
    r" (?:say|do|go (?:for|with)|make it|take)|apologies|i beg your pardon|beg pardon|so|say"
    r"|put|call it)\b)+[\s,.;:!–—-]+",
    re.I,
)
_THAT_WAS = re.compile(
    r"(?:that|this|it)(?:\s+was|(?:['’]?s|\s+is)\s+(?:(?:the|my|our)\s+)?(?:old|last|previous|former"
    r"|wrong|other))\b[^,.;!?\d]{0,60}[,.;!?]\s*",
    re.I,
)
"""What is said of the old value: "no, that was the old one, mine was 89"."""
_LEAD = re.compile(
    r"(?:(?:no more than|up to|at most|max|for|at|on|in|the|to|an?|shall|should|only|it|its|it's"
    r"|that|thats"
    r"|that's|mine|was|is|be|make|say|just|around|about|let'?s|do|we|we're|are"
    r"|there|will|with|my|want|i|by|of|till|until)\W+)*",
    re.I,
)
"""What stands between a correction and the new value: "no, it's for the 12th"."""
_YEAR = re.compile(r"\W*(?:in\s+)?(?P<year>(?:19|20)\d\d)\b(?![/.:-]?\d)", re.I)
"""A year that takes the place of another: "2 may 1949, sorry, 1947"."""
_MARKS = 3
"""Corrections of one message that are looked at, the last of all."""
_NEAR = 120
"""Characters on each side of a correction in which its two values are looked for."""


@remembered
def _cuts(text: str) -> list[tuple[int, int]]:
    """The end of what each correction takes back, and the start of its new words; last first."""
    marks = [match.span() for match in _MARK.finditer(text)]
    marks = [
        (stop, told.end() if (told := _THAT_WAS.match(text, start)) else start)
        for stop, start in marks
    ]
    return [mark for mark in reversed(marks) if text[: mark[0]].strip()][:_MARKS]


def corrects(text: str) -> bool:
    """Whether a message takes back something that it says, or concludes from it."""
    return bool(_cuts(text))


def _near(text: str, stop: int, start: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """The spans of what is near a correction, before it and behind it."""
    begin = 0 if stop <= _NEAR else max(0, text.find(" ", stop - _NEAR, stop))
    end = len(text) if len(text) <= start + _NEAR else text.rfind(" ", start, start + _NEAR)
    return (begin, stop), (start, end if end > start else len(text))


def corrected(param: Param, reply: Reply, read: Read) -> list[Candidate] | None:
    """The values said last, where the message replaces one of this kind; None where it does not.

    Args:
        param: The parameter.
        reply: The message.
        read: Lists the values of a message for the parameter. It is given what comes before the
            correction, and what comes behind it.
    """
    kind = param.type
    if kind in _OPEN:
        return None
    text = reply.text
    for stop, start in _cuts(text):
        begin, _ = _near(text, stop, start)
        earlier = read(replace(reply, text=text[slice(*begin)]))
        if not earlier:
            continue
        replaced = max(earlier, key=lambda value: value.end)
        if is_impossible(text, replaced.start, replaced.end):
            return None  # nothing is taken back: "I can't do 2, better 3 to 5"
        if kind in _OF_DAYS and any(value.fit > replaced.fit for value in earlier):
            return earlier  # the value of another parameter is taken back
        if replacing := _replacing(param, reply, read, (stop, start), replaced):
            return replacing
    return None


def _replacing(
    param: Param, reply: Reply, read: Read, cut: tuple[int, int], replaced: Candidate
) -> list[Candidate]:
    """What stands behind a correction in the place of a value, completed by that value."""
    kind, text, (stop, start) = param.type, reply.text, cut
    if kind == ParamType.DURATION and _NEW_SENTENCE.search(text, replaced.end, start):
        return []
    behind = _behind(param, reply, read, cut, replaced)
    replacing = [
        candidate
        for candidate in behind
        if candidate.fit >= 0
        and (
            _LEAD.fullmatch(text, start, candidate.start)
            or _is_reasoned(text, stop, start, candidate.start)
        )
    ]
    if kind == ParamType.DATE:
        if not replacing and (year := _YEAR.match(text, start)):
            day = f"{year['year']}{str(replaced.value)[4:]}"
            return [replace(replaced, value=day, end=year.end(), alternatives=())]
        today = reply.now.date().isoformat()
        return [in_month_of(day, replaced.value, least=today) for day in replacing]
    if kind == ParamType.DURATION and not replacing:
        replacing = _in_same_unit(reply, start, replaced, read)
    return _kept_half(replacing, replaced)


def _behind(
    param: Param, reply: Reply, read: Read, cut: tuple[int, int], replaced: Candidate
) -> list[Candidate]:
    """The values behind a correction, with their places in the whole message."""
    kind, (stop, start) = param.type, cut
    _, end = _near(reply.text, stop, start)
    known = dict(reply.filled)
    if kind == ParamType.DATETIME and replaced.reason != "time without a day":
        # "thursday at 5, no make it 5.30"
        known[param.name] = str(replaced.value)[:10] if replaced.undecided else replaced.value
    part = replace(
        reply,
        text=reply.text[slice(*end)],
        prompt=reply.prompt or "?",
        filled=known,
        others=() if kind in _OF_DAYS else reply.others,
    )
    return [
        replace(
            candidate,
            start=start + candidate.start,
            end=start + candidate.end,
            fit=max(candidate.fit, replaced.fit) if kind in _OF_DAYS else candidate.fit,
        )
        for candidate in read(part)
    ]


def _in_same_unit(reply: Reply, start: int, replaced: Candidate, read: Read) -> list[Candidate]:
    """A bare number behind a correction, in the unit of what it replaces: "3 hours, no, 5"."""
    unit = re.search(r"[a-z]+\W*$", reply.text[replaced.start : replaced.end], re.I)
    number = _BARE_NUMBER.match(reply.text, start)
    if unit is None or number is None:
        return []
    said = read(replace(reply, text=f"{number['number']} {unit.group()}"))
    place = number.span("number")
    return [replace(value, start=place[0], end=place[1]) for value in said[:1]]


_NEW_SENTENCE = re.compile(r"[.!?]\s+(?:and|but|also)\b", re.I)
"""Where something else begins: "just one week. and she can't come, so it's 6"."""
_BARE_NUMBER = re.compile(
    rf"{_LEAD.pattern}(?P<number>\d+(?:\.\d+)?|{'|'.join(UNITS)})\b(?![.:/]?\d)", re.I
)


_TURNS = re.compile(r"\b(?:no|nope|wait|hang on|hold on|scratch that|i meant?|actually)\b", re.I)
_REASON = re.compile(r"[^.;!?\d]{1,50}(?:\.+\s+)?")
_LEADS_ON = re.compile(r"(?:[,.]|\b(?:so|on|for|at|says))(?: the)?\s*$", re.I)
_GIVES_MORE = re.compile(r"\b(?:and|also|until|till|to|back|by)\b", re.I)


def _is_reasoned(text: str, stop: int, start: int, value: int) -> bool:
    """Whether a few words say why, before the new value: "friday. no, she has piano, saturday"."""
    return (
        _TURNS.search(text, stop, start) is not None
        and _REASON.fullmatch(text, start, value) is not None
        and _LEADS_ON.search(text[start:value]) is not None
        and not _GIVES_MORE.search(text, start, value)
    )


def _kept_half(replacing: Sequence[Candidate], replaced: Candidate) -> list[Candidate]:
    """The candidates; an open half of the day is that of the replaced time: "8 pm, no, 9"."""
    return [
        (
            _nearest_to(replaced, candidate)
            if candidate.undecided and not replaced.undecided
            else candidate
        )
        for candidate in replacing
    ]


def _nearest_to(replaced: Candidate, candidate: Candidate) -> Candidate:
    readings = sorted(
        (candidate.value, *candidate.alternatives),
        key=lambda value: abs(_minute(value) - _minute(replaced.value)),
    )
    return replace(candidate, value=readings[0], alternatives=tuple(readings[1:]), undecided=False)


def _minute(value: object) -> int:
    hours, minutes = str(value)[-5:].split(":")
    return 60 * int(hours) + int(minutes)
