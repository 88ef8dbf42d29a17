"""Street addresses: a house number and a street, with what follows of city and code."""

from __future__ import annotations

import re
from dataclasses import replace

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate, longest
from langmem_ext.waiting.extract.dates.mentioned import dates
from langmem_ext.waiting.extract.english.attitude import wishes_by_asking
from langmem_ext.waiting.extract.english.leadin import answer_span
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, VERBS
from langmem_ext.waiting.extract.english.roles import PLACE_CUES, with_roles
from langmem_ext.waiting.extract.english.tokens import before
from langmem_ext.waiting.extract.names.openness import is_no_answer
from langmem_ext.waiting.extract.reading_cache import remembered
from langmem_ext.waiting.extract.reply import Reply

_KIND = (
    r"(?:street|st|avenue|ave|av|road|rd|boulevard|blvd|lane|ln|drive|dr|court|ct|place|pl|square"
    r"|sq|way|terrace|ter|parkway|pkwy"
    r"|highway|hwy|circle|cir|alley|plaza|row"
    r"|close|crescent|parade|grove|gardens|broadway|embarcadero|real|trail|loop|walk|quay|mews|expressway"
    r"|route|mall|center|centre)"
)
_UNIT = (
    r"(?:\s*,?\s*(?:#|(?:apt|apartment|flat|suite|ste|unit|floor|fl|room|rm|building|bldg)\b\.?\s*#?"
    r"|no\b\.?\s*(?=\d))\s*[\w-]+)?"
)
_TAIL = (
    r"(?:,\s*(?:\d{4,6}\s+)?(?!(?:The|A|An|Please|Thanks|Thank|And|But|For|At|On|I|We|It|My|This"
    r"|That|Is|So|No"
    r"|Yes)\b)(?-i:[A-Z])[\w'’-]*(?:\s+(?-i:[A-Z])[\w'’-]*){0,3}(?:\s+\d{4,6}(?:-\d{4})?\b"
    r"(?!\s*\d))?)*"
    r"(?:,?\s+(?-i:[A-Z]{2})\s+\d{5}(?:-\d{4})?"
    r"|,?\s+(?-i:[A-Z]{1,2})\d[A-Za-z\d]?\s*\d[A-Za-z]{2}\b"
    r"|\s+\d[A-Za-z]{2}\b|,\s*\d{4,6}\b(?!\s*\d))?"
)
_WORD = (
    r"(?!(?:please|and|on|at|for|in|with|to|people|persons?|tickets?|days?|is|with|thats?|that['’]s"
    r"|this|tomorrow|today|tonight|since|of|whole|am|pm|o['’]?clock"
    r"|its|it['’]s|from|near|by"
    r"|i['’]?m|we|i|my|\d+[A-Za-z]?)\b)[\w.'’&-]+"
)
_FLAT = (
    r"(?:\b(?:flat|apartment|apt\.?|unit|suite)\s+#?\w{1,5},?\s+)?"
    r"(?:(?-i:\b(?:[A-Z][\w'’-]*\s+){1,3}(?:House|Court|Lodge|Buildings?|Towers?|Mansions|Hall"
    r"|Cottage|Farm|Mill)),\s+)?"
)
_NUMBER = r"\b\d{1,6}(?:-\d{1,5})?[A-Za-z]?\b"
_KNOWN = re.compile(
    rf"{_FLAT}{_NUMBER},?\s+(?:St\.?\s+(?=(?-i:[A-Z])))?(?:{_WORD}\s+){{0,4}}?{_KIND}\b"
    rf"(?:\s+{_KIND}\b)?\.?(?:\s+(?:[NSEW]|NE|NW|SE|SW|North|South|East|West"
    rf"|Real)\b\.?)?{_UNIT}{_TAIL}",
    re.I,
)
_CAPITAL = re.compile(
    rf"(?i:{_FLAT}){_NUMBER}\s+(?:[NSEW]\.?\s+)?(?:(?!I\b)[A-Z][\w'’-]*|\d+(?:st|nd|rd"
    rf"|th))(?:\s+(?:(?!I\b)[A-Z][\w'’-]*|(?:of|the|de"
    rf"|del)(?=\s+[A-Z])))*{_UNIT}{_TAIL}"
)
_PREMISES = re.compile(
    r"\d+[A-Za-z]?\s.*\b(?:Wharf|View|Hill|House|Park|Estate|Green|Yard|Rise|Vale|Bank|Bridge|Dock"
    r"|Heights|Villas|Buildings|Cottages|Gate|Fields?|Meadows?|Croft|Dale|End|Mill|Island|Side)"
)
"""Names of streets and places that end in no kind of street."""
_IN_UNIT = re.compile(
    rf"\b(?:unit|flat|suite|block)\s+#?\w{{1,5}},?\s+(?-i:(?:[A-Z][\w'’-]*\s+){{1,3}})"
    rf"(?:{_KIND}|Park|Estate)\b(?:\s+(?-i:[A-Z])[\w'’-]*){{0,2}}{_TAIL}",
    re.I,
)
"""A part of a building or an estate: "Unit 3, Mill Lane Business Park"."""
_POSTCODED = re.compile(
    r"(?:\b(?i:unit|flat|suite|studio|apartment)\s+\w{1,5},?\s+)?(?:\b\d{1,5}[A-Za-z]?\s+)?"
    r"(?-i:\b[A-Z][\w'’-]*(?:\s+[A-Z][\w'’-]*){0,3})"
    r"(?:,\s*(?-i:[A-Z][\w'’-]*(?:\s+[A-Z][\w'’-]*){0,3})){1,4},?\s+"
    r"(?-i:[A-Z]{1,2}\d[A-Z\d]?\s*\d[A-Z]{2})\b"
)
"""A house by its name, up to a postcode: "The Old Forge, Church Lane, Bredon GL20 7LA"."""
_HOUSE = re.compile(
    rf"\b(?-i:The\s+[A-Z][\w'’-]*(?:\s[A-Z][\w'’-]*)*),\s+(?-i:(?:[A-Z][\w'’-]*\s+){{1,3}}){_KIND}\b"
    r"(?:,\s+(?-i:[A-Z][\w'’-]*(?:\s[A-Z][\w'’-]*){0,2}))*",
    re.I,
)
"""A house by its name and its street: "The Old Forge, Mill Street, Masham"."""
_NUMBERED = re.compile(
    r"\b\d{1,5}[A-Za-z]?\s+(?:[^\W\d_][\w'’-]*\s+){0,3}[^\W\d_][\w'’-]*,?\s+"
    r"[A-Z]{1,2}\d[A-Z\d]?\s*\d[A-Z]{2}\b",
    re.I,
)
"""A number and a name up to a postcode: "9 Weavers Yard, LS12 4QP"."""
_ROAD = rf"(?:(?:[\w'’-]+\s+){{1,3}}?{_KIND}\b|(?-i:[A-Z][\w'’-]*(?:\s[A-Z][\w'’-]*){{0,2}}))"
_CORNER = re.compile(
    rf"\b(?:corner|junction|intersection|crossing)(?:\s+of)?\s+{_ROAD}\s*(?:and|&|/|with)\s*{_ROAD}",
    re.I,
)
_OTHER_KIND = re.compile(
    r"[@$€£:]|\b\d{1,2}\s?(?:[ap]\.?m|st|nd|rd|th|people|of"
    r" us|kg|kilos?)\b|\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?"
    r"|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
    r"|(?:mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(?:days?)?)\b"
    r"|\b(?:half|quarter|past|o'?clock|tomorrow|today|yes|no|i|we|it|is|was|are|that|they|you"
    r"|thanks?|cheers|regards|sorry|please)\b|\b[A-Z]{1,}-?\d",
    re.I,
)
"""What no address holds, as a whole answer."""
_AFTER = re.compile(
    r"\b[A-Z][\w.'’-]*(?:\s+[A-Z][\w.'’-]*)*(?:stra(?:ss|ß)e|str\.|gasse|weg|platz"
    r"|allee)\s+\d{1,4}[a-z]?\b(?:,\s*\d{4,5}\s+[A-Z]\w+)?"
)


_FORMS = (
    (_KNOWN, 0.9),
    (_IN_UNIT, 0.9),
    (_CORNER, 0.9),
    (_POSTCODED, 0.9),
    (_NUMBERED, 0.9),
    (_HOUSE, 0.9),
    (_AFTER, 0.85),
    (_CAPITAL, 0.6),
)


@remembered
def addresses(text: str) -> list[Candidate]:
    """The street addresses of `text`; one with a known kind of street is more certain."""
    candidates = []
    for pattern, confidence in _FORMS:
        for match in pattern.finditer(text):
            end = match.start() + len(match.group().rstrip(" ,"))
            if text[end - 1] == "." and not re.search(
                r"\b(?:st|ave|rd|blvd|dr|ln)\.$", text[:end], re.I
            ):
                end -= 1
            day = pattern is _CAPITAL and _OTHER_KIND.search(text[match.start() : end])
            if re.search(r"[A-Za-z]{2}", text[match.start() : end]) and not day:
                candidates.append(
                    Candidate(
                        match.start(),
                        end,
                        text[match.start() : end],
                        confidence,
                        1,
                        "number and street",
                    )
                )
    return longest(candidates)


_LEADS = re.compile(
    r"(?:\baddress\b[^.;!?\d]{0,30}|\b(?:live|lives|living|stay|staying|moving|moved?|forward\w*"
    r"|redirect\w*|deliver\w*|sen[dt]|posted)\b"
    r"[^.;!?\d]{0,20}\b(?:at|to|in)\s+)$",
    re.I,
)
"""Words before a number and a name that are an address: "change my address as well: 7
Saltmarket"."""


def _is_led(reply: Reply, place: Candidate) -> bool:
    """Whether words before it, or its last, say that it is an address; no day is one."""
    days = dates(reply.text, reply.now.date())
    written = reply.text[place.start : place.end]
    led = (
        _LEADS.search(reply.text, 0, place.start)
        or _PREMISES.fullmatch(written)
        or (_FROM.search(before(reply.text, place.start)) and _TWO_WORDS.fullmatch(written))
    )
    return led is not None and not any(day.overlaps(place.start, place.end) for day in days)


_FROM = re.compile(r"\b(?:from|to|outside|near)\s+$", re.I)
_TWO_WORDS = re.compile(r"\d+[A-Za-z]?(?:\s[A-Z][\w'’-]*){2,3}")


_TOWN = re.compile(
    r"\s+(?:in\s+)?(?P<town>[^\W\d_][\w'’-]{2,}(?:\s+[^\W\d_][\w'’-]{2,}){0,2})(?=\W*$|\s*[,\n])"
)
_TOWN_WITHIN = re.compile(
    r"\s+(?P<town>[^\W\d_][\w'’-]{2,})"
    r"(?=\s*[,.;(]|\s+(?:\d|on|at|from|by|for|and|the|my|it|in|with|ready|is|to|please)\b)"
)
"""A town that something follows: only where nothing is capitalised, or it would be, too."""


def _with_town(reply: Reply, place: Candidate) -> Candidate:
    """The address with its town: "9 ferry street hull" as an answer, or in small letters."""
    stop = max(place.end, answer_span(reply.text)[1])
    match = None if reply.strict else _TOWN.match(reply.text, place.end, stop)
    if match is None and reply.text.islower():
        match = _TOWN_WITHIN.match(reply.text, place.end) or _TOWN.match(reply.text, place.end)
    if match is None or "street" not in place.reason:
        return place
    words = {word.lower() for word in re.findall(r"[\w'’-]+", match["town"])}
    free = words.isdisjoint(FUNCTION_WORDS | VERBS) and not _OTHER_KIND.search(match["town"])
    end = match.end("town")
    return replace(place, end=end, value=reply.text[place.start : end]) if free else place


_NEXT_PART = re.compile(r"\s*[,\n]\s*(?P<part>[^,.;:!?()\n]+)(?=\s*(?:[,.;:!?()\n]|$))")
_CODE = re.compile(r"(?:[A-Z]{1,2}\d[A-Z\d]?(?:\s*\d[A-Z]{2})?|(?:[A-Z]{2}\s+)?\d{4,6})", re.I)
"""A postal code, as a whole part."""
_OF_PREMISES = re.compile(
    r"\b(?:house|cottage|farm|lodge|hall|mill|court|tower|barn|flat|unit|block|suite|room"
    r"|building|buildings|mansions|villa|estate|park|stables|forge)\b",
    re.I,
)
_JOINS = re.compile(r"(?<=\w)[\s-](?:of|on|upon|by|in|under|le)(?:[\s-]the)?[\s-](?=\w)")
"""Function words within the names of places: "stow on the wold"."""


def _is_part(part: str) -> bool:
    """Whether the words between two commas may be a part of an address: "Little Marden"."""
    if _CODE.fullmatch(part):
        return True
    floor = part.lower().endswith("floor")  # which may be a value of its own
    if floor or len(part.split()) > _MOST_WORDS or _OTHER_KIND.search(part):
        return False
    named = re.match(r"\D", part) or _OF_PREMISES.search(part)
    telling = _JOINS.sub(" ", re.sub(r"^the\s+(?=\w)", "", part.lower()))
    return named is not None and (FUNCTION_WORDS | VERBS).isdisjoint(
        re.findall(r"[\w'’-]+", telling)
    )


_MOST_WORDS = 4


def _with_parts(text: str, place: Candidate) -> Candidate:
    """The address of an answer with its other parts: a house before it, towns behind it."""
    start, end = place.start, place.end
    begin, stop = answer_span(text)
    last = ""
    while not _CODE.fullmatch(last):  # nothing of an address follows its code
        after = _NEXT_PART.match(text, end, max(stop, end))
        last = after["part"].strip() if after else ""
        if after is None or not _is_part(last):
            break
        end = start + len(text[start : after.end()].rstrip())
    article = _THE.search(text, 0, begin)
    begin = article.start() if article else begin
    ahead = text[begin:start].rstrip()
    parts = [part.strip() for part in re.split(r"[,\n]", ahead)]
    if ahead.endswith(",") and all(_is_house(part) for part in parts[:-1]):
        start = begin
    return replace(place, start=start, end=end, value=re.sub(r",?\s*\n\s*", ", ", text[start:end]))


_THE = re.compile(r"\bthe\s+$", re.I)


def _is_house(part: str) -> bool:
    """Whether words before a street name a house, and nobody who lives there."""
    the_house = re.match(r"the\s", part, re.I) or _OF_PREMISES.search(part)
    alone = re.fullmatch(r"[A-Z][\w'’-]+", part)
    return _is_part(part) and (the_house is not None or alone is not None)


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The addresses of a reply; as an answer, also looser forms with a number or a comma."""
    candidates = [
        c
        for c in addresses(reply.text)
        if not reply.strict or c.confidence >= 0.85 or _is_led(reply, c)
    ]
    if candidates or reply.strict:
        candidates = [_with_town(reply, place) for place in candidates]
        if not reply.strict and len(candidates) == 1:
            candidates = [_with_parts(reply.text, candidates[0])]
        return _in_role(param, reply, candidates)
    start, end = answer_span(reply.text)
    article = _THE.search(reply.text, 0, start)
    start = article.start() if article else start
    written = reply.text[start:end]
    if not is_no_answer(reply.text) and (_is_spoken(written) or _is_all_parts(written)):
        return [Candidate(start, end, written, 0.45, 0, "answer with a number and a comma")]
    return []


_COMES = re.compile(
    r"\b(?:come|coming|came|over|round|driver|somebody|someone|man|guy)\s+to\s", re.I
)
_WHITHER = re.compile(r"\bcome\b", re.I)
"""Who comes to where something is fetched, in a message and in a question."""


def _in_role(param: Param, reply: Reply, candidates: list[Candidate]) -> list[Candidate]:
    """The addresses in the parameter's role; of who comes, "to" says nothing of where it goes."""
    if param.role is None or _COMES.search(reply.text) or _WHITHER.search(reply.prompt):
        return candidates
    return with_roles(param, reply, candidates, PLACE_CUES)


def _is_spoken(written: str) -> bool:
    """Whether a whole answer may be an address by a number in it, or by its capitals."""
    spoken = (
        re.search(r"\d|,", written)
        and re.search(r"[A-Za-z]{3}", written)
        and 4 <= len(written) <= 120
    )
    named = re.search(r"\d", written) or all(
        part.strip()[:1].isupper() for part in written.split(",")
    )
    few = len(re.findall(r"\d", written)) < 7
    other = wishes_by_asking(written) or _OTHER_KIND.search(written)
    return bool(spoken and named and few) and not other


def _is_all_parts(written: str) -> bool:
    """Whether an answer is a house and its town or code: "The Vicarage, Marden, NR1 2AB"."""
    first, *rest = (part.strip() for part in written.split(","))
    return bool(rest) and _is_house(first) and all(_is_part(part) for part in rest)
