"""Other values of what is known already: "sorry, I meant O-2", "no wait, saturday", "4.30 then".

English; pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract.codes.identifier import form_of
from langmem_ext.waiting.extract.english.attitude import NO
from langmem_ext.waiting.extract.english.tokens import blanked, blanked_where
from langmem_ext.waiting.extract.english.told import tells_of_others
from langmem_ext.waiting.understand.acts.statements import WHAT, is_meant, names
from langmem_ext.waiting.understand.clauses import (
    clauses_of,
    without,
    words_without_values,
)
from langmem_ext.waiting.understand.corrections.cues import (
    BEFORE_NEW,
    CORRECTED,
    DISOWNED,
    INSTEAD,
    ONE_OF_US,
    STAYS,
    asks_something,
    is_value_alone,
    says_more,
    takes_something_back,
    without_denied,
)
from langmem_ext.waiting.understand.corrections.exchange import exchanged_values
from langmem_ext.waiting.understand.corrections.people import completed_names, names_alone
from langmem_ext.waiting.understand.corrections.said import FEW_WORDS, Anew, Said, overlap
from langmem_ext.waiting.understand.corrections.unmarked import (
    COUNTED,
    PART,
    PLAIN_TYPES,
    SO_NOW,
    WANTED,
    unmarked_values,
)
from langmem_ext.waiting.understand.intents.similarity import units_of
from langmem_ext.waiting.understand.values import (
    SURE,
    Reading,
    alike,
    read_values,
    spans_of,
    values_of,
)


def other_values(params: Sequence[Param], said: Said) -> Anew:
    """The other values that a message gives of these parameters, whatever question it meets.

    Parameters without a value only keep what is theirs from the others, unless values are shown.
    """
    text = blanked_where(said.text, WHAT)
    text = without(text, [clause for clause in clauses_of(text) if asks_something(clause)])
    exchanged, text = exchanged_values(params, text, said)
    exchanged |= completed_names(params, text, said) or names_alone(params, text, said)
    text, denied = without_denied(text)
    cue = next((match for pattern in CORRECTED if (match := pattern.search(text))), None)
    taking = denied or cue is not None or takes_something_back(text)
    wished = any(WANTED.match(part.group()) for part in PART.finditer(text))
    left = [param for param in params if param.name not in exchanged]
    found, text = _marked(left, blanked_where(text, STAYS), said)
    unsure = any(param.name in found and param.type in COUNTED for param in left)
    if taking or said.shown is not None:
        bare, several = unmarked_values(left, text, found, cue, said)
        unsure = unsure or several
        led = taking or wished or BEFORE_NEW.match(text) or SO_NOW.search(text)
        found = {**found, **bare} if led else found
    elif bare := _value_alone(left, text, said):
        return Anew(values_of({**bare, **exchanged}), certain=True)
    found = _whole_addresses(_without_told(found, text), left, said)
    certain = _certain(found, left, text, cue, said, denied=denied) if taking else {}
    likely = {
        param.name: found[param.name].value
        for param in left
        if param.name in found and _is_likely(param, found[param.name], left, text, said)
    }
    if certain := certain or _alone(found, left, text, said) or exchanged:
        spans = spans_of(certain)
        beside = {
            name: value
            for name, value in likely.items()
            if not overlap(found[name].span or (0, 0), spans)
        }
        return Anew({**beside, **values_of(certain), **values_of(exchanged)}, certain=True)
    return Anew(likely, unsure=unsure)


def _value_alone(params: Sequence[Param], text: str, said: Said) -> dict[str, Extraction]:
    """The one known value that a message is alone, where it answers nothing: "ok 1.30"."""
    if said.asked is None or said.answered or len(text.split()) > FEW_WORDS:
        return {}
    bare, _ = unmarked_values(params, text, {}, None, said)
    own = [param for param in params if param.name in bare]
    if len(bare) != 1 or says_more(words_without_values(text, spans_of(bare)), own):
        return {}
    return bare


def _whole_addresses(
    found: Mapping[str, Extraction], params: Sequence[Param], said: Said
) -> dict[str, Extraction]:
    """The values, a house in the known street with the known town: "oh it's 79 Quarry Street"."""
    whole = dict(found)
    for param in params:
        extraction, known = found.get(param.name), said.known.get(param.name)
        if param.type is not ParamType.ADDRESS or extraction is None or not isinstance(known, str):
            continue
        number = re.match(r"\d+[A-Za-z]?\s+", str(extraction.value))
        street = str(extraction.value)[number.end() :].lower() if number else ""
        behind = re.search(rf"\d+[A-Za-z]?\s+{re.escape(street)}(?=,)", known, re.IGNORECASE)
        if street and behind:
            value = f"{extraction.value}{known[behind.end() :]}"
            whole[param.name] = replace(extraction, value=value)
    return whole


_WISHED_FOR: Final = re.compile(
    r"\b(?:(?:can|could|may) (?:we|i|you|it)|make it|(?:i|we)(?:['’]?d| would) (?:like|prefer))\b"
    r"[^.,;!?]*$",
    re.IGNORECASE,
)
"""A wish, up to what it is for."""


def _without_told(found: Mapping[str, Extraction], text: str) -> dict[str, Extraction]:
    """The values without those that a part only tells, where another part wishes for one.

    "Can we make it two hours, the babysitter has to leave at ten" moves no beginning to ten.
    """
    wished, told = set(), set()
    for name, extraction in found.items():
        if extraction.span is None:
            continue
        begin = max(
            (part.start() for part in PART.finditer(text) if part.start() <= extraction.span[0]),
            default=0,
        )
        lead = text[begin : extraction.span[0]]
        if _WISHED_FOR.search(lead):
            wished.add(name)
        elif tells_of_others(lead):
            told.add(name)
    return {name: value for name, value in found.items() if not wished or name not in told}


def _marked(params: Sequence[Param], text: str, said: Said) -> tuple[dict[str, Extraction], str]:
    """The other values that are marked as such, and the message without known ones said again.

    None that may answer the question that waits.
    """
    pool = [
        param
        for param in params
        if param.name in said.known or said.shown is not None or names(text, param)
    ]
    reading = Reading(text, said.now, filled=said.known, about=said.about)
    read = read_values(pool, reading)
    found = {
        param.name: extraction
        for param in pool
        if (extraction := read.get(param.name))
        and (param.name in said.known or said.shown is not None)
        and extraction.value != said.known.get(param.name)
        and not (extraction.span and DISOWNED.match(text[extraction.span[1] :]))
        and not (extraction.span and ONE_OF_US.match(text, extraction.span[0]))
        and (names(text, param) or not _may_answer(param, extraction, said))
    }
    again = [
        extraction.span
        for name, extraction in read.items()
        if extraction.span and extraction.value == said.known.get(name)
    ]
    for start, end in again if found else ():
        text = blanked(text, (start, end))
    return found, text


def _may_answer(param: Param, extraction: Extraction, said: Said) -> bool:
    """Whether what was found for `param` may as well be the answer to the question that waits."""
    asked = said.asked
    if asked is None or asked.type is not param.type:
        return False
    form = form_of(asked.pattern, asked.examples)
    return form is None or re.fullmatch(form, str(extraction.value), re.IGNORECASE) is not None


def _certain(
    found: Mapping[str, Extraction],
    params: Sequence[Param],
    text: str,
    cue: re.Match[str] | None,
    said: Said,
    *,
    denied: bool,
) -> dict[str, Extraction]:
    """The values that the message certainly means: all it says, or right behind "I meant"."""
    rest = words_without_values(text, spans_of(found))
    own = [param for param in params if param.name in found]
    if denied or not says_more(rest, own):
        return dict(found)
    begin = cue.start("value") if cue else len(text)
    behind = {
        name: extraction
        for name, extraction in found.items()
        if extraction.span and extraction.span[0] >= begin
    }
    first = min((start for start, _ in spans_of(behind)), default=begin)
    own = [param for param in params if param.name in behind]
    return {} if says_more(text[begin:first], own) else behind


def _alone(
    found: Mapping[str, Extraction], params: Sequence[Param], text: str, said: Said
) -> dict[str, Extraction]:
    """The values of a message that says nothing but these, where they are shown."""
    if said.shown is None:
        return {}
    words = words_without_values(text, spans_of(found))
    own = [param for param in params if param.name in found]
    return dict(found) if is_value_alone(words, said.shown, own) else {}


def _is_likely(
    param: Param, extraction: Extraction, params: Sequence[Param], text: str, said: Said
) -> bool:
    """Whether a message that may say more means a value, which takes the place of a known one.

    Nobody speaks of a plain value by the way. Of two alike the message must say which it means.
    """
    span = extraction.span
    if extraction.confidence <= SURE or not span or overlap(span, said.taken):
        return False
    if said.unwanted or param.name not in said.known:
        return True
    anew = takes_something_back(text)
    address = param.type is ParamType.ADDRESS
    certain = said.shown is not None and extraction.confidence >= _CERTAIN
    place = address and (certain or NO.match(text) is not None)
    decides = said.shown is not None and param.type is ParamType.BOOLEAN
    named = _IS_THE_ONE.match(text, span[1]) or _NO_ITS.fullmatch(text, 0, span[0])
    plain = param.type in PLAIN_TYPES or decides or place or named or INSTEAD.search(text)
    known = [other for other in params if other.name in said.known]
    beside = _beside_answers(text, said)
    only = (
        beside[slice(*span)].strip()
        and not alike(param, known)
        and len(units_of(blanked(beside, span))) <= _FEW_TELLING
    )
    told = anew or said.shown is not None or only
    return bool(plain and told and is_meant(text, span, anew=anew))


_IS_THE_ONE: Final = re.compile(
    r"\s*(?:['’]?s|is|was)\s+(?:the\s+)?(?:one|right|correct)\b", re.IGNORECASE
)
"""What follows a value that is the one that is meant: "O-2 is the one to cancel"."""

_NO_ITS: Final = re.compile(
    r"\W*(?:(?:oh|ah|no|sorry|wait|actually|oops)\W+)+"
    r"(?:it['’]?s|it is|that['’]?s|i meant?)\s+(?:the\s+)?",
    re.IGNORECASE,
)
"""How a message begins that puts a value right: "no it's KT57 UVN, I couldn't see"."""

_CERTAIN: Final = 0.85
"""Confidence from which words are an address and nothing else."""


def _beside_answers(text: str, said: Said) -> str:
    """The message without the clauses that answer; nothing where an answer stands nowhere."""
    if said.answered and not said.taken:
        return ""
    return without(
        text,
        [clause for clause in clauses_of(text) if overlap((clause.start, clause.end), said.taken)],
    )


_FEW_TELLING: Final = 3
"""Telling words of a message that says little besides a value, at most."""
