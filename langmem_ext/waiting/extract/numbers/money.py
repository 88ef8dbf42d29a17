"""Sums of money: the amount as a number; the currency is the parameter's."""

from __future__ import annotations

import re

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate, longest, outside
from langmem_ext.waiting.extract.dates.mentioned import dates
from langmem_ext.waiting.extract.dates.time import times
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS
from langmem_ext.waiting.extract.english.tokens import before
from langmem_ext.waiting.extract.english.vocabulary import own_stems, stem
from langmem_ext.waiting.extract.numbers.numerals import (
    DIGITS,
    SCALED,
    WORDS,
    digits_value,
    numerals,
    scaled_value,
    words_value,
)
from langmem_ext.waiting.extract.numbers.owned import owned
from langmem_ext.waiting.extract.reading_cache import remembered
from langmem_ext.waiting.extract.reply import Reply

_UNIT = (
    r"(?:dollars?|bucks?|usd|euros?|eur|pounds?|gbp|quid|cents?|yen|jpy|rupees?|inr|francs?|chf|cad"
    r"|aud|pesos?|yuan|cny|[$€£¥₹])(?!\w)"
)
_MONEY = (
    re.compile(
        rf"(?<!\w)(?:us\s?)?[$€£¥₹]\s?(?P<digits>{DIGITS})(?:\s?(?P<scale>k|thousand|million|grand"
        rf"|hundred)\b)?(?:\s*{_UNIT})?",
        re.I,
    ),
    re.compile(
        rf"(?<![\w.,#/-])(?P<digits>{DIGITS})(?:\s?(?P<scale>k|thousand|million|grand"
        rf"|hundred)\b)?[\s-]*{_UNIT}",
        re.I,
    ),
    re.compile(rf"(?<![\w.,#/-])(?P<scaled>{SCALED})[\s-]+{_UNIT}", re.I),
    re.compile(rf"\b(?P<words>{WORDS})[\s-]+{_UNIT}", re.I),
)
_PRONOUN = re.compile(r"one", re.I)
_LONG = re.compile(r"0\d+|\d{7,}")
"""Digits that number something rather than say how much."""
_CLOCK = re.compile(r"\bat\s+$", re.I)
_EACH = re.compile(
    r"\s*(?:each\b(?! of)|apiece\b|a (?:piece|head|pop)\b|pp\b|per\s+(?!cent)\w+)", re.I
)
"""What stands behind what one of several costs."""
_FOR_ONE = re.compile(r"(?:\b(?:at|for)|@)\s*$", re.I)
_NOUN = re.compile(
    r"\b([a-z]+)(?:\s+(?:of|is|was|be|about|around|approximately|roughly|only|up to))*\s*[:,]?\s*$",
    re.I,
)
_LED = re.compile(
    r"\b([a-z]+ed)\s+(?:for|at|to|up to|by)\s+(?:(?:about|around|approximately|roughly|only|just"
    r"|up to|max)\s+)*$",
    re.I,
)
"""What is done to something for a sum: "insured for", "valued at", "capped at"."""
_SUMS = re.compile(
    r"(?:value|worth|price|cost|costs|amount|budget|total|fee|deposit|rent|offer|tip|balance|sum)",
    re.I,
)
"""Nouns of sums, which a number may follow at once."""
_DECIMALS = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)\.\d\d")
_HANDED = re.compile(
    r"\b(?:(?:send|pay|transfer|wire|put|add|load|claim|refund|donate|deposit|withdraw|charge)s?"
    r"|top up(?: with| by)?|paid|paying)\s+(?:(?:only|just|about|around)\s+)?$",
    re.I,
)
"""Verbs that a sum follows at once."""
_PAID = re.compile(
    r"\b(?:pays?|paid|paying|transfer|wire|donate|deposit|withdraw)\s+(?:\w+\s+)?$", re.I
)
"""Verbs of which nothing but a sum is the object."""
_AT_MOST = re.compile(
    r"\b(?:spend|pay|cost)\b[^.!?]{0,20}\b(?:more than|over|above|up to|under|less than"
    r"|max(?:imum)?"
    r"|at most)\s+$",
    re.I,
)
"""Words before the most that somebody will pay."""
_LOADED = re.compile(r"\b(?:top(?:ping)? up|load|credit)\b[^.!?]{0,60}\b(?:with|by)\s+$", re.I)
"""What is given a sum."""
_MEASURED = re.compile(
    r"\s*%|\s+(?!(?:for|on|in|to|from|and|at|by|was|is|please|pls|paid|spent|each|per"
    r"|total)\b)[a-z]+s\b",
    re.I,
)
"""A noun behind a number, which is then not a sum but so many of something."""
_COUNTS = re.compile(
    r"\s+(?:of (?:them|those|these)|(?!(?:tops|plus|bucks|is|was|as|this|thanks|yes|less|perhaps"
    r"|always|sometimes|besides|its)\b)[a-z]{2,}[^\Wsu]s)\b",
    re.I,
)
"""A noun of several things behind a number, which then counts them: "two lamps"."""
_CENTS = re.compile(
    r"\s+and\s+(\d{1,2})\s+(?:cents?|p(?:ence)?)\b"
    r"|(?<=[a-z])\s+(?P<part>\d\d|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:(?:p|\s*pence)\b|(?=\W*$|\s*[.;!?)](?!\d)))",
    re.I,
)
"""What follows a whole sum: "10 dollars and 50 cents", "86 pounds 40"."""


@remembered
def money(text: str) -> list[Candidate]:
    """The sums of `text` that bear a currency's mark or name, in its order."""
    sums = []
    for pattern in _MONEY:
        for match in pattern.finditer(text):
            groups = match.groupdict()
            written, scale = groups.get("digits"), groups.get("scale") or ""
            amount = (
                digits_value(written, scale)
                if written
                else scaled_value(groups["scaled"])
                if groups.get("scaled")
                else words_value(groups["words"])
            )
            if amount is None or amount >= 1e15:
                continue
            end = match.end()
            cents = _CENTS.match(text, end)
            if cents:
                part = cents[1] or cents["part"]
                part = int(part) if part.isdigit() else words_value(part.lower()) or 0
                amount = round(amount + part / 100, 2)
                end = cents.end()
            sums.append(Candidate(match.start(), end, amount, 0.97, reason="sum with its currency"))
    return longest(sums)


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The sums of a reply; else its bare numbers, without a question only if marked as sums."""
    sums = money(reply.text)
    if sums:
        return _by_own_words(param, reply, sums)
    spans = [
        (c.start, c.end) for c in [*dates(reply.text, reply.now.date()), *times(reply.text)]
    ] + owned(reply.text)
    bare = [
        Candidate(n.start, n.end, n.value, 0.75, 0, "bare number")
        for n in numerals(reply.text)
        if n.value >= 0
        and not (_PRONOUN.fullmatch(reply.text, n.start, n.end) and reply.text[n.end :].strip())
        and not _LONG.fullmatch(reply.text[n.start : n.end])
        and (not _CLOCK.search(before(reply.text, n.start)) or _EACH.match(reply.text, n.end))
    ]
    sums = [c for c in bare if _EACH.match(reply.text, c.end)] + outside(bare, spans)
    sums = [c for c in longest(sums) if not _COUNTS.match(reply.text, c.end)]
    if reply.strict:
        return [sum_ for sum_ in sums if _is_marked(param, reply.text, sum_)]
    return _by_own_words(param, reply, sums)


def _by_own_words(param: Param, reply: Reply, sums: list[Candidate]) -> list[Candidate]:
    """The sums, those first before which a word of the parameter or of its question stands.

    "We paid 165 but got 40 back, so I am claiming 125".
    """
    asked = {stem(word) for word in re.findall(r"[a-z]+", f"{param.prompt} {reply.prompt}".lower())}
    own = own_stems(param) | asked - _WITHOUT_MEANING
    judged, previous = [], 0
    for amount in sums:
        clause = re.split(r"[.;!?]\s", reply.text[max(previous, amount.start - 80) : amount.start])[
            -1
        ]
        named = any(stem(word) in own for word in re.findall(r"[a-z]+", clause.lower()))
        judged.append(amount.moved(1) if named else amount)
        previous = amount.end
    return judged if len(sums) > 1 else sums


_WITHOUT_MEANING = frozenset(stem(word) for word in (*FUNCTION_WORDS, "much", "money", "sum"))


def _is_marked(param: Param, text: str, bare: Candidate) -> bool:
    """Whether words say that a bare number is a sum: "worth 85", "send 12.50 to Ann"."""
    lead = before(text, bare.start)
    noun = _NOUN.search(lead)
    if noun and (_SUMS.fullmatch(noun[1]) or stem(noun[1]) in own_stems(param)):
        return True
    verb = _LED.search(lead)
    if verb and stem(verb[1]) in own_stems(param):
        return True
    if (
        _LOADED.search(lead)
        or _AT_MOST.search(lead)
        or (_FOR_ONE.search(lead) and _EACH.match(text, bare.end))
    ):
        return True
    if _HANDED.search(lead) and re.match(
        r"\s*(?:(?:on|to|for|from|into|onto|please|now|with)\b)", text[bare.end :]
    ):
        return True
    if _PAID.search(lead) and re.match(r"\s*(?:$|[.,;!?](?!\d))", text[bare.end :]):
        return True
    dated = re.search(r"\b(?:on|at|by|until|till|from|to|since)\s+(?:the\s+)?$", lead, re.I)
    return (
        not dated
        and _DECIMALS.fullmatch(text, bare.start, bare.end) is not None
        and not _MEASURED.match(text, bare.end)
    )
