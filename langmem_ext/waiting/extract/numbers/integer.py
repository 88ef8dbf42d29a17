"""Whole numbers: counts in digits and words, and counts of people ("me and my wife")."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate, is_so_far, outside
from langmem_ext.waiting.extract.choices.enum import exact
from langmem_ext.waiting.extract.dates.mentioned import dates
from langmem_ext.waiting.extract.dates.time import times
from langmem_ext.waiting.extract.english.concepts import WORDS as CONCEPTS
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, VERBS, word_set
from langmem_ext.waiting.extract.english.tokens import before, trim
from langmem_ext.waiting.extract.english.vocabulary import (
    counts_people,
    own_stems,
    split_name,
    stem,
)
from langmem_ext.waiting.extract.numbers.duration import durations
from langmem_ext.waiting.extract.numbers.measure import COUNTS, labels, measures, ordinals
from langmem_ext.waiting.extract.numbers.money import money
from langmem_ext.waiting.extract.numbers.numerals import UNITS, Numeral, numerals, words_value
from langmem_ext.waiting.extract.numbers.owned import AGE, owned
from langmem_ext.waiting.extract.numbers.party import alone, companies, is_person
from langmem_ext.waiting.extract.reply import Reply

_UNIT = re.compile(r"[\s-]+(?:more |whole |full |other |bed\s?|big |small |young )?([A-Za-z]+)")
_ROOMS = re.compile(r"[\s-]*(?P<kind>bed|bath)(?:s|der|rooms?|roomed)?\b", re.I)
"""Rooms of a home by what stands in them: "a 2 bed to rent"."""
_NOT_A_COUNT = re.compile(
    r"(?:\bno\.?|\bnumber|#|\broom|\bflat|\btable|\bgate|\bflight|\bsuite|\bapt\.?)\s*$", re.I
)
_NUMBER_ALONE = re.compile(r"\W*(?:it['’]?s |it is )?(?:no\.?|number|#)\s*\d+\W*", re.I)
"""An answer that is no more than a number: "number 28"."""
_PRONOUN_BEFORE = re.compile(
    r"\b(?:the|this|that|which|any|another|a|an|no|every|each|some|me|find|get)\s+(?:\w+\s+)?$",
    re.I,
)
_PRONOUN_AFTER = re.compile(
    r"\s*(?:that|which|with|in|at|near|where|who|from|is|was|located|around|by|on|of"
    r" the|please\s+\w)\b",
    re.I,
)
_SURE_BEFORE = re.compile(
    r"\b(?:just|only|for|is|be|of|yes|make it|need|want|exactly|the)\s+(?:the\s+)?$", re.I
)
_REPLACED = re.compile(r"\bfrom\s+$", re.I)
_BY = re.compile(
    r"\W+(?:\w+\W+)?to\b[^.]{0,30}\b(?:\d|one|two|three|four|five|six|seven|eight|nine|ten)", re.I
)
_OF_PEOPLE = re.compile(
    r"\b(?:(?:party|group|table|family|team|crowd|bunch|total|number) of|we(?:'re|['’]?ll be| are|"
    r" will be)"
    r"|there(?:'s|['’]ll be| are| will be| is)(?:"
    r" (?:only|just|about|around))?|for)\s+(?:(?:the|just|about|around|only)\s+)*$",
    re.I,
)
"""Words before a number that make it one of people."""
_FOLLOWS = FUNCTION_WORDS - word_set(
    "of per than other others such same many more as off"
) | word_set(
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri"
    " sat sun lunch dinner breakfast brunch under tonight tonite yesterday tomorrow tmrw tomorow"
    " jan feb mar apr may jun jul aug sep oct nov dec january february march april june july august"
    " september october november december coming name outside inside"
)
"""Words that may follow a number of people that bears no noun."""
_LABEL = re.compile(
    r"\b([a-z]+)(?:\s+(?:number|no\.?|nr\.?))?(?:(?:['’]s|\s+(?:is|says|shows|reads))(?:\s+(?:at"
    r"|now))?)?\s*[:#]?\s*$",
    re.I,
)
_LABEL_REACH = 50
"""Characters before a number in which a label of it is looked for."""
_QUANTITIES = word_set("quantity qty portions portion pieces items copies units count")
"""Names of parameters that count whatever is wanted."""
_MOST_PEOPLE = 200
_STAYS = frozenset(("stay", "length", "duration", "night", "day"))
_TIMES = frozenset(("minute", "hour", "day", "night", "week", "month", "year"))
"""Stems of parameters that count units of time, and so no people."""
_HOW_LONG = re.compile(r"\bhow (?:long|many (?:days|nights))\b", re.I)
_BOTH = re.compile(
    r"^\W*(?:(?:it's|for|just|yes)\s+)*(?:the\s+)?(?:both|us two|the"
    r" two)(?:\s+of\s+us)?\W*(?:please\W*)?$",
    re.I,
)
_OTHER_NOUNS = word_set(
    "minute second sec moment hour day night week month year star table room bed bath bag bedroom"
    " bathroom apartment hotel restaurant car"
)


def _is_year(param: Param) -> bool:
    """Whether a parameter is a year of the calendar, and no number of years."""
    wording = f"{param.name.replace('_', ' ')}. {param.description}. {param.prompt}"
    named = _OF_YEAR.search(wording) is not None and COUNTS.search(wording) is None
    return named and (param.bounds is None or _in_calendar(param.bounds[1]))


def _in_calendar(value: object) -> bool:
    return isinstance(value, int | float) and 1900 <= value <= 2100


_OF_YEAR = re.compile(r"\byear\b(?! old\b)", re.I)
_SAID_YEAR = re.compile(
    r"(?<![\w.,:/#$€£-])(?P<year>(?:19|20)\d\d)(?![\w%€$£]|[.,:/-]\d)"
    r"|(?P<of>\b(?:for|of|from)\s+)?\b(?P<which>last|this|next)\s+(?:tax |school |financial )?"
    r"year\b(?P<owns>['’]?s\b)?",
    re.I,
)
_FROM_THIS_YEAR = {"last": -1, "this": 0, "next": 1}


def _calendar_years(param: Param, reply: Reply) -> list[Candidate]:
    """The years of a reply, for a parameter that is one: "my 2025 return", "last year"."""
    years = []
    for match in _SAID_YEAR.finditer(reply.text) if _is_year(param) else ():
        if reply.strict and not (match["year"] or match["of"] or match["owns"]):
            continue  # "we moved last year" says when something was
        value = (
            int(match["year"])
            if match["year"]
            else reply.now.year + _FROM_THIS_YEAR[match["which"].lower()]
        )
        years.append(Candidate(*match.span(), value, 0.85, 3, "year of the calendar"))
    return years


def taken(param: Param, reply: Reply) -> list[tuple[int, int]]:
    """Spans of a reply whose numbers belong to dates, times, sums of money or something else."""
    closed = [*dates(reply.text, reply.now.date()), *times(reply.text), *money(reply.text)]
    return [
        *((candidate.start, candidate.end) for candidate in closed),
        *owned(reply.text, ages=not _is_age(param)),
    ]


def _is_age(param: Param) -> bool:
    return (
        "age" in split_name(param.name)
        or re.search(r"\bage of\b|\bhow old\b", param.description, re.I) is not None
    )


AGE_TOLD = re.compile(
    r"\b(?:i['’]?m|(?:s?he|i) was|(?:s?he|who)['’]?s|(?:i am|(?:s?he|who) is)"
    r"|(?:s?he|i)(?:['’]?ll| will) be)\s+"
    r"(?:(?:only|just|nearly|now|turning)\s+)?(?P<age>\d{1,3})(?=\s*(?:$|[,;!?)]|\.(?!\d)"
    r"|(?:and|but|now|so|next|this|last|love|dear|mate|hun)\b))",
    re.I,
)


def _ages(param: Param, text: str) -> list[Candidate]:
    """The ages of a text, for a parameter that is one."""
    ages = []
    if not _is_age(param):
        return []
    for match in AGE_TOLD.finditer(text):
        ages.append(Candidate(*match.span("age"), int(match["age"]), 0.9, 3, "age"))
    for match in AGE.finditer(text):
        written = match["age"] or match["aged"]
        value = (
            int(written)
            if written.isdigit()
            else words_value(written)
            if written.lower() in UNITS
            else None
        )
        if value is not None:
            ages.append(Candidate(match.start(), match.end(), value, 0.95, 3, "age"))
    return ages


def _fit(param: Param, reply: Reply, numeral: Numeral, people: bool) -> tuple[int, float, int]:
    """Fit, confidence and end of the raw words of a number: the noun it counts decides."""
    text, end = reply.text, numeral.end
    lead, rest = before(text, numeral.start), text[end : end + 40]
    labelled = _is_labelled(param, lead)
    counts = _QUANTITIES.intersection(split_name(param.name)) or _is_count(param)
    if counts and _before_value(reply, end):
        return 3, 0.9, end
    if labelled or _NOT_A_COUNT.search(lead, max(0, len(lead) - _LABEL_REACH)):
        labelled = labelled or (not reply.strict and _NUMBER_ALONE.fullmatch(text) is not None)
        return (3, 0.95, end) if labelled else (-1, 0.0, end)
    if (room := _ROOMS.match(text, end)) and f"{room['kind'].lower()}room" in own_stems(param):
        return 3, 0.95, room.end()
    unit = _UNIT.match(text, end)
    judged = _by_noun(param, reply, unit, end, people) if unit else None
    if judged:
        return judged
    if _is_pronoun(lead, text[numeral.start : end], rest):
        return -1, 0.0, end
    if _is_order(lead, rest) and (people or _QUANTITIES.intersection(split_name(param.name))):
        return 3, 0.8, end
    if people and _counts_people(lead, text, numeral):
        return 3, 0.85, end
    if numeral.value == 1 and _is_just_one(param, reply, lead, rest):
        return 3, 0.8, end
    alone = not re.search(r"\w", lead + rest)
    if _is_only_count(param, reply, numeral) and (
        _OF_THEM.match(text, end)
        or (numeral.value > _DAYS and _CHANGED_TO.search(lead) and _ENDS_WISH.match(text, end))
        or (
            not re.search(r"\w", lead)
            and _ALL_SAID.match(rest)
            and (numeral.value > _DAYS or "dozen" in text.lower())
        )
    ):
        return 3, 0.8, end
    counted = unit is not None and (
        re.match(r"\s+[a-z]{3,}s\b", rest) is not None or (people and _is_noun(unit[1]))
    )
    return (1 if alone or not counted else 0), 0.9 if alone else 0.55 if counted else 0.75, end


def _is_just_one(param: Param, reply: Reply, lead: str, rest: str) -> bool:
    """Whether words say that one is enough, for the one open count: "just the one, please"."""
    return (
        re.search(r"\b(?:just|only)\s+(?:the\s+)?$", lead, re.I) is not None
        and re.match(r"\s*(?:$|[.,;!?)]|(?:please|pls|thanks|ta|then)\b)", rest, re.I) is not None
        and _is_count(param)
        and not _has_rival(reply)
    )


_OF_THEM = re.compile(r"\s+of\s+(?:them|those|these|each)\b", re.I)


_CHANGED_TO = re.compile(
    r"\b(?:change|increase|raise|reduce|lower|cut|drop|bump|up|set|go|put|make|bring)\b[^.!?;]*"
    r"\b(?:to|it|that)\s+(?:(?:just|only|about|around)\s+)*$",
    re.I,
)
_ALL_SAID = re.compile(r"\W*(?:(?:please|pls|plz|thanks|ta|then)\W*)*$", re.I)
_DAYS = 31
"""A number up to this one may as well be a day of the month or an hour."""
_ENDS_WISH = re.compile(
    r"\s*(?:$|[.,;!?)](?!\d)|(?:please|pls|plz|instead|in total|altogether|if|from|then|now"
    r"|thanks)\b)",
    re.I,
)


def _is_only_count(param: Param, reply: Reply, numeral: Numeral) -> bool:
    """Whether a parameter is the only one that a number without a noun may count for."""
    return (
        _is_count(param)
        and isinstance(numeral.value, int)
        and numeral.value > 1
        and not _has_rival(reply)
    )


def _is_count(param: Param) -> bool:
    """Whether a parameter says how many there are of something that is no unit of time."""
    return _says_count(f"{param.name.replace('_', ' ')}. {param.description}. {param.prompt}")


@lru_cache(maxsize=512)
def _says_count(wording: str) -> bool:
    return COUNTS.search(wording) is not None and not any(
        _UNITS.fullmatch(word) for word in re.findall(r"[a-z]+", wording.lower())
    )


def _has_rival(reply: Reply) -> bool:
    """Whether another count is open."""
    return any(other.type == ParamType.INTEGER and _is_count(other) for other in reply.others)


def _by_noun(
    param: Param, reply: Reply, unit: re.Match[str], end: int, people: bool
) -> tuple[int, float, int] | None:
    """What the noun after a number says of it; None where it says nothing."""
    noun = stem(unit[1])
    if any(
        _counts(other, noun) for other in reply.others if other.type == ParamType.INTEGER
    ) and not _counts(param, noun):
        return -1, 0.0, end
    behind = re.match(r"\s+([a-z]+)", reply.text[unit.end() : unit.end() + 30])
    if (
        behind
        and stem(behind[1]) in own_stems(param)
        and unit[1].islower()
        and noun not in own_stems(param)
        and unit[1] not in FUNCTION_WORDS
    ):
        return 3, 0.9, unit.end() + behind.end()
    if _counts(param, noun) or stem(unit.group().strip().replace(" ", "")) in own_stems(param):
        return 3, 0.95, unit.end()
    wording = f"{param.name} {param.description} {reply.prompt}"
    if noun in _asked_nouns(reply.prompt):
        return 2, 0.9, unit.end()
    if noun in ("day", "night") and (own_stems(param) & _STAYS or _HOW_LONG.search(reply.prompt)):
        return 2, 0.9, end
    if (
        param.type is ParamType.INTEGER
        and _UNITS.fullmatch(unit[1])
        and not (_IS_LENGTH.search(wording) and not _is_age(param))
        and not (_is_age(param) and noun.startswith("year"))
    ):
        return -1, 0.0, end
    if own_stems(param) & _TIMES and is_person(unit[1].lower()):
        return -1, 0.0, end  # "we're 2 people" says for how many hours to nobody
    if people and (
        unit[1].lower() in _OTHER_NOUNS or unit[1].lower().removesuffix("s") in _OTHER_NOUNS
    ):
        return -1, 0.0, end
    if (
        reply.strict
        and not people
        and _QUANTITIES.intersection(split_name(param.name))
        and _is_ware(unit[1])
    ):
        return 3, 0.55, end
    return None


@lru_cache(maxsize=64)
def _asked_nouns(prompt: str) -> frozenset[str]:
    """The stems of the longer words of a question."""
    return frozenset(stem(word) for word in re.findall(r"[a-z]+", prompt.lower()) if len(word) > 3)


_UNITS = re.compile(
    r"(?:sec(?:ond)?|min(?:ute)?|h(?:ou)?r|day|night|week|wk|month|year|yr|kilo|kg|gram|lb|pound|mile"
    r"|kilomet(?:re|er)|km|met(?:re|er)|litre|euro|dollar|quid|buck|percent)s?",
    re.I,
)
"""Units, which are no things that one has so many of."""
_IS_LENGTH = re.compile(
    r"\b(?:how (?:long|old|often|far|big|tall|heavy|wide|much)|size|length|duration|age|weigh\w*"
    r"|distance|mileage|height|amount)\b",
    re.I,
)


def _before_value(reply: Reply, end: int) -> bool:
    """Whether another parameter's allowed value follows a number: "one caesar salad"."""
    others = [other for other in reply.others if other.type == ParamType.ENUM]
    return any(
        re.fullmatch(r"\s(?:[a-z]{3,}\s)?", reply.text[end : value.start])
        for other in others
        for value in exact(other, reply.text)
        if value.start > end
    )


def _counts(param: Param, noun: str) -> bool:
    """Whether the parameter counts this noun (a stem): one of its own, or of the same meaning."""
    return noun in own_stems(param) or not CONCEPTS.get(noun, frozenset()).isdisjoint(
        _concepts_of(param.name)
    )


@lru_cache(maxsize=512)
def _concepts_of(name: str) -> frozenset[str]:
    """What the words of a parameter's name mean."""
    words = (CONCEPTS.get(stem(word), frozenset()) for word in split_name(name))
    return frozenset[str]().union(*words)


def _is_labelled(param: Param, lead: str) -> bool:
    """Whether the parameter's own noun labels the number: "room 412", "locker no. 7"."""
    match = _LABEL.search(lead, max(0, len(lead) - _LABEL_REACH))
    return match is not None and stem(match[1]) in labels(param)


def _is_ware(noun: str) -> bool:
    """Whether a noun is the plural of a thing that can be had in any number."""
    low = noun.lower()
    return (
        re.fullmatch(r"[a-z]{3,}s", noun) is not None
        and low[:-1] not in _OTHER_NOUNS
        and not is_person(low)
    )


_ONE_ME = re.compile(r"(?:1|one)\s*[,:;–-]?\s*(?:just |only )?(?:me|myself)\b", re.I)


def _counts_people(lead: str, text: str, numeral: Numeral) -> bool:
    """Whether a number without a noun is one of people: "for 4", "party of 4", "we are 5"."""
    if _ONE_ME.match(text, numeral.start):
        return True
    match = _OF_PEOPLE.search(lead)
    if not match or not isinstance(numeral.value, int) or not 0 < numeral.value <= _MOST_PEOPLE:
        return False
    after = re.match(r"\s*-?\s*([A-Za-z]+)", text[numeral.end : numeral.end + 30])
    return after is None or after[1].lower() in _FOLLOWS


def _is_noun(word: str) -> bool:
    return word.lower() not in _FOLLOWS and word.lower() not in VERBS


def _is_order(lead: str, rest: str) -> bool:
    """Whether a bare number begins a wish: "two for the ferry", "can i get 3 for friday"."""
    return re.match(r"\s+for\s+(?!\d)", rest) is not None and _WISHED.search(lead) is not None


_WISHED = re.compile(
    r"(?:^|[.,;:!?]|\b(?:get|want|need|like|have|book|reserve|order|buy|please|us|me|hi|hello|hiya"
    r"|hey))\s*$",
    re.I,
)


def _is_pronoun(lead: str, written: str, rest: str) -> bool:
    """Whether "one" stands for a thing ("a cheap one", "one in Salem") and counts nothing."""
    if written.lower() != "one":
        return False
    led = _PRONOUN_BEFORE.search(lead) is not None and not re.search(
        r"\b(?:just|only) the\s+$", lead, re.I
    )
    return led or (_PRONOUN_AFTER.match(rest) is not None and not _SURE_BEFORE.search(lead))


def _weeks(param: Param, text: str, reply: Reply) -> list[Candidate]:
    """A number of days may be given in weeks, nights by their weekdays: "fri and sat night"."""
    if not {"day", "night"} & own_stems(param) and not re.search(
        r"\bhow (?:many (?:days|nights)|long)\b", reply.prompt, re.I
    ):
        return []
    weeks = []
    for match in re.finditer(
        r"\b(?:(an?|one)|(\d{1,2}|two|three|four))\s+(?:weeks?|(fortnights?))\b", text, re.I
    ):
        count = 1 if match[1] else int(match[2]) if match[2].isdigit() else UNITS[match[2].lower()]
        days = (14 if match[3] else 7) * count
        weeks.append(Candidate(match.start(), match.end(), days, 0.85, 3, "weeks in days"))
    if nights := _NAMED_NIGHTS.search(text):
        named = len(re.findall(_WEEKDAY, nights["days"], re.I))
        weeks.append(Candidate(*nights.span("nights"), named, 0.85, 3, "nights by their days"))
    return weeks


_WEEKDAY = r"\b(?:mon|tues?|wed(?:nes)?|thur?s?|fri|sat(?:ur)?|sun)(?:day)?\b"
_NAMED_NIGHTS = re.compile(
    rf"(?P<days>{_WEEKDAY}(?:\s*(?:,|and|&|\+)\s*{_WEEKDAY}){{1,6}})\s+(?P<nights>nights?)\b", re.I
)


_YEARS = re.compile(
    r"\b(?:(?P<half>half\s+an?)|(?P<count>\d|an?|one|two|three|four"
    r"|five))\s+years?\b(?P<more>\s+and\s+a\s+half)?",
    re.I,
)


def _years(param: Param, text: str) -> list[Candidate]:
    """A number of months may be given in years."""
    if "month" not in own_stems(param):
        return []
    candidates = []
    for match in _YEARS.finditer(text):
        count = (match["count"] or "").lower()
        years = (
            0.5
            if match["half"]
            else int(count)
            if count.isdigit()
            else 1
            if count in ("a", "an")
            else UNITS[count]
        )
        months = round(12 * (years + (0.5 if match["more"] else 0)))
        candidates.append(Candidate(match.start(), match.end(), months, 0.85, 3, "years in months"))
    return candidates


def counts(param: Param, reply: Reply) -> list[Candidate]:
    """The numbers of a reply that are part of nothing else, judged by what they count."""
    people = counts_people(param, reply.prompt) and not _is_age(param)
    apart = people and any(
        other.type == ParamType.INTEGER and counts_people(other) for other in reply.others
    )
    closed = taken(param, reply)
    lengths = [
        *durations(param, reply.text, reply.prompt),
        *_ages(param, reply.text),
        *outside(_calendar_years(param, reply), closed),
    ]
    spans = [*closed, *((length.start, length.end) for length in lengths)]
    candidates = []
    for numeral in numerals(reply.text):
        fit, confidence, end = _fit(param, reply, numeral, people)
        candidates.append(Candidate(numeral.start, end, numeral.value, confidence, fit, "count"))
    candidates = [*outside(candidates, spans), *measures(param, reply), *ordinals(param, reply)]
    if people and not (apart and any(count.fit >= 3 for count in candidates)):
        theirs = [(c.start, c.end) for c in candidates if apart and c.fit < 0]
        candidates = _people(reply, candidates, spans, theirs)
    candidates = [
        c
        for c in candidates
        if not (_REPLACED.search(before(reply.text, c.start)) and _BY.match(reply.text, c.end))
    ]
    weeks = [*_weeks(param, reply.text, reply), *_years(param, reply.text)]
    return [*outside(candidates, [(week.start, week.end) for week in weeks]), *weeks, *lengths]


def _people(
    reply: Reply,
    numbers: list[Candidate],
    spans: Sequence[tuple[int, int]],
    theirs: Sequence[tuple[int, int]],
) -> list[Candidate]:
    """Numbers of people: groups and the numbers outside them, else whoever is named alone.

    A group that holds a number of `theirs` is counted by another parameter: "five adults".
    """
    together = [
        group
        for group in outside(companies(reply.text), theirs)
        if not any(s <= group.start and group.end <= e for s, e in spans)
    ]
    rest = outside(numbers, [(company.start, company.end) for company in together])
    rest = [
        candidate for candidate in rest if isinstance(candidate.value, int) and candidate.value >= 0
    ]
    if any(candidate.fit >= 0 for candidate in rest) or together:
        return [*rest, *together]
    both = _BOTH.match(reply.text)
    if both:
        start, end = trim(reply.text, *both.span())
        return [Candidate(start, end, 2, 0.85, 2, "two people")]
    return alone(reply.text)


_NO_ONE = re.compile(
    r"\W*(?:(?:nope|no|nah|sorry|there (?:are|is)|(?:we|i)(?: have|['’]ve)(?: got)?)\W+)*"
    r"(?:none|nil|no(?: [a-z]+s|one| one)|not any|nobody|any"
    r"|(?:i|we)(?:['’]re|['’]ll| are| will| do| have| wo)?(?: not|n['’]?t)(?: \w+)? any)"
    r"(?: (?:at all|yet|this time|thanks|thank you|please|of those|of them))*"
    r"(?:\W*$|\s*[,;.–-]\s*(?!\s*(?:but|only|just)\b)[^\d]{1,60})",
    re.I,
)
_SINGLE = re.compile(
    r"\W*(?:(?:just|only|for|it's|maybe|about|please)\W+)*(?:(?:an?|another)\s+(?:[a-z]+\s+)?one"
    r"|(?:an?|another|the|that)\s+(?:[a-z]+\s+)?(?P<noun>(?!(?:please|pls|one)\b)[a-z]+)"
    r"|(?:a )?single(?: one)?)"
    r"(?:\W+(?:please|pls|will do|thanks|for now))*\W*",
    re.I,
)


_COUPLE = re.compile(
    r"\W*(?:just\s+)?(?P<two>(?:the |a )?couple)(?:\W+(?:please|pls|then|ta))*\W*", re.I
)


def _in_no_numeral(param: Param, reply: Reply) -> list[Candidate]:
    """What an answer counts that holds no number: "none", "a month", "just a single one"."""
    whole = trim(reply.text, 0, len(reply.text))
    if _NO_ONE.fullmatch(reply.text) and re.search(r"\bhow many\b", reply.prompt, re.I):
        return [Candidate(*whole, 0, 0.75, 1, "none")]
    if couple := _COUPLE.fullmatch(reply.text):
        return [Candidate(*couple.span("two"), 2, 0.75, 1, "a couple")]
    single = _SINGLE.fullmatch(reply.text)
    if single and (single["noun"] is None or _counts(param, stem(single["noun"]))):
        return [Candidate(*whole, 1, 0.75, 1, "a single one")]
    return []


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The whole numbers of a reply; without a question, only those of the parameter's noun."""
    candidates = [c for c in counts(param, reply) if isinstance(c.value, int)]
    present = [candidate for candidate in candidates if is_so_far(reply.text, candidate)]
    if present and len(candidates) > len(present):  # "you come every 4 weeks at present, make it 8"
        candidates = [
            replace(candidate, fit=-1 if candidate in present else max(candidate.fit, 3))
            for candidate in candidates
            if candidate.fit >= 0
        ]
    if reply.strict:
        return [candidate for candidate in candidates if candidate.fit >= 3]
    counted = any(candidate.fit >= 0 for candidate in candidates)
    return candidates if counted else [*candidates, *_in_no_numeral(param, reply)]
