"""Yes or no, said as such or by what is wanted: "a shared ride is fine"."""

from __future__ import annotations

import re

from langmem_ext.waiting.extract.attitude import NO, YES, asks_back, lacks, postpones, says_no, says_yes
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.reply import Reply
from langmem_ext.waiting.extract.tokens import sentences, trim
from langmem_ext.waiting.extract.vocabulary import own_stems, stem
from langmem_ext.waiting.param import Param

_WORD = re.compile(r"[^\W\d_]+(?:['’][a-z]+)?")
_NEGATION = re.compile(
    r"\b(?:no|not|n't|never|without|don['’]?t|doesn['’]?t|won['’]?t|isn['’]?t|aren['’]?t|wouldn['’]?t|can['’]?t|cannot|dislike|hate"
    r"|avoid|skip|decline|refuse|neither|nor)\b",
    re.I,
)
_NOT_NEGATED = re.compile(
    r"\b(?:no (?:problem|worries|issues?|objections?)|not (?:a problem|an issue|bad)|don['’]?t mind|do not mind|wouldn['’]?t mind"
    r"|won['’]?t mind|why not|not only)\b",
    re.I,
)
_TRUE = re.compile(r"^\W*(?:true|on|enabled?|1)\W*$", re.I)
_FALSE = re.compile(r"^\W*(?:false|off|disabled?|0)\W*$", re.I)


def _negated(sentence: str) -> bool:
    return _NEGATION.search(_NOT_NEGATED.sub(" ", sentence)) is not None


def _own_noun(param: Param, text: str) -> tuple[int, int] | None:
    """The sentence that speaks of the parameter by its own nouns."""
    own = own_stems(param)
    for start, end in sentences(text):
        if any(stem(word) in own for word in _WORD.findall(text[start:end])):
            return start, end
    return None


def _contradicts(sentence: str) -> bool:
    """Whether a yes or no is taken back at once: "no, I do want it", "yes, but not that"."""
    led = NO.match(sentence) or YES.match(sentence)
    if not led or not re.match(r"\s*,", sentence[led.end() :]):
        return False
    return _negated(sentence[led.end() :]) is not says_no(sentence)


def _stated(param: Param, reply: Reply) -> list[Candidate]:
    where = _own_noun(param, reply.text)
    if not where:
        return []
    sentence = reply.text[where[0] : where[1]]
    if asks_back(sentence) or lacks(sentence):
        return []
    start, end = trim(reply.text, *where)
    return [Candidate(start, end, not _negated(sentence), 0.8, 1, "said by its own noun")]


def _inverted(prompt: str) -> bool:
    """Whether "no" agrees, as to "Do you mind …?"."""
    return re.search(r"\b(?:do|would) you mind\b", prompt, re.I) is not None


def read(param: Param, reply: Reply) -> list[Candidate]:
    """Yes or no as a reply gives it; without a question only from a sentence that names the parameter."""
    text = reply.text
    where = _own_noun(param, text)
    if where and _contradicts(text[where[0] : where[1]]):
        return []
    stated = _stated(param, reply)
    if reply.strict or stated:
        return stated
    for pattern, value in ((_TRUE, True), (_FALSE, False)):
        if pattern.match(text):
            start, end = trim(text, 0, len(text))
            return [Candidate(start, end, value, 0.95, 1, "a truth value")]
    if lacks(text) or postpones(text):
        return []
    match = YES.match(text) if says_yes(text) else NO.match(text) if says_no(text) else None
    if not match:
        return []
    start, end = trim(text, match.start(), match.end())
    agreed = says_yes(text)
    if _inverted(reply.prompt) and not agreed:
        return [Candidate(start, end, True, 0.7, 1, "does not mind")]
    return [Candidate(start, end, agreed, 0.9, 1, "yes or no")]
