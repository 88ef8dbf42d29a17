"""Reading a parameter's value from what a user said: one module per type, no model, no network, pure functions.

Every type module has one function `read(param, reply)`, which lists the spans that may be the value, each with its confidence and with how
well it fits this parameter. What is common to all types stands here: values of other parameters are left to them, values are validated, a
proposed value can be accepted, and a reply without a value is told apart (no preference, does not have it, asks back).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate, best
from langmem_ext.waiting.extract.choices import boolean, enum
from langmem_ext.waiting.extract.codes import email, identifier, phone
from langmem_ext.waiting.extract.dates import date, time
from langmem_ext.waiting.extract.english.attitude import (
    asks_back,
    asks_preference,
    does_not_care,
    has_none,
    lacks,
    puts_off,
    says_no,
    says_yes,
)
from langmem_ext.waiting.extract.english.correction import corrected
from langmem_ext.waiting.extract.names import address, name, person, place
from langmem_ext.waiting.extract.names import text as free_text
from langmem_ext.waiting.extract.numbers import integer, money, number
from langmem_ext.waiting.extract.reading import settled
from langmem_ext.waiting.extract.reply import Reply
from langmem_ext.waiting.extract.validity import is_valid, problem_of

__all__ = ["HALF_OPEN", "OUT_OF_BOUNDS", "Reply", "extract", "find", "problem_of"]

OUT_OF_BOUNDS = "out of bounds"
"""The reason where the message names a value that the parameter's bounds exclude."""
HALF_OPEN = "morning or evening"
"""The reason where the message names an hour and nothing says which half of the day it is in."""

_READERS: Mapping[ParamType, Callable[[Param, Reply], list[Candidate]]] = {
    ParamType.ENUM: enum.read,
    ParamType.BOOLEAN: boolean.read,
    ParamType.INTEGER: integer.read,
    ParamType.NUMBER: number.read,
    ParamType.MONEY: money.read,
    ParamType.DATE: date.read,
    ParamType.TIME: time.read,
    ParamType.PLACE: place.read,
    ParamType.PERSON: person.read,
    ParamType.NAME: name.read,
    ParamType.ADDRESS: address.read,
    ParamType.EMAIL: email.read,
    ParamType.PHONE: phone.read,
    ParamType.IDENTIFIER: identifier.read,
    ParamType.TEXT: free_text.read,
}
_CLAIMS = frozenset(_READERS) - {ParamType.TEXT, ParamType.BOOLEAN}
"""Types whose values may take a span away from another parameter."""
_LONGEST = 4_000
"""Characters of a message in which a value is looked for; an open text may be longer."""


def extract(param: Param, reply: Reply) -> Extraction:
    """Read the parameter's value from an attempt to answer.

    The result is the same for the same arguments. A filled value is plain JSON of the parameter's type, matches its pattern, is one of
    its allowed values and inside its bounds; of several readings of the same words the one inside the bounds is taken. `raw` is the part
    of the message at `span`. A value of an open type (a name, a place, text) that nothing in the message marks has a confidence of 0.5
    or less.

    Args:
        param: What is asked for.
        reply: The message and what stands around it; without a prompt only clearly marked values are taken.

    Returns:
        `filled`, or why not: `dontcare`, `declined`, `question` or `abstained`. With the reason `OUT_OF_BOUNDS` the message named a value
        that is not allowed, and `problem` says why; with `HALF_OPEN` it named an hour, and `choices` are its two readings.

    Raises:
        InvalidInput: The parameter's pattern is no regular expression.
    """
    if not reply.text.strip():
        return Extraction("abstained", reason="empty message")
    if len(reply.text) > _LONGEST and not (param.type == ParamType.TEXT and free_text.is_free(param)):
        reply = replace(reply, text=reply.text[:_LONGEST])
    chosen = best(reply.text, _own(param, reply, _read(param, reply)))
    accepted = None if reply.strict else _suggestion(param, reply, chosen)
    if accepted:
        return accepted
    if chosen:
        return _taken(param, reply, chosen)
    return Extraction("abstained", reason="no marked value") if reply.strict else _stance(reply)


def _read(param: Param, reply: Reply) -> list[Candidate]:
    """What the message may give for the parameter, as far as it was not taken back, in the readings that the parameter may hold."""
    reader = _READERS[param.type]
    found = corrected(param.type, reply, lambda half: reader(param, half))
    return settled(param, reader(param, reply) if found is None else found, reply.now)


def _taken(param: Param, reply: Reply, chosen: Candidate) -> Extraction:
    """The chosen value; or its words alone, where the bounds exclude it or where they leave open what they mean."""
    span, confidence = (chosen.start, chosen.end), round(chosen.confidence, 2)
    raw = reply.text[chosen.start : chosen.end]
    if chosen.refused:
        problem = problem_of(param, chosen.value, now=reply.now) or ""
        return Extraction("abstained", None, raw, span, confidence, OUT_OF_BOUNDS, problem=problem)
    if chosen.undecided:
        return Extraction("abstained", None, raw, span, confidence, HALF_OPEN, (chosen.value, *chosen.alternatives))
    return Extraction("filled", chosen.value, raw, span, confidence, chosen.reason)


def find(param: Param, text: str, *, now: datetime, others: Sequence[Param] = ()) -> Extraction:
    """Read the parameter's value from a message that answers no question: only what the message clearly marks.

    Args:
        param: What to look for.
        text: The message.
        now: When it was written: what "tomorrow" counts from.
        others: Parameters whose values the message may hold as well.

    Returns:
        `filled` or `abstained`.

    Raises:
        InvalidInput: The parameter's pattern is no regular expression.
    """
    return extract(param, Reply(text, now=now, others=others))


def _own(param: Param, reply: Reply, found: list[Candidate]) -> list[Candidate]:
    """The candidates that no other parameter fits better."""
    others = [other for other in reply.others if other.name != param.name and other.type in _CLAIMS]
    if not found or not others or param.type == ParamType.BOOLEAN:
        return found
    theirs = [claim for other in others for claim in _READERS[other.type](other, _seen_from(other, param, reply))]
    return [
        own for own in found if not any(own.overlaps(c.start, c.end) and (c.fit, c.confidence) > (own.fit, own.confidence) for c in theirs)
    ]


def _seen_from(other: Param, param: Param, reply: Reply) -> Reply:
    """The reply with the two parameters' parts exchanged."""
    return replace(reply, others=[param, *(third for third in reply.others if third.name != other.name)], suggested=None)


def _suggestion(param: Param, reply: Reply, chosen: Candidate | None) -> Extraction | None:
    """A proposed value that the user accepts or names again; None when nothing was proposed or something else was said."""
    value = reply.suggested
    if value is None or (chosen and chosen.fit > 0) or not is_valid(param, value):
        return None
    said = reply.text.lower().find(str(value).lower())
    if said >= 0 and not says_no(reply.text):
        end = said + len(str(value))
        return Extraction("filled", value, reply.text[said:end], (said, end), 0.85, "names the proposed value")
    if says_yes(reply.text) and not (chosen and chosen.confidence > 0.8):
        return Extraction("filled", value, confidence=0.85, reason="accepts the proposed value")
    if chosen is None and says_no(reply.text):
        return Extraction("declined", confidence=0.8, reason="refuses the proposed value")
    return None


def _stance(reply: Reply) -> Extraction:
    """Why a reply holds no value; to be without one, or "no", when asked for a preference is to have none."""
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
