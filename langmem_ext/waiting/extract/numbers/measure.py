"""Numbers with a unit ("3kg"), and numbers that label things ("room 412", "3rd floor")."""

from __future__ import annotations

import re
from functools import lru_cache

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.dates.days import ORDINAL_DAYS
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, word_set
from langmem_ext.waiting.extract.english.vocabulary import (
    counts_people,
    own_stems,
    split_name,
    stem,
)
from langmem_ext.waiting.extract.numbers.numerals import DIGITS, WORDS, digits_value, words_value
from langmem_ext.waiting.extract.reply import Reply

_UNITS = {
    "kilogram": r"kgs?|kilos?|kilogram(?:me)?s?",
    "gram": r"g|grams?",
    "pound": r"lbs?|pounds?",
    "kilometre": r"kms?|kilomet(?:er|re)s?",
    "mile": r"miles?|mi",
    "metre": r"m|met(?:er|re)s?",
    "centimetre": r"cm|centimet(?:er|re)s?",
    "litre": r"l|lit(?:er|re)s?",
}
_MEASURES = {
    unit: re.compile(
        rf"(?<![\w.,$€£])(?P<digits>{DIGITS}|{WORDS})(?:\s+and\s+an?\s+(?P<share>half"
        rf"|quarter))?[\s-]?(?:{written})(?!\w)(?:\s+and\s+an?\s+(?P<share2>half|quarter)\b)?",
        re.I,
    )
    for unit, written in _UNITS.items()
}
_LONG = {"metre": "metres?|meters", "litre": "litres?|liters?", "gram": "grams?"}
"""Units whose short forms mean other things in a description, and a meter is a device."""
_NAMED = {
    unit: re.compile(rf"\b(?:{_LONG.get(unit, written)})\b", re.I)
    for unit, written in _UNITS.items()
}
_DIMENSIONS = {
    "weight": ("kilogram", "pound", "gram"),
    "weigh": ("kilogram", "pound", "gram"),
    "distance": ("kilometre", "mile", "metre"),
    "mileage": ("mile", "kilometre"),
    "height": ("centimetre", "metre"),
    "width": ("centimetre", "metre"),
}
_COUNTS = re.compile(r"\b(?:number|count) of (?!the [a-z]+\b(?<!s))|\bhow many\b", re.I)
_NO_LABEL = FUNCTION_WORDS | word_set(
    "number no id value count total amount day night hour minute week month year people"
)
_WORDS = "|".join(sorted((word for word in ORDINAL_DAYS), key=len, reverse=True))
_ORDINAL = re.compile(
    rf"\b(?:(?P<digits>\d{{1,3}})(?:st|nd|rd|th)|(?P<word>{_WORDS}))\b(?:\s+(?P<noun>[a-z]+))?",
    re.I,
)
_DAY_OF_MONTH = re.compile(rf"\b(?:\d{{1,2}}(?:st|nd|rd|th)|{_WORDS})\b", re.I)
_ALONE = re.compile(
    rf"^\W*(?:(?:it['’]?s|it is|i['’]?m|on|in|to|the|at|uh|um|ok|okay|then|so|well|maybe|yes|no"
    rf"|say)\W+)*(?P<value>(?:\d{{1,3}}(?:st|nd|rd|th)|{_WORDS})\b)"
    r"(?:\s+(?:one|please|pls|thanks))*\W*$",
    re.I,
)


@lru_cache(maxsize=512)
def _unit(words: str) -> tuple[str, ...]:
    """The units of a measuring parameter: the unit it names, or those of its dimension."""
    named = tuple(unit for unit, pattern in _NAMED.items() if pattern.search(words))
    if named:
        return named
    return next(
        (units for word, units in _DIMENSIONS.items() if re.search(rf"\b{word}", words, re.I)), ()
    )


def measures(param: Param, reply: Reply) -> list[Candidate]:
    """The numbers of a reply that bear the parameter's unit of weight or length."""
    units = _unit(f"{' '.join(split_name(param.name))} {param.description} {param.prompt}")
    candidates = []
    for unit in units:
        for match in _MEASURES[unit].finditer(reply.text):
            written, share = match["digits"], (match["share"] or match["share2"] or "").lower()
            amount = digits_value(written) if written[0].isdigit() else words_value(written)
            if amount is None:
                continue
            shares = {"half": 0.5, "quarter": 0.25}.get(share, 0)
            candidates.append(
                Candidate(
                    match.start(),
                    match.end(),
                    amount + shares,
                    0.95,
                    3,
                    "measure in its unit",
                )
            )
    return candidates


@lru_cache(maxsize=512)
def _labels(name: str, description: str) -> frozenset[str]:
    if _COUNTS.search(description):
        return frozenset()
    described = re.findall(
        r"\b([a-z]+) numbers?\b|\bnumber (?:of|on) (?:the|your) ([a-z]+)", description.lower()
    )
    described = [word for pair in described for word in pair if word]
    words = [word for word in [*split_name(name), *described] if word not in _NO_LABEL]
    return frozenset(stem(word) for word in words if not word.endswith("s") or word.endswith("ss"))


def labels(param: Param) -> frozenset[str]:
    """Stems of the nouns that label a number of this parameter when they are before it.

    A plural is counted, and labels nothing.
    """
    return _labels(param.name, param.description)


_GROUND = re.compile(r"\bground[\s-]+floor\b|^\W*(?:the |on )*ground\W*$", re.I)


_IN_MONTH = re.compile(r"\bday of (?:the|each|every|a) month\b", re.I)
_EACH_MONTH = re.compile(r"\s+(?:of|in)\s+(?:the|each|every)\s+month\b", re.I)


def _days_of_month(reply: Reply) -> list[Candidate]:
    """The days of a month; without a question only those of each month."""
    return [
        Candidate(*match.span(), _place(match.group()), 0.9, 3, "day of each month")
        for match in _DAY_OF_MONTH.finditer(reply.text)
        if not reply.strict or _EACH_MONTH.match(reply.text, match.end())
    ]


def ordinals(param: Param, reply: Reply) -> list[Candidate]:
    """Ordinals as values of a parameter that labels things: "3rd floor".

    An answer may also be "the second one".
    """
    if counts_people(param):
        return []
    if _IN_MONTH.search(f"{param.name.replace('_', ' ')} {param.description} {param.prompt}"):
        return _days_of_month(reply)
    if not labels(param):
        return []
    candidates = []
    for match in _ORDINAL.finditer(reply.text):
        if match["noun"] and stem(match["noun"]) in own_stems(param):
            candidates.append(
                Candidate(
                    match.start(),
                    match.end(),
                    _place(match["digits"] or match["word"]),
                    0.95,
                    3,
                    "place in an order",
                )
            )
    if "floor" in own_stems(param) and (ground := _GROUND.search(reply.text)):
        candidates.append(Candidate(*ground.span(), 0, 0.95, 3, "place in an order"))
    whole = None if candidates or reply.strict else _ALONE.match(reply.text)
    if whole:
        candidates.append(
            Candidate(*whole.span("value"), _place(whole["value"]), 0.8, 1, "place in an order")
        )
    return candidates


def _place(written: str) -> int:
    digits = re.match(r"\d+", written)
    return int(digits.group()) if digits else ORDINAL_DAYS[re.sub(r"\s+", " ", written.lower())]
