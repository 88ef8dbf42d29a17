"""What something is for: "What is it for?", "It's for the knitting group"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.closed_spans import closed_spans
from langmem_ext.waiting.extract.english.leadin import answer_span
from langmem_ext.waiting.extract.english.lexicon import DETERMINERS, FUNCTION_WORDS, word_set
from langmem_ext.waiting.extract.english.tokens import Token, tokens
from langmem_ext.waiting.extract.names.telling import DOUBTED
from langmem_ext.waiting.extract.names.texts.objects import is_noun_of_thing
from langmem_ext.waiting.extract.numbers.numerals import UNITS
from langmem_ext.waiting.extract.reply import Reply

_WHAT_FOR = re.compile(
    r"\b(?:what|which)\b[^.?!;]*\b(?:is|are|be|was|need|use|used)\b[^.?!;]*"
    r"(?<!\blooking )(?<!\bhere )\bfor\W*$",
    re.I,
)
_LED = re.compile(
    r"\W*(?:(?:oh|ok(?:ay)?|yes|no|well|so|and|just|basically)\b\W*)*"
    r"(?P<it>(?:it|this|that)(?:['’]?s|['’]ll be| is| was| will be| would be)\s+(?:all\s+)?)?"
    r"(?:(?P<for>for)|(?P<about>about|regarding|concerning|to do with)(?!\s+(?:\d|an? (?:week|month"
    r"|year|day|hour)|to|time)\b))\s+(?=\w)",
    re.I,
)
_ASKED_ABOUT = re.compile(r"\b(?:about|topic|subject|discuss)\b", re.I)
_SAID_FOR = re.compile(
    r"\b(?:it|this|that)(?:['’]?s|['’]ll be| is| will be| would be)\s+for\s+"
    r"(?P<what>[^\W\d_][^.,;:!?\n]*)",
    re.I,
)

_FOR_ONE = re.compile(
    r"\bfor\s+(?P<what>(?:an?|our|my|your|his|her|their)\s+[^\W\d_][^.,;:!?\n]*)", re.I
)
"""What a request may be for: "the main hall for a wedding on friday"."""
_OWNER = re.compile(r"\w['’]s?\s*$")
"""Words before what somebody has: "my daughter's 18th" is no day."""
_OF_MANY = re.compile(r"(?:\w+\s+){1,3}of\s+(?:about\s+)?\d")
"""How many it is for: "a group of 20"."""
_SAID = 0.7
"""Confidence in what a message says that it is for."""


def _asks_what_for(param: Param) -> bool:
    """Whether the values say what something is for: "What is it for?"."""
    wording = (param.description, param.prompt)
    return param.type is ParamType.TEXT and any(_WHAT_FOR.search(words) for words in wording)


def is_occasion(param: Param) -> bool:
    """Whether the values are occasions: what is for one is had for it."""
    wording = f"{param.name.replace('_', ' ')} {param.description}"
    return param.type is ParamType.TEXT and _OCCASION.search(wording) is not None


_OCCASION = re.compile(r"\b(?:occasions?|celebrations?)\b", re.I)


def behind_lead(param: Param, text: str, start: int, end: int) -> int:
    """Where words begin behind "it's for" and "it's about", which only lead to what is asked."""
    lead = _LED.match(text, start, end)
    if lead is None:
        return start
    if lead["for"]:
        led = _asks_what_for(param)
    else:
        led = bool(lead["it"] or _ASKED_ABOUT.search(f"{param.description} {param.prompt}"))
    return lead.end() if led else start


def said_for(param: Param, reply: Reply) -> list[Candidate]:
    """What a message says that it is for: "3 hours, it's for a kids party"."""
    said, asks = _SAID_FOR.search(reply.text), _asks_what_for(param)
    if not (asks or (said and is_occasion(param))):
        return []
    match = said or _FOR_ONE.search(reply.text)
    if match is None:
        return []
    start, end = match.span("what")
    closed = [
        begin
        for begin, stop in closed_spans(param, reply)
        if start < stop and begin < end and not _OWNER.search(reply.text, start, begin)
    ]
    start, end = answer_span(reply.text, start, min([end, *closed]), framed=False)
    words = tokens(reply.text[start:end])
    while words and words[-1].low in FUNCTION_WORDS:
        words.pop()  # "for a party on" a day
    if not words or not _is_occasion(words) or _OF_MANY.match(reply.text, start):
        return []
    end = start + words[-1].end
    sure = _SAID if said else DOUBTED
    return [Candidate(start, end, reply.text[start:end], sure, 1, "what it is for")]


def _is_occasion(words: Sequence[Token]) -> bool:
    """Whether words are no somebody and no number of anything: "for me", "for Ann", "for six"."""
    first = words[0]
    last = words[-1].low
    if all(word.low in FUNCTION_WORDS for word in words) or not is_noun_of_thing(last):
        return False
    if last.endswith(("'s", "’s")):
        return False
    opens = first.low in DETERMINERS | _POSSESSIVES
    return opens or not (first.capitalised or first.low in FUNCTION_WORDS | UNITS.keys())


_POSSESSIVES = word_set("my our your his her their")
