"""How many people a phrase names: "me and my wife", "5 adults and 1 child", "just me"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.english.lexicon import ANIMAL
from langmem_ext.waiting.extract.english.tokens import before
from langmem_ext.waiting.extract.numbers.numerals import UNITS, numerals

_PLURAL = (
    r"(?:people|peoples|persons?|person's|passengers?|riders?|travell?ers?|guests?|adults?"
    r"|individuals?|pax|ppl|friends?|members?|diners?"
    r"|men|women|guys|girls|boys|grown[\s-]?ups?|kids?|child(?:ren)?|couples?"
    r"|seats?|tickets?|tix|others?|mates?|babies|baby|infants?|toddlers?|teens?|teenagers?|sisters?"
    r"|brothers?|sons?|daughters?|cousins?"
    r"|colleagues?|co-?workers?|siblings?|buddies|buddy|pals?|grandkids|grandchildren|students?"
    r"|ladies|gentlemen)"
)
_SOMEBODY = (
    r"(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|mother|mom|mum|father|dad"
    r"|sister|brother|son|daughter|friend|kid"
    r"|child|baby|infant|guest|colleague|boss|date|client|cousin|aunt"
    r"|uncle|grandma|grandpa|grandmother|grandfather|roommate|neighbou?r|mate|buddy|niece|nephew"
    r"|nan|nana|gran|granny|missus|hubby|fella|bloke|lad|lass"
    r"|bro|sis|bf|gf|mrs|grandson|granddaughter|in-law|other half|better half|other person)"
)
_COUNTED = re.compile(
    r"(?:[\s-]+of\s+(?:my|our|the))?[\s-]+(?:other |more |young |little |small )?(?:[a-z]+"
    rf" )?{_PLURAL}\b|[\s-]+of\s+us\b",
    re.I,
)
_GENERIC = re.compile(
    r"(?:people|peoples|persons?|passengers?|riders?|travell?ers?|guests?|adults?|seats?|tickets?"
    r"|tix|pax|ppl)$",
    re.I,
)
_AND = re.compile(r"\s*(?:\b(?:and|n)\b|\bplus\b|\+|&)\s*", re.I)
_SPEAKER = re.compile(r"\b(?:me|myself|i)\b", re.I)
_RELATIVE = re.compile(
    rf"\b(?:my|our|the|an?|his|her|their)\s+(?:\d{{1,2}}|{'|'.join(UNITS)})[\s-]*(?:years?|yrs?"
    rf"|months?)[\s-]*old\b(?!\s+{_SOMEBODY}s?\b)|"
    r"(?<=[,&+]\s)(?:mum|mom|dad|nan|gran|grandma|grandad|aunty|auntie|uncle)\b(?:\s+[A-Za-z]+(?=\W*$))?"
    r"|(?<=\band\s)(?:mum|mom|dad|nan|gran|grandma|grandad|aunty|auntie|uncle)\b(?:\s+[A-Za-z]+(?=\W*$))?|"
    rf"\b(?:my|our|the|an?|his|her|their)\s+(?:(?:\d{{1,2}}|\w+)[\s-](?:years?"
    rf"|months?)[\s-]old\s+)?(?:(?:other|best|little|older|younger|elder|dear)\s+)?{_SOMEBODY}\b",
    re.I,
)
_PET = re.compile(rf"\b(?:my|our|the|an?|his|her|their)\s+(?:\w+\s+)?{ANIMAL}\b", re.I)
_FOR_THEM = re.compile(
    r"(?:['’]s)?[\s-](?:seat|chair|bed|cot|menu|meal|ticket|portion|size|room|discount)s?\b", re.I
)
"""What makes somebody before it a thing: "a child seat"."""
_PAIR = re.compile(
    r"\b(?:my|our|his|her|both|the)\s+(?:parents|grandparents|in-laws)\b(?!['’])"
    r"|\b(?:him|her|he|she) (?:and|n|&) (?:me|i|myself)\b|\bme (?:and|n|&) (?:him|her)\b"
    r"(?=\s*(?:$|[.,;!?]))"
    r"|\bparents\b(?!['’]|\s+(?:evening|night|day|meeting|room)\b)|\b(?:both|the"
    r" two|(?:the|a) pair) of us\b|\b(?:just|only) us two\b"
    r"|\ba couple\b(?=\s+(?:with|and|plus)\s+(?:my|our|the|an?|their)\b)|\bcouple of us\b",
    re.I,
)
_JOINT = re.compile(
    r"\s*(?:,|(?<=adults)\s(?=\d|one|two|three|four)|,?\s*\b(?:and|n)\b|,?\s*\bplus\b|,?\s*\bwith\b|\+"
    r"|&)\s*(?:(?:my|our|the)\s+)?",
    re.I,
)
_LED = re.compile(
    r"\b(?:com(?:e|ing)|go(?:ing)?|din(?:e|ing)|eat(?:ing)?|arriv(?:e|ing)|be|travel(?:l?ing)?"
    r"|there)\s+(with\s+)$",
    re.I,
)
_CLOSES = re.compile(r"\W*(?:$|[.,!;]|please\b|others?\b|more\b)", re.I)
_EXIST = re.compile(r"\bthere(?:'s| is| are| will be|['’]ll be)\s+(?:only\s+|just\s+)?$", re.I)
_TOTAL = re.compile(r"\s+(?:in total|total|altogether|in all|all together)\b", re.I)
_ALONE = re.compile(
    r"\b(?:(?:just|only|it's|its|it is)\s+(?:for\s+)?(?:little\s+)?(?:old\s+)?(?:me|myself)\b"
    r"|by myself|on my own|alone|solo|(?:myself|me) only|no one else)"
    r"|^\W*(?:for\s+)?(?:little\s+old\s+)?(?:me|myself)\W*$"
    rf"|^\W*(?:(?:just|only|it's|its|for)\s+)*(?:my|our|his|her)\s+{_SOMEBODY}\W*$",
    re.I,
)
_ACTS = re.compile(
    r"(?:['’]s\b|\s+(?:is|are|was|will|wants?|can|has|have|just|also|[a-z]{2,}[^\Ws]s)\b)", re.I
)
"""What follows whoever is spoken of, not counted: "three people, my sister is coming too"."""
_OF_US = re.compile(r"(?<=\w)\s+of\s+us$", re.I)
_JUST_ME = re.compile(
    r"(?:just|only)\s+(?:for\s+)?(?:little\s+)?(?:old\s+)?(?:me|myself)\b|by myself|on my own|solo",
    re.I,
)
_WITH = re.compile(r"\bwith\s+$", re.I)
"""What joins the only person who is named to whoever speaks."""


_ANYBODY = re.compile(_PLURAL)


def is_person(noun: str) -> bool:
    """Whether a noun, written small, is one of people."""
    return _ANYBODY.fullmatch(noun) is not None


@dataclass(frozen=True, slots=True)
class _Term:
    start: int
    end: int
    count: int
    kind: str


def _terms(text: str) -> list[_Term]:
    """The terms of `text` that name people, in order.

    Numbers without a noun are included; they count only beside other terms.
    """
    terms = [_Term(m.start(), m.end(), 1, "speaker") for m in _SPEAKER.finditer(text)]
    terms += [
        _Term(m.start(), m.end(), 1, "relative")
        for m in _RELATIVE.finditer(text)
        if not _FOR_THEM.match(text, m.end())
    ]
    terms += [_Term(m.start(), m.end(), 0, "pet") for m in _PET.finditer(text)]
    terms += [_Term(m.start(), m.end(), 2, "pair") for m in _PAIR.finditer(text)]
    for numeral in numerals(text):
        unit = _COUNTED.match(text, numeral.end)
        if isinstance(numeral.value, int) and 0 <= numeral.value < 10_000:
            each = 2 if unit and unit.group().lower().endswith("couples") else 1
            terms.append(
                _Term(
                    numeral.start,
                    unit.end() if unit else numeral.end,
                    each * numeral.value,
                    "counted" if unit else "bare",
                )
            )
    kept: list[_Term] = []
    for term in sorted(terms, key=lambda t: (t.start, -t.end)):
        if not kept or term.start >= kept[-1].end:
            kept.append(term)
    return kept


def _chains(text: str, terms: Sequence[_Term]) -> list[list[_Term]]:
    chains: list[list[_Term]] = []
    for term in terms:
        if chains and _JOINT.fullmatch(text[chains[-1][-1].end : term.start]):
            chains[-1].append(term)
        else:
            chains.append([term])
    return chains


def _settled(text: str, chain: list[_Term]) -> list[_Term]:
    """A chain without its side terms: bare numbers, and an "I" that begins another clause.

    A number that is added to the speaker stays: "me + 1".
    """
    bare = [at for at, term in enumerate(chain) if term.kind == "bare"]
    if (
        bare == [1]
        and chain[0].kind == "speaker"
        and _AND.fullmatch(text[chain[0].end : chain[1].start])
        and _CLOSES.match(text, chain[1].end)
    ):
        return chain[:2]
    if bare and not (
        bare == [0] and len(chain) == 2 and _AND.fullmatch(text[chain[0].end : chain[1].start])
    ):
        chain = chain[bare[0] + 1 :] if bare[0] == 0 else chain[: bare[0]]
    while (
        len(chain) > 1
        and chain[-1].kind == "relative"
        and _ACTS.match(text, chain[-1].end)
        and "," in text[chain[-2].end : chain[-1].start]
    ):
        chain = chain[:-1]
    if (
        len(chain) > 1
        and chain[-1].kind == "speaker"
        and _GENERIC.search(before(text, chain[-2].end))
        and re.match(r"\s*['’\w]", text[chain[-1].end :])
    ):
        chain = chain[:-1]
    return chain


_ANYBODY_OF = re.compile(
    r"(?:people|persons?|passengers?|guests?|seats?|tickets?|places?|pax|ppl|of us)$", re.I
)


def _total(text: str, chain: Sequence[_Term]) -> int:
    """The sum; "4 people, 3 adults and 1 baby" are four, "one person, my dad" is one.

    So are "4 of us, me, my wife …": whoever speaks is one of us.
    """
    first, rest = chain[0], sum(term.count for term in chain[1:])
    apart = len(chain) > 1 and text[first.end : chain[1].start].strip().startswith(",")
    whole = _ANYBODY_OF.search(text[first.start : first.end]) is not None
    alike = len(chain) > 2 and all(term.kind != "speaker" for term in chain)
    us = re.search(r"\bus$", text[first.start : first.end], re.I) is not None
    detailed = (first.count == rest and (whole or alike)) or (
        us and apart and chain[1].kind == "speaker"
    )
    return first.count if apart and detailed and first.kind == "counted" else first.count + rest


def companies(text: str) -> list[Candidate]:
    """The groups of people that `text` names by a noun or by joining them, each with its size."""
    groups = []
    chains = _chains(text, _terms(text))
    if chains and (total := _detailed(text, chains[0])):
        return [total]
    for chain in (_settled(text, chain) for chain in chains):
        kinds = {term.kind for term in chain}
        if [term.kind for term in chain] == ["speaker", "bare"]:
            groups.append(
                Candidate(
                    chain[0].start, chain[1].end, _total(text, chain), 0.85, 3, "number of people"
                )
            )
            continue
        if kinds == {"speaker", "pet"}:
            groups.append(
                Candidate(
                    chain[0].start, chain[-1].end, _total(text, chain), 0.75, 3, "with an animal"
                )
            )
            continue
        if kinds == {"relative"} and len(chain) == 1 and _WITH.search(before(text, chain[0].start)):
            groups.append(Candidate(chain[0].start, chain[0].end, 2, 0.75, 3, "with somebody"))
            continue
        if not kinds & {"counted", "pair"} and not (len(chain) > 1 and kinds & {"relative"}):
            continue
        start, end, size = chain[0].start, chain[-1].end, _total(text, chain)
        led = _LED.search(before(text, start))
        if led and "speaker" not in kinds and "of us" not in text[start:end].lower():
            start, size = led.start(1), size + 1
        whole = (
            _EXIST.search(before(text, start))
            or text[start:end].lower().endswith("of us")
            or _TOTAL.match(text, end) is not None
        )
        if len(chain) == 1 and whole:
            end = start + len(_OF_US.sub("", text[start:end]))
        groups.append(
            Candidate(
                start,
                end,
                size,
                0.95 if len(chain) == 1 else 0.85,
                4 if whole else 3,
                "number of people",
            )
        )
    return groups + [
        Candidate(n.start, n.end, n.value, 0.95, 4, "total")
        for n in numerals(text)
        if isinstance(n.value, int)
        and _TOTAL.match(text, n.end)
        and not any(c.overlaps(n.start, n.end) for c in groups)
    ]


def _detailed(text: str, chain: Sequence[_Term]) -> Candidate | None:
    """The number with which a message begins, where it then says who they are: "3, me and mum"."""
    first, rest = chain[0], chain[1:]
    size = sum(term.count for term in rest)
    told = rest and text[first.end : rest[0].start].strip().startswith(",")
    if first.kind != "bare" or text[: first.start].strip() or not told or first.count < size:
        return None
    return Candidate(first.start, first.end, first.count, 0.9, 3, "number of people")


def alone(text: str) -> list[Candidate]:
    """One, where the text says that it is only the speaker: "just me"."""
    match = _ALONE.search(text)
    return (
        [
            Candidate(
                match.start(),
                match.end(),
                1,
                0.85,
                3 if _JUST_ME.match(match.group()) else 2,
                "one person",
            )
        ]
        if match
        else []
    )
