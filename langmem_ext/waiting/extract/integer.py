"""Whole numbers: counts in digits and words, and counts of people ("me and my wife")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from langmem_ext.waiting.extract.candidate import Candidate, outside
from langmem_ext.waiting.extract.date import dates
from langmem_ext.waiting.extract.money import money
from langmem_ext.waiting.extract.numerals import Numeral, numerals
from langmem_ext.waiting.extract.reply import Reply
from langmem_ext.waiting.extract.time import times
from langmem_ext.waiting.extract.vocabulary import counts_people, own_stems, stem
from langmem_ext.waiting.param import Param

_PEOPLE = (
    r"(?:people|peoples|persons?|person's|passengers?|riders?|travell?ers?|guests?|adults?|individuals?|pax|friends?|members?|diners?|men|women|guys|girls"
    r"|kids?|child(?:ren)?|couples?|seats?|tickets?|of us)"
)
_UNIT = re.compile(r"[\s-]+(?:more |whole |full |other |bed\s?|big |small |young )?([A-Za-z]+)(?:\s+us\b)?")
_PEOPLE_AFTER = re.compile(rf"[\s-]+(?:other |more |young )?{_PEOPLE}\b", re.I)
_PLUS = re.compile(r"\s*(?:,|and|plus|with|\+|&)\s*(?:an?\s+)?", re.I)
_ALONE = re.compile(
    r"\b(?:(?:just|only|it's|its|it is|for)\s+(?:for\s+)?(?:me|myself|i)\b(?!\s+(?:and|know|with|\+))|by myself|on my own|alone|solo|myself only|me only|only me|just me)\b",
    re.I,
)
_PAIR = re.compile(
    r"\b(?:(?:me|myself|i)\s+(?:and|\+|&|plus|with)\s+(?:(?:my|a|one|the)\s+(?:\w+\s+)?\w+|her|him)"
    r"|(?:my|a)\s+(?:\w+\s+)?\w+\s+and\s+(?:i|me|myself)|(?:both|the two) of us|(?:a|the|my) (?:wife|husband|partner|girlfriend|boyfriend) and (?:i|me))\b",
    re.I,
)
_ME_AND = re.compile(r"\b(?:me|myself|i)\s+(?:and|\+|&|plus|with)\s+(?:my\s+|the\s+)?(?:other\s+)?$", re.I)
_NOT_A_COUNT = re.compile(r"(?:\bno\.?|\bnumber|#|\broom|\bflat|\bgate|\bflight|\bsuite|\bapt\.?)\s*$", re.I)
_PRONOUN_BEFORE = re.compile(r"\b(?:the|this|that|which|any|another|a|an|no|every|each|good|nice|cheap|new|some|other|right|first|last|me|find|get|wrong)\s+$", re.I)
_PRONOUN_AFTER = re.compile(r"\s*(?:that|which|with|in|at|near|where|who|from|is|was|located|around|by|on|of the|please\s+\w)\b", re.I)
_SURE_BEFORE = re.compile(r"\b(?:just|only|for|is|be|of|yes|make it|need|want|exactly|the)\s+(?:the\s+)?$", re.I)


def taken(reply: Reply) -> list[tuple[int, int]]:
    """Spans of a reply whose numbers are parts of dates, times or sums of money."""
    found = [*dates(reply.text, reply.now.date()), *times(reply.text), *money(reply.text)]
    return [(candidate.start, candidate.end) for candidate in found]


def _fit(param: Param, reply: Reply, numeral: Numeral, people: bool) -> tuple[int, float, int]:
    """Fit, confidence and end of the raw words of a number: the noun it counts decides."""
    text = reply.text
    if people and (unit := _PEOPLE_AFTER.match(text, numeral.end)):
        return 3, 0.95, unit.end()
    unit = _UNIT.match(text, numeral.end)
    if unit:
        noun = stem(unit[1])
        if noun in own_stems(param) or stem(unit.group().strip().replace(" ", "")) in own_stems(param):
            return 3, 0.95, unit.end()
        if noun in {stem(word) for word in re.findall(r"[a-z]+", reply.prompt.lower()) if len(word) > 3}:
            return 2, 0.9, unit.end()
    before, rest = text[: numeral.start], text[numeral.end :]
    if _NOT_A_COUNT.search(before):
        return -1, 0.0, numeral.end
    if text[numeral.start : numeral.end].lower() == "one" and (
        (_PRONOUN_BEFORE.search(before) and not re.search(r"\b(?:just|only) the\s+$", before, re.I)) or _PRONOUN_AFTER.match(rest)
    ):
        return (-1 if not _SURE_BEFORE.search(before) or _PRONOUN_BEFORE.search(before) else 0), 0.5, numeral.end
    alone = not re.search(r"\w", before + rest)
    counted = unit is not None and re.match(r"\s+[a-z]{3,}s\b", rest) is not None
    return (1 if alone or not counted else 0), 0.9 if alone else 0.55 if counted else 0.75, numeral.end


def _sums(text: str, counted: Sequence[Candidate]) -> list[Candidate]:
    """Counts of people joined by "and" become one: "5 adults and 1 child"."""
    joined: list[Candidate] = []
    for candidate in counted:
        last = joined[-1] if joined else None
        if last and last.fit == 3 and candidate.fit == 3 and _PLUS.fullmatch(text[last.end : candidate.start]):
            total = int(str(last.value)) + int(str(candidate.value))
            joined[-1] = Candidate(last.start, candidate.end, total, 0.85, 3, "sum of people")
        else:
            joined.append(candidate)
    return joined


def _with_speaker(text: str, candidate: Candidate) -> Candidate:
    """ "Me and 3 friends" is four."""
    me = _ME_AND.search(text[: candidate.start])
    if not me or candidate.fit != 3:
        return candidate
    return Candidate(me.start(), candidate.end, int(str(candidate.value)) + 1, 0.85, 3, "people with the speaker")


_TOTAL = re.compile(r"\s+(?:in total|total|altogether|in all|all together|of us)\b", re.I)


def _people(text: str, found: list[Candidate]) -> list[Candidate]:
    found = [replace(c, fit=4) if _TOTAL.match(text, c.end) or text[c.start : c.end].lower().endswith("of us") else c for c in found]
    found = [_with_speaker(text, candidate) for candidate in _sums(text, found)]
    if any(candidate.fit >= 3 for candidate in found):
        return found
    for pattern, count, reason in ((_PAIR, 2, "two people"), (_ALONE, 1, "one person")):
        match = pattern.search(text)
        if match and not (count == 1 and any(candidate.fit >= 0 for candidate in found)):
            return [*found, Candidate(match.start(), match.end(), count, 0.85, 2, reason)]
    return found


def _weeks(param: Param, text: str, reply: Reply) -> list[Candidate]:
    """A number of days may be given in weeks."""
    if "day" not in own_stems(param) and not re.search(r"\bhow (?:many days|long)\b", reply.prompt, re.I):
        return []
    found = []
    for match in re.finditer(r"\b(?:(an?|one)|(\d{1,2}|two|three|four))\s+weeks?\b", text, re.I):
        count = 1 if match[1] else int(match[2]) if match[2].isdigit() else {"two": 2, "three": 3, "four": 4}[match[2].lower()]
        found.append(Candidate(match.start(), match.end(), 7 * count, 0.85, 3, "weeks in days"))
    return found


def counts(param: Param, reply: Reply, spans: Sequence[tuple[int, int]]) -> list[Candidate]:
    """The numbers of a reply outside `spans`, judged by what they count."""
    people = counts_people(param, reply.prompt)
    found = []
    for numeral in numerals(reply.text):
        fit, confidence, end = _fit(param, reply, numeral, people)
        found.append(Candidate(numeral.start, end, numeral.value, confidence, fit, "count"))
    found = outside(found, spans)
    if people:
        found = _people(reply.text, [candidate for candidate in found if isinstance(candidate.value, int)])
    weeks = _weeks(param, reply.text, reply)
    return [*outside(found, [(week.start, week.end) for week in weeks]), *weeks]


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The whole numbers of a reply; without a question only those that count the parameter's own noun."""
    found = [c for c in counts(param, reply, taken(reply)) if isinstance(c.value, int)]
    return [candidate for candidate in found if candidate.fit >= 3] if reply.strict else found
