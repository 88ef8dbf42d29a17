"""Open text: the answer without its frame, or what a message says of it by the way."""

from __future__ import annotations

import re
from dataclasses import replace

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.closed_spans import closed_spans
from langmem_ext.waiting.extract.codes.identifier import by_pattern
from langmem_ext.waiting.extract.english.leadin import answer_span
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, VERBS
from langmem_ext.waiting.extract.english.tokens import before, sentences, tokens
from langmem_ext.waiting.extract.english.vocabulary import own_stems
from langmem_ext.waiting.extract.names import name
from langmem_ext.waiting.extract.names.name import PETS
from langmem_ext.waiting.extract.names.openness import is_no_answer
from langmem_ext.waiting.extract.names.phrase import named_in, place_in
from langmem_ext.waiting.extract.names.telling import (
    DOUBTED,
    SURE,
    TO_WRITE,
    asks_why,
    begins,
    is_remark,
    is_request,
    is_written,
    to_write,
    told,
)
from langmem_ext.waiting.extract.names.texts.asks import (
    asks_for_name,
    is_colour,
    is_kind,
    is_narrative,
    wording_of,
)
from langmem_ext.waiting.extract.names.texts.kind import colours, read_kind
from langmem_ext.waiting.extract.names.texts.said import said_unasked, titled
from langmem_ext.waiting.extract.names.texts.what_for import behind_lead
from langmem_ext.waiting.extract.reply import Reply

ANSWER = "the whole answer"
WHOLE = (ANSWER, TO_WRITE)
"""Why a text is one that a longer message goes on with."""
_REASON = re.compile(
    r"\b(?:because(?: of)?|due to|since|the reason (?:is|being)(?: that)?|reason:)\s+", re.I
)


def _free(param: Param, reply: Reply) -> list[Candidate]:
    """The whole answer; only what follows "because" when it gives a reason.

    Of an answer to a question for a thing ("which carrier?") only the words that name one; what is
    damaged, or hurts, is told in a sentence as well.
    """
    text = reply.text
    if is_written(param):
        return to_write(text)
    if not (is_narrative(param) or param.sensitive):
        reason = _REASON.search(text)
        if reason:
            return _whole(text, reason.end(), len(text))
        tells = _TROUBLED.search(wording_of(param))
        return _thing(param, text) or (_whole(text, 0, len(text)) if tells else [])
    start, end, sure = told(param, text)
    start = behind_lead(param, text, start, end)
    reason = _REASON.search(text, start, end) if asks_why(param) else None
    return _whole(text, reason.end() if reason else start, end, sure)


_TROUBLED = re.compile(r"\b(?:damaged?|broken|bother(?:s|ing)|hurts?|aches?)\b", re.I)
_NO_BEFORE = re.compile(r"\bno\s+$", re.I)
_IT_IS = re.compile(r"(?:it|that|this)(?:['’]?s| is| was)\s+(?=(?:the|an?|my|our)\b)", re.I)


def _whole(text: str, start: int, end: int, sure: float = SURE) -> list[Candidate]:
    start, end = answer_span(text, start, end, framed=False)
    lacks = _NO_BEFORE.search(before(text, start))
    first = re.compile(r"[^\W\d_]+").match(text, start) if lacks else None
    if lacks and first and first.group().lower() not in FUNCTION_WORDS | VERBS:
        start -= len(lacks.group())  # "no heating" is what is wrong
    if led := _IT_IS.match(text, start, end):
        start = led.end()
    if start >= end or all(word.low in FUNCTION_WORDS for word in tokens(text[start:end])):
        return []
    return [Candidate(start, end, text[start:end], sure, 0, ANSWER)]


def _thing(param: Param, text: str) -> list[Candidate]:
    """The words that name a thing; less sure where the answer says something else as well."""
    led = behind_lead(param, text, 0, len(text))
    lead = _NAMED_AS.match(text)
    if lead and asks_for_name(param):
        led = lead.end()
    text = " " * led + text[led:]
    for start, end in sentences(text):
        if is_remark(text[start:end], param):
            text = text[:start] + " " * (end - start) + text[end:]
    named = named_in(text)
    if named is None and _OF_PLACE.search(f"{param.description} {param.prompt}"):
        named = place_in(text)
    if named is None:
        return []
    lacks = _NO_BEFORE.search(before(text, named.start))
    start = named.start - len(lacks.group()) if lacks else named.start
    sure = 0.45 if named.alone else 0.35
    return [Candidate(start, named.end, text[start : named.end], sure, 0, "what the answer names")]


_NAMED_AS = re.compile(
    r"\W*(?:(?:we|i)(?:['’]?ve)?\s+(?:gone with|went with|call(?:ed)?|named?)"
    r"|(?:he|she|it|they)(?:['’]?s|['’]?re| is| are)?\s+(?:called|named|goes by|answers to))\s+"
    r"(?:(?:him|her|it|them)\s+)?",
    re.I,
)
"""Words that only lead to a name: "we've gone with Gary"."""
_ARTICLE = re.compile(r"\W*(?P<phrase>(?:an|a|our|my) [^,.;:!?\n]{3,60}\w)\W*$", re.I)


def _noun_phrase(text: str) -> list[Candidate]:
    """An answer that is one thing with its article: "a jumble sale for the scouts"."""
    match = _ARTICLE.match(text)
    if match is None or any(word.low in VERBS for word in tokens(match["phrase"])):
        return []
    return [Candidate(*match.span("phrase"), match["phrase"], 0.45, 0, "one thing")]


_OF_PLACE = re.compile(r"\b(?:where|place|location|spot)\b", re.I)


def _is_moment(param: Param, reply: Reply) -> bool:
    """Whether an answer is only a day, a time or a sum, which no free text is.

    It is not when the question asks when, how much or how long.
    """
    asked = f"{param.description} {param.prompt} {reply.prompt}"
    if re.search(r"\b(?:when|day|date|time|how much|how long)\b", asked, re.I):
        return False
    kept = list(reply.text.lower())
    for start, end in closed_spans(param, reply):
        kept[start:end] = " " * (end - start)
    rest = "".join(kept)
    beside = _BESIDE_A_MOMENT if is_request(reply.text) else FUNCTION_WORDS | _DAY_PARTS
    return rest != reply.text.lower() and beside.issuperset(re.findall(r"[^\W_]+", rest))


_BESIDE_A_MOMENT = FUNCTION_WORDS | VERBS | {"same", "time"}
_DAY_PARTS = frozenset(("morning", "afternoon", "evening", "night", "lunchtime", "noon"))
"""Words of a wish for another day or time: "can we do tuesday instead, same time"."""


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The values of an open parameter in a reply.

    With a declared pattern, only what matches it. Without a question, only what was lost, follows
    its noun, or is quoted.
    """
    if param.pattern:
        return by_pattern(param, reply.text)
    if named := titled(param, reply) or _pets(param, reply):
        return named
    if reply.strict and is_colour(param):
        return colours(reply.text)
    if reply.strict:
        return said_unasked(param, reply)
    if not re.search(r"\w", reply.text) or _is_moment(param, reply):
        return []
    return _asked(param, reply)


def _pets(param: Param, reply: Reply) -> list[Candidate]:
    """The names that a message gives for an animal, for a parameter that is one's name."""
    is_name = own_stems(param) & PETS and asks_for_name(param)
    if not is_name or not reply.strict:
        return []
    if owned := _ITS_STATE.search(reply.text):
        return [Candidate(*owned.span("name"), owned["name"], 0.6, 2, "an animal's name")]
    return name.read(param, reply)


_ITS_STATE = re.compile(
    r"(?:^|[.!?]\s+)(?P<name>[A-Z][a-z]{2,})['’]?s\s+(?:in|come|got|been|had|booked|due)\b"
)
"""Whose state a sentence tells: "Teddy's in with you tomorrow"."""


def _asked(param: Param, reply: Reply) -> list[Candidate]:
    """The values of an answer to the parameter's question."""
    if is_colour(param) and colours(reply.text):
        start, end = answer_span(reply.text, 0, len(reply.text))
        if len(reply.text[start:end].split()) <= _SHADE:
            return [Candidate(start, end, reply.text[start:end], SURE, 1, "a colour")]
    if is_kind(param):
        return read_kind(param, reply) or _noun_phrase(reply.text)
    if is_written(param):
        return _free(param, reply)
    if is_no_answer(begins(reply.text)) or _is_known(reply, reply.text):
        return []
    if is_remark(reply.text, param) and not param.sensitive:
        return []
    if not _says_no(param, reply):
        return [one for one in _free(param, reply) if not _is_known(reply, str(one.value))]
    if _NO_CLAUSE.match(reply.text):
        return []
    return [replace(told, confidence=DOUBTED) for told in _free(param, reply)]


_SHADE = 4
"""Words of a colour, at most: "a very dark green"."""


def _is_known(reply: Reply, words: str) -> bool:
    """Whether words of an answer are a value that is known already, and no more: "main hall"."""
    said = _telling(words)
    return bool(said) and any(
        said == _telling(value) for value in reply.filled.values() if isinstance(value, str)
    )


def _telling(text: str) -> list[str]:
    words = re.findall(r"[^\W_]+", text.lower())
    return [word for word in words if word not in FUNCTION_WORDS]


_NO_CLAUSE = re.compile(
    r"\W*(?:no|nope|nah)\b\W*(?:(?:lol|ha(?:ha)*|sorry)\b\W*)*"
    r"(?:they|we|i|he|she|you)(?:['’]?(?:re|s|m|ve|ll|d)\b|\s)(?!\s*(?:mean|said)\b)",
    re.I,
)
_YES_OR_NO = re.compile(
    r"(?:^|[.!?,:]\s*)\W*(?:is|are|was|were|do|does|did|has|have|will|would|can|could|should|any\w*)\b",
    re.I,
)


def _says_no(param: Param, reply: Reply) -> bool:
    """Whether an answer says no to something that was not asked: "no, just tea and cake"."""
    return _PLAIN_NO.match(reply.text) is not None and not _YES_OR_NO.search(
        f"{param.description}. {reply.prompt}"
    )


_PLAIN_NO = re.compile(
    r"\W*(?:no|nope|nah)\b(?:\s*[,.!]|\s+(?:lol|ha(?:ha)*|they|we|i|he|she|you)\b)", re.I
)
