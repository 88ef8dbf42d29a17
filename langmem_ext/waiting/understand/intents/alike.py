"""Several requests of one kind in a message: "2 sheets of plywood and 4 rolls of film". Pure.

They are told by their form: two parts of a sentence, joined by "and", give the same parameters in
the same order, each with values of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import Final, TypeAlias

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract.english.self_correction import corrects
from langmem_ext.waiting.extract.english.tokens import blanked
from langmem_ext.waiting.understand.acts.statements import tells
from langmem_ext.waiting.understand.values import Reading, read_values, sure_values

Span: TypeAlias = tuple[int, int]

MOST: Final = 4
"""Requests of one kind that a message is taken apart into, at most."""

_JOINTS: Final = 6
"""Places of a message at which it may be taken apart, at most."""

_LONGEST: Final = 160
"""Characters of a sentence that makes two requests of one form, at most."""

_JOINT: Final = re.compile(
    r"\s*,?\s+(?:and(?:\s+(?:also|then))?|plus|as well as)\s+|\s*[,;&+]\s+", re.IGNORECASE
)
_BETWEEN: Final = re.compile(
    r"\s*(?:[,;&+]|,?\s*(?:and|plus|as well as))\s+(?:(?:the|for|order|booking)\s+)*", re.IGNORECASE
)
"""All that stands between two numbers that are both meant: "cancel CK-305 and CK-306"."""
_SENTENCE: Final = re.compile(r"[^.!?\n]+(?:[.!?](?!\s|$)[^.!?\n]*)*")

_THINGS: Final = frozenset(
    {
        ParamType.IDENTIFIER,
        ParamType.ENUM,
        ParamType.INTEGER,
        ParamType.NUMBER,
        ParamType.MONEY,
    }
)
"""Types that say what is wanted: two days alone, or two names with their numbers, are one
request."""


def one_by_one(params: Sequence[Param], reading: Reading) -> list[str]:
    """The message for each request that it makes of one kind; the whole where it makes one.

    What is said beside them stays in each: who asks, and a day that all are for.

    Args:
        params: The parameters that a request of this kind takes.
        reading: The message.
    """
    requests: list[Span] = []
    rest = reading
    while len(requests) < MOST and (two := _two(params, rest)):
        first, second = two
        requests = [*requests[:-1], first, second]
        rest = _without(rest, (first[0], second[0]))
    if not requests:
        return [reading.text]
    begin, end = requests[0][0], requests[-1][1]
    return [_without(reading, (begin, start), (stop, end)).text for start, stop in requests]


def _two(params: Sequence[Param], reading: Reading) -> tuple[Span, Span] | None:
    """Where the values of the first two requests of a message are; None where it makes one."""
    text = reading.text
    for begin, (stop, start), end in islice(_joints(text), _JOINTS):
        left = read_values(params, _without(reading, (0, begin), (stop, len(text))))
        spans = [value.span for value in left.values() if value.span]
        if not spans or tells(text[begin:stop]):
            continue
        lead = min(spans)[0]
        right = read_values(params, _without(reading, (0, begin), (lead, start), (end, len(text))))
        pairs = {
            name: (left[name].span or (0, 0), right[name].span or (0, 0))
            for name in left
            if name in right and left[name].value != right[name].value
        }
        pairs = {name: pair for name, pair in pairs.items() if start <= pair[1][0]}
        if _are_two(params, pairs, text) and not _are_known(params, reading, pairs, right):
            firsts, seconds = zip(*pairs.values(), strict=True)
            return _around(firsts), _around(seconds)
    return None


def _around(spans: Iterable[Span]) -> Span:
    starts, ends = zip(*spans, strict=True)
    return min(starts), max(ends)


def _joints(text: str) -> Iterator[tuple[int, Span, int]]:
    """Where a sentence may join two requests: where it begins, what joins them, where it ends.

    A third may follow the second.
    """
    for sentence in _SENTENCE.finditer(text):
        begin, end = sentence.span()
        if end - begin > _LONGEST:
            continue
        joints = [joint.span() for joint in _JOINT.finditer(text, begin, end)]
        yield from ((begin, joint, end) for joint in joints)
        yield from ((begin, joint, after[0]) for joint, after in pairwise(joints))


def _without(reading: Reading, *spans: Span) -> Reading:
    text = reading.text
    for span in spans:
        text = blanked(text, span)
    return replace(reading, text=text)


def _are_two(params: Sequence[Param], pairs: Mapping[str, tuple[Span, Span]], text: str) -> bool:
    """Whether the values of two parts are those of two requests."""
    types = {param.name: param.type for param in params}
    if not any(types[name] in _THINGS for name in pairs):
        return False
    firsts, seconds = zip(*pairs.values(), strict=True)
    if corrects(text[_around(firsts)[1] - 1 : _around(seconds)[0]]):
        return False  # "2 sheets, no, 3 boards"
    if len(pairs) == 1:
        [(name, (first, second))] = pairs.items()
        joined = _BETWEEN.fullmatch(text, first[1], second[0]) is not None
        return types[name] is ParamType.IDENTIFIER and joined
    return sorted(pairs, key=lambda name: pairs[name][0]) == sorted(
        pairs, key=lambda name: pairs[name][1]
    )


def _are_known(
    params: Sequence[Param],
    reading: Reading,
    pairs: Mapping[str, tuple[Span, Span]],
    right: Mapping[str, Extraction],
) -> bool:
    """Whether one request takes the values of both parts: "on friday at 5, back on sunday at 3"."""
    known = sure_values(params, reading)
    return any(
        known[name] == right[other].value for name in known for other in pairs if name != other
    )
