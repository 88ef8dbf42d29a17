"""A user who corrects himself within one message: of "Friday, no wait, Saturday" the last said counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from langmem_ext.waiting.catalog.param import ParamType
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.reply import Reply

Read = Callable[[Reply], list[Candidate]]

_OPEN = frozenset((ParamType.TEXT, ParamType.NAME, ParamType.PLACE, ParamType.PERSON, ParamType.BOOLEAN))
"""Types of which the words after a correction may be anything at all."""

_MARK = re.compile(
    r"(?:[\s,.;:!–—-]+(?:no|nope|oops|sorry|wait|hang on|hold on|hmm+|scratch that|i meant?|i mean to say|actually|or rather|rather"
    r"|make (?:that|it)|correction|better|my (?:bad|mistake)|let's say|apologies)\b)+[\s,.;:!–—-]+",
    re.I,
)
_LEAD = re.compile(
    r"(?:(?:for|at|on|in|the|to|an?|it|it's|is|be|make|say|just|around|about|let's|do|we|we're|are|there|will|with|my|want|i|by|of)\W+)*",
    re.I,
)
_MARKS = 8
"""Corrections of one message that are looked at."""


def _cuts(text: str) -> Iterator[tuple[int, int]]:
    """Where what is taken back ends and where what is said instead begins, the last correction first."""
    marks = [match.span() for _, match in zip(range(_MARKS), _MARK.finditer(text), strict=False)]
    yield from reversed([mark for mark in marks if text[: mark[0]].strip()])


def corrected(kind: str, reply: Reply, read: Read) -> list[Candidate] | None:
    """What was said last, where the message takes a value of this kind back and says another one at once; None where it does not.

    Args:
        kind: The parameter's type.
        reply: The message.
        read: Lists the values of a message for the parameter. It is given one half of the message and blanks for the other.
    """
    if kind in _OPEN:
        return None
    text = reply.text
    for stop, start in _cuts(text):
        replaced = read(replace(reply, text=text[:stop]))
        if not replaced:
            continue
        said = read(replace(reply, text=" " * start + text[start:], prompt=reply.prompt or "?"))
        said = [candidate for candidate in said if _LEAD.fullmatch(text, start, candidate.start)]
        if said:
            return _kept_half(said, replaced[-1])
    return None


def _kept_half(said: Sequence[Candidate], replaced: Candidate) -> list[Candidate]:
    """Times that leave their half of the day open are in that of the time which they replace: "8 pm, no, 9"."""
    return [_nearest_to(replaced, candidate) if candidate.undecided and not replaced.undecided else candidate for candidate in said]


def _nearest_to(replaced: Candidate, candidate: Candidate) -> Candidate:
    readings = sorted((candidate.value, *candidate.alternatives), key=lambda value: abs(_minute(value) - _minute(replaced.value)))
    return replace(candidate, value=readings[0], alternatives=tuple(readings[1:]), undecided=False)


def _minute(value: object) -> int:
    hours, minutes = str(value)[-5:].split(":")
    return 60 * int(hours) + int(minutes)
