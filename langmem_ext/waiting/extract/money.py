"""Sums of money: the amount as a number; the currency is the parameter's."""

from __future__ import annotations

import re

from langmem_ext.waiting.extract.candidate import Candidate, longest, outside
from langmem_ext.waiting.extract.date import dates
from langmem_ext.waiting.extract.numerals import DIGITS, WORDS, digits_value, numerals, words_value
from langmem_ext.waiting.extract.reply import Reply
from langmem_ext.waiting.extract.time import times
from langmem_ext.waiting.extract.tokens import before
from langmem_ext.waiting.param import Param

_UNIT = r"(?:dollars?|bucks?|usd|euros?|eur|pounds?|gbp|quid|cents?|yen|jpy|rupees?|inr|francs?|chf|cad|aud|pesos?|yuan|cny|[$€£¥₹])(?!\w)"
_MONEY = (
    re.compile(
        rf"(?<!\w)(?:us\s?)?[$€£¥₹]\s?(?P<digits>{DIGITS})(?:\s?(?P<scale>k|thousand|million|grand|hundred)\b)?(?:\s*{_UNIT})?", re.I
    ),
    re.compile(rf"(?<![\w.,#/-])(?P<digits>{DIGITS})(?:\s?(?P<scale>k|thousand|million|grand|hundred)\b)?[\s-]*{_UNIT}", re.I),
    re.compile(rf"\b(?P<words>{WORDS})[\s-]+{_UNIT}", re.I),
)
_CLOCK = re.compile(r"\bat\s+$", re.I)
_CENTS = re.compile(r"\s+and\s+(\d{1,2})\s+cents?\b", re.I)


def money(text: str) -> list[Candidate]:
    """The sums of `text` that bear a currency's mark or name, in its order."""
    found = []
    for pattern in _MONEY:
        for match in pattern.finditer(text):
            groups = match.groupdict()
            written, scale = groups.get("digits"), groups.get("scale") or ""
            amount = digits_value(written, scale) if written else words_value(groups["words"])
            if amount is None or amount >= 1e15:
                continue
            end = match.end()
            cents = _CENTS.match(text, end)
            if cents:
                amount, end = round(amount + int(cents[1]) / 100, 2), cents.end()
            found.append(Candidate(match.start(), end, amount, 0.97, reason="sum with its currency"))
    return longest(found)


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The sums of a reply; a bare number only as the answer to a question and when no sum stands there."""
    found = money(reply.text)
    if found or reply.strict:
        return found
    spans = [(c.start, c.end) for c in [*dates(reply.text, reply.now.date()), *times(reply.text)]]
    bare = [
        Candidate(n.start, n.end, n.value, 0.75, 0, "bare number")
        for n in numerals(reply.text)
        if n.value >= 0 and not _CLOCK.search(before(reply.text, n.start))
    ]
    return outside(bare, spans)
