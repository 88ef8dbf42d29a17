"""Numbers with a unit ("3kg"), and numbers that label things ("room 412", "3rd floor")."""

from __future__ import annotations

import re
from collections.abc import Iterable
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
from langmem_ext.waiting.extract.numbers.numerals import (
    DIGITS,
    WORDS,
    digits_value,
    numerals,
    words_value,
)
from langmem_ext.waiting.extract.reply import Reply

_UNITS = {
    "kilogram": ("weight", 1_000.0, r"kgs?|kilos?|kilogram(?:me)?s?"),
    "gram": ("weight", 1.0, r"g|grams?"),
    "pound": ("weight", 453.59237, r"lbs?|pounds?(?=\s+of\b)"),
    "kilometre": ("length", 100_000.0, r"kms?|kilomet(?:er|re)s?"),
    "mile": ("length", 160_934.4, r"miles?|mi"),
    "metre": ("length", 100.0, r"m|met(?:er|re)s?"),
    "centimetre": ("length", 1.0, r"cms?|centimet(?:er|re)s?"),
    "millimetre": ("length", 0.1, r"mm|millimet(?:er|re)s?"),
    "inch": ("length", 2.54, r"inch(?:es)?"),
    "foot": ("length", 30.48, r"ft|foot|feet"),
    "litre": ("volume", 1.0, r"l|lit(?:er|re)s?"),
    "millilitre": ("volume", 0.001, r"ml|millilit(?:er|re)s?"),
}
"""Units: what they measure, their size, and how they are written."""
_LONG = {
    "metre": "metres?|meters",
    "litre": "litres?|liters?",
    "gram": "grams?",
    "pound": "lbs?|pounds?",
    "mile": "miles?",
}
"""Units whose short forms mean other things in a description, and a meter is a device."""
_NAMED = {
    unit: re.compile(rf"\b(?:{_LONG.get(unit, written)})\b", re.I)
    for unit, (_, _, written) in _UNITS.items()
}
_AND_PART = r"(?:\s+(?:and|n|&)\s+(?:an?\s+)?(?P<{}>half|quarter)\b)?"
_AMOUNT = (
    rf"(?<![\w.,$€£])(?:(?P<part>half|(?:a\s+)?quarter|three\s+quarters)(?:\s+of)?(?:\s+an?)?"
    rf"|(?P<count>{DIGITS}|{WORDS}|an?(?=\s[^\W\d]{{2}})){_AND_PART.format('share')})"
)


def _measure(units: Iterable[str]) -> re.Pattern[str]:
    written = "|".join(rf"(?P<{unit}>{_UNITS[unit][2]})" for unit in units)
    return re.compile(
        rf"{_AMOUNT}[\s-]?(?:{written})(?!\w){_AND_PART.format('more')}", re.IGNORECASE
    )


_MEASURES = {
    kind: _measure(unit for unit, (of, _, _) in _UNITS.items() if of == kind)
    for kind in ("weight", "length", "volume")
}
_DIMENSIONS = {
    "weight": ("kilogram", "pound", "gram"),
    "weigh": ("kilogram", "pound", "gram"),
    "distance": ("kilometre", "mile", "metre"),
    "mileage": ("mile", "kilometre"),
    "height": ("centimetre", "metre"),
    "width": ("centimetre", "metre"),
}
_SIDES = {
    **{"wide": "width", "across": "width", "high": "height", "tall": "height", "long": "length"},
    **{"deep": "depth", "thick": "thickness", "drop": "drop"},
    **{side: side for side in ("width", "height", "length", "depth")},
}
"""Words behind a measure that say which side of a thing it is."""
_SIDE = re.compile(rf"[\s-]+(?P<side>{'|'.join(_SIDES)})\b", re.IGNORECASE)
COUNTS = re.compile(r"\b(?:number|count) of (?!the [a-z]+\b(?<!s))|\bhow many\b|\bquantity\b", re.I)
"""Words of a parameter that says how many there are of something, and labels nothing."""
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
    r"(?:\s+(?:one|please|pls|thanks))*(?:\W*$|(?<!first)(?:\s*[,;–-]|\.(?!\d))\s|\s+but\b)",
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
    """The numbers of a reply that bear a unit of weight or length, in the parameter's own unit.

    Where it names none, any of its dimension is as good. What measures another side is left out:
    "140 wide and 110 high".
    """
    units = _unit(f"{' '.join(split_name(param.name))} {param.description} {param.prompt}")
    candidates = _by_side(param, reply.text) if units else []
    if not units:
        return []
    kind, size, _ = _UNITS[units[0]]
    candidates += _in_two_units(reply.text, size) if kind == "length" else []
    for match in _MEASURES[kind].finditer(reply.text):
        if any(one.overlaps(*match.span()) for one in candidates):
            continue
        unit = next(unit for unit, (of, _, _) in _UNITS.items() if of == kind and match[unit])
        amount, side = _amount(match), _side(param, reply.text, match.end())
        if amount is None or side is False or (len(match[unit]) == 1 and not match["count"]):
            continue  # "half m" is no length
        value = amount if unit in units else round(amount * _UNITS[unit][1] / size, 3)
        candidates.append(
            Candidate(
                match.start(),
                match.end(),
                int(value) if float(value).is_integer() else value,
                0.95,
                4 if side else 3,
                "measure in its unit",
            )
        )
    return candidates


_IN_TWO_UNITS = re.compile(
    rf"(?<![\w.,$€£])(?P<whole>\d|one|two|three|four|five|six|seven)"
    r"(?:\s?(?:(?P<metre>m|met(?:er|re)s?)|(?P<foot>ft|foot|feet|['’′](?=\s?\d))))[\s-]?"
    rf"(?:(?P<digits>\d{{1,2}})|(?P<words>{WORDS}))\b"
    r"(?=\W*$|\s*[,.;!?)](?!\d)|\s+(?:tall|high|long|wide|deep|last|and|in|at|or so|please|now)\b)",
    re.I,
)
"""A length in metres and centimetres, or in feet and inches: "1m72", "5 foot 9"."""


_TALLEST = 4
"""Metres beside which a number counts centimetres, at most."""


def _in_two_units(text: str, size: float) -> list[Candidate]:
    """The lengths that are said in two units, in units of `size` centimetres."""
    candidates = []
    for match in _IN_TWO_UNITS.finditer(text):
        whole = _count(match["whole"])
        part = int(match["digits"]) if match["digits"] else words_value(match["words"].lower())
        if whole is None or part is None or not (part < 12 or (match["metre"] and part < 100)):
            continue
        if match["metre"] and (part < 10 or whole > _TALLEST):
            continue  # "2m 4" may be anything; "5 metres, 12 rolls"
        length = (whole * 100 + part) if match["metre"] else (whole * 12 + part) * 2.54
        value = round(length / size, 3)
        candidates.append(Candidate(*match.span(), value, 0.95, 3, "measure in two units"))
    return candidates


_SHARES = {"half": 0.5, "quarter": 0.25}


def _amount(match: re.Match[str]) -> float | None:
    """How many units a measure has: "half a kilo", "2 and a half kilos", "a kilo and a half"."""
    if part := match["part"]:
        return 0.5 if part.lower() == "half" else 0.75 if part.lower()[0] == "t" else 0.25
    amount = _count(match["count"])
    shares = sum(_SHARES.get((match[group] or "").lower(), 0) for group in ("share", "more"))
    return None if amount is None else amount + shares


def _count(written: str) -> float | None:
    """The number that digits or words write; 1 for "a"."""
    low = written.lower()
    if low[0].isdigit():
        return digits_value(low)
    return 1 if low in ("a", "an") else words_value(low)


def _side(param: Param, text: str, end: int) -> bool | None:
    """Whether words behind a measure name the parameter's side; None where they name none."""
    match = _SIDE.match(text, end)
    own = own_stems(param) & {stem(side) for side in _SIDES.values()}
    if match is None or not own:
        return None
    return stem(_SIDES[match["side"].lower()]) in own


def _by_side(param: Param, text: str) -> list[Candidate]:
    """The numbers without a unit behind which the parameter's side is named: "92.5 wide"."""
    return [
        Candidate(number.start, number.end, number.value, 0.9, 3, "measure of its side")
        for number in numerals(text)
        if _side(param, text, number.end)
    ]


@lru_cache(maxsize=512)
def _labels(name: str, description: str) -> frozenset[str]:
    if COUNTS.search(description):
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
