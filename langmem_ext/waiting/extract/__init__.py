"""Reading of parameter values from user messages: pure functions, one module per type.

No model and no network is used.

Every type module has one function `read(param, reply)`, which lists the spans that may be the
value, each with its confidence and with how well it fits this parameter. What is common to all
types stands here: values of other parameters are left to them, values are validated, and a
reply without a value is told apart (no preference, does not have it, asks back).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from types import MappingProxyType

from pydantic import JsonValue

from langmem_ext.errors import InvalidInput
from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate, best
from langmem_ext.waiting.extract.choices import boolean, enum
from langmem_ext.waiting.extract.codes import email, identifier, phone, url
from langmem_ext.waiting.extract.dates import date, moment, time
from langmem_ext.waiting.extract.english.attitude import (
    asks_back,
    asks_preference,
    does_not_care,
    has_none,
    lacks,
    puts_off,
    says_no,
)
from langmem_ext.waiting.extract.english.self_correction import corrected
from langmem_ext.waiting.extract.english.tokens import trim
from langmem_ext.waiting.extract.names import address, name, person, place
from langmem_ext.waiting.extract.names.openness import introduces
from langmem_ext.waiting.extract.names.texts import text as free_text
from langmem_ext.waiting.extract.numbers import duration, integer, money, number
from langmem_ext.waiting.extract.reply import LONGEST, Reply, without_wide_gaps
from langmem_ext.waiting.extract.valid_readings import valid_readings
from langmem_ext.waiting.extract.validity import problem_of

__all__ = ["HALF_OPEN", "LONGEST", "OUT_OF_BOUNDS", "Reply", "extract", "find", "problem_of"]

OUT_OF_BOUNDS = "out of bounds"
"""The reason where the message names a value that the parameter's bounds exclude."""
HALF_OPEN = "morning or evening"
"""The reason where the message names an hour and nothing says which half of the day it is in."""

_READERS: Mapping[str, Callable[[Param, Reply], list[Candidate]]] = {
    ParamType.ENUM: enum.read,
    ParamType.BOOLEAN: boolean.read,
    ParamType.INTEGER: integer.read,
    ParamType.NUMBER: number.read,
    ParamType.MONEY: money.read,
    ParamType.DATE: date.read,
    ParamType.TIME: time.read,
    ParamType.DATETIME: moment.read,
    ParamType.DURATION: duration.read,
    ParamType.PLACE: place.read,
    ParamType.PERSON: person.read,
    ParamType.NAME: name.read,
    ParamType.ADDRESS: address.read,
    ParamType.EMAIL: email.read,
    ParamType.PHONE: phone.read,
    ParamType.URL: url.read,
    ParamType.IDENTIFIER: identifier.read,
    ParamType.TEXT: free_text.read,
}
_HALVES: Mapping[str, Callable[[Param, Reply], Extraction | None]] = {
    ParamType.DATE: date.half_said,
    ParamType.DATETIME: moment.half_said,
}
"""What reads a part of a value, which the next answer completes."""
_NO_CLAIM = frozenset((ParamType.TEXT, ParamType.BOOLEAN))
"""Types whose values take no span away from another parameter."""
_NAMELESS = frozenset((ParamType.TEXT, ParamType.PLACE, ParamType.ADDRESS))
"""Types of which no value is what follows "my name is"."""
_NOTHING: Mapping[str, JsonValue] = MappingProxyType({})
_OWN = 0.9
"""Confidence in what an extractor of the application reads and says nothing about."""
_MOST = 16
"""Readings of one message that are looked at: one that holds more answers nothing."""


def extract(param: Param, reply: Reply) -> Extraction:
    """Read a parameter's value from a reply.

    Of a message the first 1,000 characters are read; a free text that is all of them goes on.

    The result is the same for the same arguments. A filled value is plain JSON of the parameter's
    type, matches its pattern, is one of its allowed values and inside its bounds; of several
    readings of the same words the one inside the bounds is taken. `raw` is the part of the message
    at `span`. A value of an open type (a name, a place, text) that nothing in the message marks has
    a confidence of 0.5 or less.

    Args:
        param: What is asked for.
        reply: The message and its context; without a prompt only clearly marked values are taken.

    Returns:
        `filled`, or why not: `dontcare`, `declined`, `question` or `abstained`. With the reason
        `OUT_OF_BOUNDS` the message named a value that is not allowed, and `problem` says why; with
        `HALF_OPEN` it named an hour, and `choices` are its two readings.

    Raises:
        InvalidInput: The parameter's pattern is no regular expression, or its type has no
            extractor.
    """
    text = reply.text[:LONGEST]
    if not text.strip():
        return Extraction("abstained", reason="empty message")
    narrow, place_before = without_wide_gaps(text)
    extraction = _extraction(param, replace(reply, text=narrow))
    if extraction.span is None or narrow == reply.text:
        return extraction
    start, end = map(place_before, extraction.span)
    longer = param.type == ParamType.TEXT and len(reply.text) > LONGEST
    if longer and extraction.reason in free_text.WHOLE:
        return _with_rest(param, extraction, reply.text, start)
    return replace(extraction, raw=text[start:end], span=(start, end))


def _with_rest(param: Param, extraction: Extraction, text: str, start: int) -> Extraction:
    """A free text that is as long as what is read of a message, with the rest of the message."""
    start, end = trim(text, start, len(text))
    try:
        value = param.normalised(text[start:end])
    except ValueError:
        return Extraction("abstained", reason="no such text is allowed")
    return replace(extraction, value=value, raw=text[start:end], span=(start, end))


def _extraction(param: Param, reply: Reply) -> Extraction:
    candidates = _own(param, reply, _read(param, reply))
    known = reply.filled.get(param.name)
    chosen = best(reply.text, [other for other in candidates if other.value != known]) or best(
        reply.text, candidates
    )
    if chosen:
        return _taken(param, reply, chosen)
    half = said(param, reply) if (said := _HALVES.get(param.type)) else None
    if reply.strict:
        return half or Extraction("abstained", reason="no marked value")
    return half or _stance(reply)


def _read(param: Param, reply: Reply) -> list[Candidate]:
    """The message's candidates for the parameter, corrections applied.

    Only readings that the parameter may hold are kept.
    """
    if (
        param.type in _NAMELESS
        and introduces(reply.text)
        and "name" not in f"{param.name} {param.description} {reply.prompt}".lower()
    ):
        return []
    latest = corrected(param, reply, lambda half: _spans(param, half))
    return valid_readings(param, _spans(param, reply) if latest is None else latest, reply.now)


def _spans(param: Param, reply: Reply) -> list[Candidate]:
    """The spans that may be a value, with their normalised values.

    The application's extractor finds them, else the type's own.
    """
    if (own := param.extractor) is not None:
        candidates = [_candidate(param, reply, extraction) for extraction in own(param, reply)]
    elif (reader := _READERS.get(param.type)) is not None:
        candidates = reader(param, reply)
    else:
        raise InvalidInput(
            f"parameter {param.name!r} is of the type {param.type!r}, which has no extractor: bind"
            f" the catalog with build_waiting_graph(…, extractors={{{param.type!r}: …}}) or"
            " with_tools(…, Extensions(…))"
        )
    if param.open_values and not candidates and not reply.strict:
        candidates = free_text.read(
            param.model_copy(update={"enum": {}, "type": ParamType.TEXT}), reply
        )
    if len(candidates) > _MOST:
        candidates = sorted(candidates, key=lambda candidate: candidate.start)[:_MOST]
    if param.normaliser is None:
        return candidates
    return [normal for candidate in candidates if (normal := _normal(param, candidate)) is not None]


def _candidate(param: Param, reply: Reply, extraction: Extraction) -> Candidate:
    """What the application's extractor has read, as a candidate.

    Raises:
        InvalidInput: It is not of the form that is asked for.
    """
    start, end = extraction.span or (0, 0)
    plain = isinstance(extraction.value, str | int | float)
    if extraction.status != "filled" or not plain or not 0 <= start < end <= len(reply.text):
        raise InvalidInput(
            f"the extractor of parameter {param.name!r} gave an Extraction that cannot be used: it"
            " must be 'filled', with a value (text, a number or a truth value) and the span of the"
            " message that it stands in"
        )
    return Candidate(
        start,
        end,
        extraction.value,
        extraction.confidence or _OWN,
        reason=extraction.reason or f"read as {param.type}",
    )


def _normal(param: Param, candidate: Candidate) -> Candidate | None:
    """The candidate with values from the parameter's normaliser; None when it accepts none."""
    values = []
    for value in (candidate.value, *candidate.alternatives):
        with suppress(ValueError):
            values.append(param.normalised(value))
    return replace(candidate, value=values[0], alternatives=tuple(values[1:])) if values else None


def _taken(param: Param, reply: Reply, chosen: Candidate) -> Extraction:
    """The chosen value as an extraction.

    It abstains when the bounds exclude the value, or when two readings of it are left.
    """
    span, confidence = (chosen.start, chosen.end), round(chosen.confidence, 2)
    raw = reply.text[chosen.start : chosen.end]
    if chosen.refused:
        problem = problem_of(param, chosen.value, now=reply.now) or ""
        return Extraction("abstained", None, raw, span, confidence, OUT_OF_BOUNDS, problem=problem)
    if chosen.undecided:
        return Extraction(
            "abstained",
            None,
            raw,
            span,
            confidence,
            HALF_OPEN,
            (chosen.value, *chosen.alternatives),
        )
    return Extraction("filled", chosen.value, raw, span, confidence, chosen.reason)


def find(
    param: Param,
    text: str,
    *,
    now: datetime,
    others: Sequence[Param] = (),
    filled: Mapping[str, JsonValue] = _NOTHING,
) -> Extraction:
    """Read the parameter's value from a message that answers no question.

    Only a value that the message clearly marks is read.

    Args:
        param: What to look for.
        text: The message.
        now: When it was written: what "tomorrow" counts from.
        others: Parameters whose values the message may hold as well.
        filled: Values known already, by parameter name.

    Returns:
        `filled` or `abstained`.

    Raises:
        InvalidInput: The parameter's pattern is no regular expression.
    """
    return extract(param, Reply(text, now=now, others=others, filled=filled))


def _own(param: Param, reply: Reply, candidates: list[Candidate]) -> list[Candidate]:
    """The candidates that no other parameter fits better."""
    others = [
        other for other in reply.others if other.name != param.name and other.type not in _NO_CLAIM
    ]
    if not candidates or not others or param.type == ParamType.BOOLEAN:
        return candidates
    theirs = [claim for other in others for claim in _spans(other, _seen_from(other, param, reply))]
    return [
        own
        for own in candidates
        if not any(
            own.overlaps(c.start, c.end) and (c.fit, c.confidence) > (own.fit, own.confidence)
            for c in theirs
        )
    ]


def _seen_from(other: Param, param: Param, reply: Reply) -> Reply:
    """The reply with the two parameters' parts exchanged."""
    return replace(
        reply,
        others=[param, *(third for third in reply.others if third.name != other.name)],
    )


def _stance(reply: Reply) -> Extraction:
    """Why a reply holds no value.

    When the question asks for a preference, "no" or having none means no preference.
    """
    text = reply.text
    if does_not_care(text):
        return Extraction("dontcare", confidence=0.8, reason="no preference")
    if asks_preference(reply.prompt) and (has_none(text) or (says_no(text) and not puts_off(text))):
        return Extraction("dontcare", confidence=0.6, reason="none in mind")
    if lacks(text) or puts_off(text):
        return Extraction("declined", confidence=0.7, reason="does not have or give it")
    if asks_back(text) or text.rstrip().endswith("?"):
        return Extraction("question", confidence=0.7, reason="asks back")
    return Extraction("abstained", reason="no value found")
