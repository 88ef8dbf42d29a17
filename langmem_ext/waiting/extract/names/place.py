"""Places: cities, areas, stations, destinations; capitalised, or after "in", "from", "to"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate, turned_down
from langmem_ext.waiting.extract.closed_spans import closed_spans
from langmem_ext.waiting.extract.english.leadin import answer_span
from langmem_ext.waiting.extract.english.lexicon import (
    FUNCTION_WORDS,
    GENERIC_NOUNS,
    NEVER_NAMES,
    PRICE,
    STOPS_NAME,
    VERBS,
    word_set,
)
from langmem_ext.waiting.extract.english.roles import PLACE_CUES, with_roles
from langmem_ext.waiting.extract.english.tokens import Run, Token, before, runs, tokens
from langmem_ext.waiting.extract.names.address import addresses
from langmem_ext.waiting.extract.names.country import countries, is_country
from langmem_ext.waiting.extract.names.openness import is_no_answer, keep, named_before
from langmem_ext.waiting.extract.reply import Reply

_IN = re.compile(
    r"\b(?:in|near|around|from|to|into|towards?|within|outside|of|for|at|leaving|departing|depart"
    r"|visit|visiting|check|via"
    r"|(?<!how )(?<!what )about)"
    r"(?:\s+or\s+(?:around|near))?(?:\s+(?:the|a|an|city of|town of|area"
    r" of|city|somewhere|someplace|in|downtown|central|like|maybe"
    r"|either))*\s+$",
    re.I,
)
_REGION = re.compile(
    r",\s*((?!I\b)[A-Z]\w*(?:\.[A-Z]\b)*(?:\s+(?!I\b)[A-Z]\w*)?|(?!in\b|or\b|ok\b|on\b|at\b|to\b"
    r"|me\b|hi\b|so\b|no\b|my\b|we\b|it\b|by\b"
    r"|if\b|as\b)[a-z]{2}(?=\s*(?:$|[.,!?]|\s(?:on|at|to|from|for|and|in)\b)))"
    r"|\s+((?!I\b|OK\b|AM\b|PM\b)[A-Z]{2})(?=\W|$)"
)
_OPENERS = word_set(
    "san santa santo los las el la new fort port mount saint st mt ft north south east west lake"
)
_PARTS = word_set("side part end of area region")
_PART = re.compile(r"\s+(?:side|part|end|area|region)(?:\s+of(?:\s+(?:the\s+)?\w+)?)?$", re.I)
_KIND_AFTER = re.compile(
    r"\s+(?:food|cuisine|restaurants?|movies?|films?|music|style|dishes|events?|airlines?|airways"
    r"|hotels?)\b",
    re.I,
)
_DEMONYM = re.compile(r"\w+(?:ese|ish|ian|ean|ndian|can)$", re.I)
_IDIOMS = word_set(
    "case general total mind particular fact advance order time addition person town charge search"
    " need touch short"
)
_NO_LAST = (GENERIC_NOUNS - {"city"}) | {"the", "of", "next", "side", "part"}
"""Words that no name written small ends with."""
_NO_PLACE = GENERIC_NOUNS | FUNCTION_WORDS | _IDIOMS
"""Words that alone are no place, even after "in"."""
_GEOGRAPHY = re.compile(
    r"\s+(?:hills?|park|beach|valley|springs|lakes?|creek|heights|view|island|grove|bay|falls"
    r"|harbou?r|village|point|rock|mountain"
    r"|river)\b",
    re.I,
)
_SURE_CUE = re.compile(r"(?:in|near|around|from|into|leaving|departing)\b", re.I)
_GOING = re.compile(
    r"(?:\b(?:go|going|get|getting|travel|travell?ing|fly|flying|head|headed|heading|drive|trip|way"
    r"|be|come|move|ticket|tickets|flight|taxi|cab|lift|ride|train|bus"
    r"|(?:send|sending|ship|shipping|deliver|post)\s+(?:[\w.]+\s+){1,4}?"
    r"|from\s+[\w ]{2,30})|^\W*)\s*\bto\s+(?:the\s+)?$",
    re.I,
)
_LOWER = re.compile(
    r"\b(?:in|near|around|from|to|into|towards?|for|at|leaving|departing|visit|of|check|via)\s+"
    r"(?:(?:the|city of|town of|city|downtown|in|around|near|a|an)\s+)*(?=[a-z])",
    re.I,
)


def _region(text: str, end: int, masked: Sequence[tuple[int, int]]) -> int:
    """The end of a state or country after a place ("Salem, OR"); `end` when none follows."""
    match = _REGION.match(text, end)
    if not match or any(match.start() < stop and start < match.end() for start, stop in masked):
        return end
    first = (match[1] or match[2]).split()[0].lower()
    return end if first in NEVER_NAMES and not (match[1] or match[2]).isupper() else match.end()


def _capitals(
    param: Param, reply: Reply, words: Sequence[Token], masked: Sequence[tuple[int, int]]
) -> list[Candidate]:
    text, places, reached = reply.text, [], 0
    for run in runs(text, words, masked):
        if run.start < reached or _lone_generic(words, run):
            continue
        end = reached = _lengthened(text, words, run)
        if not turned_down(text, run.start):
            end = reached = _region(text, end, masked)
        start, end = _without_article(text, run), _unpossessed(text, run.start, end)
        fit = 2 if named_before(param, text, start) else _cued(before(text, start), reply)
        if re.search(
            r"\b(?:an?|some|any|for)\s+$", before(text, start), re.I
        ) and _KIND_AFTER.match(text, end):
            continue
        if not fit and (
            _KIND_AFTER.match(text, end)
            or (run.last - run.first == 1 and _DEMONYM.fullmatch(text[start:end]))
        ):
            continue
        end = start + len(_PART.sub("", text[start:end]))
        places.append(
            Candidate(start, end, text[start:end], 0.85 if fit else 0.6, fit, "capitalised name")
        )
    return places


def _cued(lead: str, reply: Reply) -> int:
    """1 after a preposition of place; "at" is left to a name that is asked for as well."""
    match = _IN.search(lead)
    if not match or (
        match.group().lower().startswith(("at", "of", "for"))
        and any(other.type == ParamType.NAME for other in reply.others)
    ):
        return 0
    return 1


def _lengthened(text: str, words: Sequence[Token], run: Run) -> int:
    """The end of a name whose second word is written small: "San diego", "Pleasant hill"."""
    if run.last - run.first == 1:
        geography = _GEOGRAPHY.match(text, run.end)
        if geography:
            return geography.end()
        after = words[run.last] if run.last < len(words) else None
        if (
            words[run.first].low in _OPENERS
            and after
            and after.low not in _PARTS
            and not text[run.end : after.start].strip()
            and after.low not in NEVER_NAMES
        ):
            return after.end
    return run.end


def _without_article(text: str, run: Run) -> int:
    """The start of a name without a "The" that only begins the sentence."""
    if text[run.start : run.start + 4] == "The " and not re.search(
        r"\w\s*$", before(text, run.start)
    ):
        return run.start + 4
    return run.start


def _lone_generic(words: Sequence[Token], run: Run) -> bool:
    """Whether a run is no place of its own.

    Such are a single common noun ("Restaurant"), an identifier, and a state after its city
    ("anaheim CA").
    """
    if run.last - run.first > 1:
        return False
    word = words[run.first]
    state = (
        len(word.text) == 2
        and run.first > 0
        and words[run.first - 1].low not in FUNCTION_WORDS | VERBS
    )
    if re.search(r"\d", word.text) and re.search(r"[A-Za-z]", word.text):
        return True
    return word.low in GENERIC_NOUNS or word.low in ("first", "second") or state


def _unpossessed(text: str, start: int, end: int) -> int:
    """The end of a name without the "'s" of "Salem's fine"."""
    stated = re.search(r"['’]s$", text[start:end]) and re.match(
        r"\s+(?:fine|good|great|ok|perfect|weather|it)\b", text[end:]
    )
    return end - 2 if stated else end


def _lower(
    reply: Reply, words: Sequence[Token], masked: Sequence[tuple[int, int]]
) -> list[Candidate]:
    """Names written small: up to four words after a preposition, up to the next function word."""
    places = []
    for cue in _LOWER.finditer(reply.text):
        taken: list[Token] = []
        for word in (word for word in words if word.start >= cue.end()):
            last = taken[-1].end if taken else cue.end()
            free = not any(word.start < stop and start < word.end for start, stop in masked)
            gap = reply.text[last : word.start].strip()
            if gap == "." and taken and taken[-1].low in ("st", "mt", "ft"):
                gap = ""
            if (
                word.low in STOPS_NAME
                or not free
                or gap
                or len(taken) == 4
                or word.text[0].isdigit()
            ):
                break
            taken.append(word)
        while taken and taken[-1].low in _NO_LAST:
            taken.pop()
        if taken and not (
            len(taken) == 1
            and (taken[0].low in _NO_PLACE or re.search(r"(?:ed|ing)$", taken[0].low))
        ):
            end = _region(reply.text, taken[-1].end, masked)
            sure = (
                1
                if _SURE_CUE.match(cue.group()) or _GOING.search(before(reply.text, cue.end()))
                else 0
            )
            places.append(
                Candidate(
                    taken[0].start,
                    end,
                    reply.text[taken[0].start : end],
                    0.6 if sure else 0.45,
                    sure,
                    "words after a preposition",
                )
            )
    return places


def _whole(reply: Reply, masked: Sequence[tuple[int, int]]) -> list[Candidate]:
    """The whole answer, when it is short and nothing but a name."""
    if is_no_answer(reply.text):
        return []
    start, end = answer_span(
        reply.text,
        0,
        min((begin for begin, _ in masked if reply.text[:begin].strip()), default=None),
    )
    words = [word for word in tokens(reply.text[start:end]) if word.low not in ("the", "on", "at")]
    joined = next(
        (at for at, word in enumerate(words) if word.low == "and" and at and reply.others), None
    )
    words = words[:joined]
    if not 1 <= len(words) <= 5 or any(start < stop and begin < end for begin, stop in masked):
        return []
    end = start + words[-1].end
    part = _PART.search(reply.text[start:end])
    end = start + part.start() if part else end
    words = tokens(reply.text[start:end])
    if not words or not _is_name(reply.text[start:end], words):
        return []
    behind = re.findall(r"[^\W\d_]+(?:['’]\w+)?", reply.text[end:].lower())
    bare = (
        len(words) <= 2
        and not re.search(r"\w", reply.text[:start])
        and all(word in _FRAME for word in behind)
    )
    sure = 0.7 if part else 0.5 if bare else 0.45
    return [
        Candidate(start, end, reply.text[start:end], sure, 1 if part else 0, "the whole answer")
    ]


_FRAME = word_set("works is would be fine good great perfect please thanks city for me us then")
"""Words behind a place that say no more than that it is wanted: "salem works for me"."""


def _is_name(written: str, words: Sequence[Token]) -> bool:
    """Whether words in small letters can be a place's name.

    A price, a kind of thing, a people's adjective or a function word rules it out.
    """
    if (
        PRICE.search(written)
        or _KIND_AFTER.search(written)
        or (len(words) == 1 and _DEMONYM.fullmatch(words[0].text))
    ):
        return False
    if any(
        (word.low in STOPS_NAME and word.low != "the") or word.text[-1].isdigit() for word in words
    ):
        return False
    return words[-1].low not in ("one", "ones") and not all(
        word.low in GENERIC_NOUNS for word in words
    )


def candidates(param: Param, reply: Reply) -> list[Candidate]:
    """The places of a reply before roles are judged."""
    masked = closed_spans(param, reply)
    streets = addresses(reply.text)
    blocked = [*masked, *((street.start, street.end) for street in streets)]
    words = tokens(reply.text)
    places = [*streets, *_capitals(param, reply, words, blocked)]
    if not places:
        small = _lower(reply, words, blocked)
        places += (
            [
                place
                for place in small
                if place.fit
                and (
                    _is_way(reply.text, place)
                    or (param.role and _LANDMARK.search(str(place.value)))
                )
            ]
            if reply.strict
            else small
        )
    if not places and not reply.strict:
        places = _whole(reply, blocked)
    return sorted(places, key=lambda candidate: candidate.start)


_LANDMARK = re.compile(
    r"\b(?:station|airport|harbou?r|pier|port|hotel|hostel|inn|library|museum|hospital|clinic|school"
    r"|college|university|union|church|cathedral|park|square|market|mall|centre|center|hall|stop"
    r"|terminal|bridge|castle|stadium|theatre|cinema|office)$",
    re.I,
)
"""How words end that are a place, written small: "from the railway station"."""
_STREET = re.compile(
    r"\b(?:on|in|at|along|off|down)\s+(?P<street>(?:(?!(?:the|a|an|our|my|your|this|that|any"
    r"|of)\b)[\w'’]+\s+){1,2}"
    r"(?:street|road|lane|avenue|close|drive|crescent|terrace|grove|row|way|square|gardens))\b",
    re.I,
)
_OF_STREETS = re.compile(r"\b(?:street|road|where|location)\b", re.I)


def _streets(param: Param, text: str) -> list[Candidate]:
    """The streets of a message, for a parameter that is one: "on quarry road"."""
    if not _OF_STREETS.search(f"{param.name} {param.description}"):
        return []
    return [
        Candidate(*match.span("street"), match["street"], 0.8, 1, "a street")
        for match in _STREET.finditer(text)
    ]


def _is_way(text: str, place: Candidate) -> bool:
    """Whether the words around a place name a trip to it, or on from it: "from york to leeds"."""
    lead = before(text, place.start)
    return (
        _GOING.search(lead) is not None
        or (re.search(r"\bfrom\s+$", lead, re.I) and re.match(r"\s+to\s", text[place.end :]))
        is not None
    )


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The places of a reply, those in this parameter's role first."""
    if is_country(param) and (named := countries(reply.text)):
        return named
    streets = [] if addresses(reply.text) else _streets(param, reply.text)
    places = streets or with_roles(param, reply, candidates(param, reply), PLACE_CUES)
    if (
        param.role
        and places
        and not reply.strict
        and all(candidate.fit < 0 for candidate in places)
    ):
        taken = [(candidate.start, candidate.end) for candidate in places]
        places += with_roles(param, reply, _lower(reply, tokens(reply.text), taken), PLACE_CUES)
    if param.role and reply.strict and not any(other.type == param.type for other in reply.others):
        streets = addresses(reply.text)
        places = [
            replace(place, fit=3)
            if place.fit >= 0 and any(place.overlaps(one.start, one.end) for one in streets)
            else place
            for place in places
        ]  # a house has a number; where one place alone is looked for, it is that
    return keep(reply, places, strict_fit=3 if param.role else 1)
