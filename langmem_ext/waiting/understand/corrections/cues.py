"""Words of a correction: "sorry", "I meant", "not 12", "the same day". English; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.english.attitude import asks_back, wishes_by_asking
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, word_set
from langmem_ext.waiting.extract.english.vocabulary import own_stems, stem
from langmem_ext.waiting.understand.acts.spelling import plain_words
from langmem_ext.waiting.understand.acts.statements import ADDING, is_question
from langmem_ext.waiting.understand.clauses import Clause

_STRONG = re.compile(
    r"\bi me(?:an|ant)\b|\b(?:mistake|typo|wrong|incorrect|misread|misspelled|mistyped|mixed"
    r" up|correction)\b|"
    r"\bshould (?:be|have"
    r" been|read)\b|\bnot\b.{1,120}\bbut\b"
    r"|\b(?:change|correct|update|fix|switch|set)\b.{1,120}\bto\b",
    re.IGNORECASE,
)
_WEAK = re.compile(
    r"\b(?:sorry|oops|actually|wait|hold on|hang on|rather|instead|make (?:it|that)|call it"
    r"|(?:scrap|scratch|strike|forget|drop) (?:that|it|this))\b|"
    r"^\W*no\b|^\W*not\b(?! (?:sure|really|yet|now)\b).*[,;.]",
    re.IGNORECASE,
)
INSTEAD: Final = re.compile(
    r"\b(?:wait|sorry|oops|mixed (?:it |them )?up|mistyped|misread|typo)\b"
    r"|\b(?:put|make|have) (?:it|that|this) (?:under|on|in|to|for|as)\b",
    re.IGNORECASE,
)
"""Words that put a value of any type in the place of the known one: "put it under Ann Lee"."""
DISOWNED = re.compile(
    r"(?:['’]s|\s+(?:is|was))?\s+(?:wrong|incorrect|not right|not correct|a mistake|a typo)\b",
    re.IGNORECASE,
)
"""What follows a value that is not meant."""
ONE_OF_US: Final = re.compile(r"one of us\b", re.IGNORECASE)
"""Somebody, and no number of people."""
CORRECTED = tuple(
    re.compile(rf"{before}[\s,:]+(?:it(?:['’]?s| is) )?(?P<value>.+)", re.IGNORECASE | re.DOTALL)
    for before in (
        r"^.*\bi mean(?:t)?(?: to (?:say|type|write))?\b",
        r"\b(?:change|correct|update|fix|switch|set)\b.{1,120}?\bto\b",
        r"\bshould (?:be|have been|read)\b",
        r"\bnot\b.{1,120}?\bbut\b",
        r"\b(?:mistake|typo|wrong|incorrect|correction)\b.*?\bit(?:['’]?s| is| was| should be)\b",
        r"\b(?:make (?:it|that)|call it)\b",
        r"\bactually\b.*\b(?:can|could|may) (?:you|we|i) (?:do|have|get|take|make it)\b",
    )
)
"""Where the new value begins, the surest way to say so first."""
_CORRECTING_WORDS = (
    "mean meant wrong incorrect mistake typo typed misread misspelled mistyped mixed correction"
    " correct change update fix switch set make wait hold hang scratch said say told gave entered"
    " wrote rather instead oops bad previous earlier old new read one number value think thought"
    " believe guess way round around"
)
_CORRECTING = frozenset(map(stem, _CORRECTING_WORDS.split()))
"""Words of a correction that are no request by themselves."""
_ASKING = word_set("who whom whose what which where when why how")
STAYS: Final = re.compile(
    r"\b(?:(?:at |on |in )?(?:the )?same (?:time|day|date|place|room|address|number|amount|size"
    r"|name|length|thing|one)s?|(?:the rest|everything else|all else|the others?)\b[^,.;!?]{0,30}"
    r"\b(?:same|stays?|fine|ok(?:ay)?|right|good|correct|is))(?: (?:again|as before|please))?\b",
    re.IGNORECASE,
)
"""Words that keep what is known beside what is new."""


def asks_something(clause: Clause) -> bool:
    """Whether a clause asks something: "did I say 50? I meant 15" does not."""
    asks = clause.act == "question" or (
        asks_back(clause.text) and not wishes_by_asking(clause.text)
    )
    return asks and not any(cue.search(clause.text) for cue in CORRECTED)


def takes_something_back(text: str) -> bool:
    """Whether a message has words of a correction: "sorry", "wait", "I meant"."""
    return _STRONG.search(text) is not None or _WEAK.search(text) is not None


BEFORE_NEW = re.compile(
    r"^\W*(?:(?:no|nope|nah|sorry|oh|oops|hm+|um+|wait|actually|but|and|not quite|nearly|almost"
    r"|rather|better|say|i mean|i meant|it['’]?s|its|should be|make (?:it|that))\b\W*)+",
    re.IGNORECASE,
)
"""Words before the value that takes the place of another."""
_DENIED = re.compile(
    r"(?<=\w)\s*[,;.–-]*\s*\b(?:and )?not (?:the |at |on |in |for |to )?[^,.;]{1,40}\s*$",
    re.IGNORECASE,
)
"""A value that the end of a message says is not meant: "six weeks, not four"."""


def without_denied(text: str) -> tuple[str, bool]:
    """The message without a value that its end says is not meant, and whether it had one."""
    match = _DENIED.search(text)
    if match is None or not re.search(r"\d|\w{3}", text[: match.start()]):
        return text, False
    return text[: match.start()] + " " * (match.end() - match.start()), True


def says_more(rest: str, params: Sequence[Param]) -> bool:
    """Whether the rest of a message has words that no correction needs: then it asks for something.

    `rest` is the message without its new values.
    """
    usual = _CORRECTING.union(*map(own_stems, params))
    words = re.findall(r"[^\W\d_]+(?:['’]\w+)?", rest.lower())
    return any(
        word in _ASKING or (word not in FUNCTION_WORDS and stem(word) not in usual)
        for word in words
    )


_VALUE_ALONE = word_set(
    "hm mm number name it it's its is that's the a an my for at on to under by yes yeah yep no nope"
    " not ok okay but sorry please pls thanks instead"
)
_WISHING = word_set("want need can could would will you i want i'd like to let's")
_TURNING = word_set(
    "not no nor never cannot can't don't won't if but unless except only or instead first later "
    "before after until till when while yet without"
)
"""Words of a question that make something else of a message that says them again."""


def is_value_alone(text: str, prompt: str, params: Iterable[Param]) -> bool:
    """Whether a message only gives values of these parameters, or asks for the same with them.

    Args:
        text: The message without the values.
        prompt: What was asked; its words may be said again: "cancel O-2".
        params: The parameters.
    """
    asked, words = frozenset(plain_words(prompt)), set(plain_words(text))
    own = frozenset[str]().union(*map(own_stems, params))
    again = frozenset() if "or" in asked else asked - FUNCTION_WORDS - _TURNING
    wishing = _WISHING if words & again else frozenset()
    known = _VALUE_ALONE | again | (FUNCTION_WORDS - ADDING) | wishing
    return not is_question(text) and all(word in known or stem(word) in own for word in words)
