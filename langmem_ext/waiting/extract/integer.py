"""Whole numbers: counts in digits and words, and counts of people ("me and my wife")."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langmem_ext.waiting.extract.candidate import Candidate, outside
from langmem_ext.waiting.extract.date import dates
from langmem_ext.waiting.extract.lexicon import word_set
from langmem_ext.waiting.extract.money import money
from langmem_ext.waiting.extract.numerals import Numeral, numerals
from langmem_ext.waiting.extract.party import alone, companies
from langmem_ext.waiting.extract.reply import Reply
from langmem_ext.waiting.extract.time import times
from langmem_ext.waiting.extract.tokens import before
from langmem_ext.waiting.extract.vocabulary import counts_people, own_stems, stem
from langmem_ext.waiting.param import Param

_UNIT = re.compile(r"[\s-]+(?:more |whole |full |other |bed\s?|big |small |young )?([A-Za-z]+)")
_NOT_A_COUNT = re.compile(r"(?:\bno\.?|\bnumber|#|\broom|\bflat|\btable|\bgate|\bflight|\bsuite|\bapt\.?)\s*$", re.I)
_PRONOUN_BEFORE = re.compile(r"\b(?:the|this|that|which|any|another|a|an|no|every|each|some|me|find|get)\s+(?:\w+\s+)?$", re.I)
_PRONOUN_AFTER = re.compile(r"\s*(?:that|which|with|in|at|near|where|who|from|is|was|located|around|by|on|of the|please\s+\w)\b", re.I)
_SURE_BEFORE = re.compile(r"\b(?:just|only|for|is|be|of|yes|make it|need|want|exactly|the)\s+(?:the\s+)?$", re.I)
_REPLACED = re.compile(r"\bfrom\s+$", re.I)
_BY = re.compile(r"\W+(?:\w+\W+)?to\b[^.]{0,30}\b(?:\d|one|two|three|four|five|six|seven|eight|nine|ten)", re.I)
_OTHER_NOUNS = word_set(
    "minute second sec moment hour day night week month year star table room bed bath bag bedroom bathroom apartment hotel restaurant car"
)


def taken(reply: Reply) -> list[tuple[int, int]]:
    """Spans of a reply whose numbers are parts of dates, times or sums of money."""
    found = [*dates(reply.text, reply.now.date()), *times(reply.text), *money(reply.text)]
    return [(candidate.start, candidate.end) for candidate in found]


def _fit(param: Param, reply: Reply, numeral: Numeral, people: bool) -> tuple[int, float, int]:
    """Fit, confidence and end of the raw words of a number: the noun it counts decides."""
    text, end = reply.text, numeral.end
    lead, rest = before(text, numeral.start), text[end : end + 40]
    if _NOT_A_COUNT.search(lead):
        return -1, 0.0, end
    unit = _UNIT.match(text, end)
    if unit:
        noun = stem(unit[1])
        if noun in own_stems(param) or stem(unit.group().strip().replace(" ", "")) in own_stems(param):
            return 3, 0.95, unit.end()
        if noun in {stem(word) for word in re.findall(r"[a-z]+", reply.prompt.lower()) if len(word) > 3}:
            return 2, 0.9, unit.end()
        if people and (unit[1].lower() in _OTHER_NOUNS or unit[1].lower().removesuffix("s") in _OTHER_NOUNS):
            return -1, 0.0, end
    if _is_pronoun(lead, text[numeral.start : end], rest):
        return -1, 0.0, end
    alone = not re.search(r"\w", lead + rest)
    counted = unit is not None and re.match(r"\s+[a-z]{3,}s\b", rest) is not None
    return (1 if alone or not counted else 0), 0.9 if alone else 0.55 if counted else 0.75, end


def _is_pronoun(lead: str, written: str, rest: str) -> bool:
    """Whether "one" stands for a thing ("a cheap one", "one in Salem") and counts nothing."""
    if written.lower() != "one":
        return False
    led = _PRONOUN_BEFORE.search(lead) is not None and not re.search(r"\b(?:just|only) the\s+$", lead, re.I)
    return led or (_PRONOUN_AFTER.match(rest) is not None and not _SURE_BEFORE.search(lead))


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
        together = outside(companies(reply.text), spans)
        rest = outside(found, [(company.start, company.end) for company in together])
        rest = [candidate for candidate in rest if isinstance(candidate.value, int) and candidate.value >= 0]
        able = any(candidate.fit >= 0 for candidate in rest) or together
        found = [*rest, *together] if able else alone(reply.text)
    found = [c for c in found if not (_REPLACED.search(before(reply.text, c.start)) and _BY.match(reply.text, c.end))]
    weeks = _weeks(param, reply.text, reply)
    return [*outside(found, [(week.start, week.end) for week in weeks]), *weeks]


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The whole numbers of a reply; without a question only those that count the parameter's own noun."""
    found = [c for c in counts(param, reply, taken(reply)) if isinstance(c.value, int)]
    return [candidate for candidate in found if candidate.fit >= 3] if reply.strict else found
