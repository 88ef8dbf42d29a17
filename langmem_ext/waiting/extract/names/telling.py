"""Whole answers: what somebody tells, and words that are to be written on something."""

from __future__ import annotations

import re
from typing import Final

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.english.attitude import stalls
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, word_set
from langmem_ext.waiting.extract.english.tokens import sentences, trim
from langmem_ext.waiting.extract.english.vocabulary import split_name
from langmem_ext.waiting.extract.names.openness import is_no_answer

SURE: Final = 0.45
"""Confidence in a whole answer."""
DOUBTED: Final = 0.35
"""Confidence in an answer that may be none, which is confirmed."""
TO_WRITE: Final = "what is to be written"

_WHY = re.compile(r"\b(?:why|reason|because)\b", re.I)
_REQUEST = re.compile(
    r"\W*(?:(?:and|so|but|also|ok(?:ay)?|oh|hi|please|actually|sorry|no|wait|hm+|well|then"
    r"|right|yes)\b\W*)*(?:can|could|would|will)"
    r" (?:you|u|i|we|some(?:one|body)|any(?:one|body))\b"
    r"|\W*(?:i|we)(?:['’]?ll| will| can| could)\s+(?:just\s+)?"
    r"(?:pop|come|bring|drop|be|call|ring|get)\b",
    re.I,
)
_WISH = re.compile(
    r"\b(?:requests?|wish(?:es)?|notes?|messages?|questions?|comments?|remarks?|instructions?"
    r"|anything|feedback|purpose|want(?:ed|s)?|like|do|done|help|needs?|say|write|tell|should"
    r"|what for)\b",
    re.I,
)
"""Words of a parameter whose values may be wishes in the form of questions."""
_OTHER_VALUE = re.compile(
    r"(?:^|[,;.!?\n])\s*(?:(?:and|also|btw)\s+)?(?:(?:my|the)\s+)?"
    r"(?:(?:(?:(?:phone|mobile|landline|telephone|tel|contact|cell)(?:\s+(?:number|no))?|number)\b\.?"
    r"(?:\s+is|['’]?s|:)?\s*)?[+(]?\d(?:[ ()-]{0,2}\d){8}"
    r"|(?:e-?mail(?: address)?\b(?:\s+is|['’]?s|:)?\s*)?[\w.+-]{1,40}@\w"
    r"|name(?:\s+is|['’]?s|:)\s+(?-i:[A-Z])"
    r"|(?<=\bmy\s)name(?:\s+is|['’]?s)\s+[^\W\d_]+(?:\s+[^\W\d_]+)?\s*$)",
    re.I,
)
"""Where words begin that say somebody's name, number or address: "my number is 07700 900123"."""


def up_to_other(text: str, start: int, end: int) -> int:
    """Where words begin that say somebody's name, number or e-mail address; else `end`."""
    other = _OTHER_VALUE.search(text, start, end)
    return other.start() if other else end


def asks_why(param: Param) -> bool:
    """Whether the values are reasons."""
    return _WHY.search(_wording(param)) is not None


def _wording(param: Param) -> str:
    return f"{' '.join(split_name(param.name))}. {param.description}. {param.prompt}"


def begins(text: str) -> str:
    """The first sentence that does not only ask for time."""
    parts = (text[start:end] for start, end in sentences(text))
    return next((part for part in parts if not stalls(part)), "")


def told(param: Param, text: str) -> tuple[int, int, float]:
    """What an answer tells, and how surely: its ends may ask, wait, or say another value.

    An answer that only asks for something ("can you do it by friday") is in doubt, unless it was
    asked for a wish, and so are words beside "hang on".
    """
    parts = sentences(text)
    said = [part for part in parts if not stalls(text[slice(*part)])]
    said = [part for part in said if not is_remark(text[slice(*part)], param)]
    said = [part for part in said if not _OTHER_VALUE.match(text[slice(*part)])]
    takes_wishes = _WISH.search(_wording(param)) is not None
    telling = [part for part in said if takes_wishes or not is_request(text[slice(*part)])]
    if not said:
        return 0, 0, SURE
    start, end = (telling or said)[0][0], (telling or said)[-1][1]
    waits = any(stalls(text[slice(*part)]) for part in parts[1:])
    return start, up_to_other(text, start, end), SURE if telling and not waits else DOUBTED


_REMARK = re.compile(
    r"\W*(?:(?:ok(?:ay)?|right|well|oh|ah|hm+|yes|and)\b\W*)*"
    r"(?:good (?:question|point)\b|no (?:rush|hurry)(?: at all)?|not urgent|fingers crossed"
    r"|(?:(?:that|it|this)(?:['’]?s| is| was)|sounds?|seems?|looks?)\s+"
    r"(?:(?:a bit|very|quite|really|pretty|so|too|only|all)\s+)*"
    r"(?:fair|fine|good|great|ok(?:ay)?|cool|nice|lovely|reasonable|cheap|expensive|dear|steep|quick"
    r"|helpful|clear|perfect|brilliant|right|a (?:shame|pity)|daft|silly|stupid|odd"
    r"|weird|embarrassing|random|boring"
    r"|(?:cheaper|dearer|better|worse|(?:more|less) \w+)(?:\s+than\b[^.,;!?]*)?)(?:\s+enough)?)\W*",
    re.I,
)
"""What somebody thinks of an answer: "ok that's fair"."""
REMARKS: Final = word_set(
    "btw tho lovely brilliant marvellous fab splendid fantastic amazing bless fair enough noted"
    " understood gotcha"
)
"""Words that say by themselves no more than what somebody thinks."""


_OPINION = re.compile(r"\b(?:feedback|comments?|reviews?|opinion|think|tell|say)\b", re.I)


def is_remark(text: str, param: Param | None = None) -> bool:
    """Whether words only say what somebody thinks of what was said: "ok that's fair".

    For a parameter that asks what somebody thinks they do not.
    """
    if param is not None and _OPINION.search(_wording(param)):
        return False
    words = re.findall(r"[^\W\d_]+", text.lower())
    return _REMARK.fullmatch(text) is not None or (
        not REMARKS.isdisjoint(words) and (FUNCTION_WORDS | REMARKS).issuperset(words)
    )


def is_request(text: str) -> bool:
    """Whether words ask for something to be done: "can you do it by friday"."""
    return _REQUEST.match(text) is not None


_ON_IT = re.compile(
    r"\b(?:wording|inscription|lettering|engrav\w+|dedication"
    r"|words? (?:on|for|to|that|should|we)|(?:written|printed|piped?|engraved) on"
    r"|(?:card|label|sign|plaque|cake|stone|banner|ribbon|it|ad)"
    r" (?:should |shall )?(?:say|read))\b",
    re.I,
)


def is_written(param: Param) -> bool:
    """Whether the values are words to be written on something, just as they are said."""
    return not param.pattern and _ON_IT.search(_wording(param)) is not None


_WRITE_LEAD = re.compile(
    r"\W*(?:(?:oh|ok(?:ay)?|hm+|um+|yes|yeah|just|maybe|please|pls|well|so)\b\W*)*"
    r"(?:(?:(?:can|could|should|shall|must)\s+)?"
    r"(?:it|that|you|the [a-z]+|i(?:['’]d| would) like it)\s+"
    r"(?:(?:can|could|should|shall|must|to|please|just)\s+){0,2}(?:says?|reads?|write|put|be)"
    r"|(?<=\s)(?:write|put)|(?:write|put)(?=\s*:))\b\s*[:,]?\s*",
    re.I,
)
"""Words before what is to be written: "it should say: …"."""
_SET_OFF = re.compile(
    r"\W*(?:(?:oh|ok(?:ay)?|hm+|um+|yes|yeah|well|so|sure|just)\s*(?:[,:]|\.\.+|…)\s*)*", re.I
)
_CLOSES = re.compile(r"(?:\s+(?:please|pls)|[,.]\s*(?:thanks|thx|ta|cheers|thank you))\W*$", re.I)
_MEANT_TO_SAY = re.compile(
    r"\b(?:supposed|meant|ought) to (?:say|read)\s*:?\s+(?P<words>[^.!?;\n]+)", re.I
)
"""What is put right: "oh no, it's supposed to say JUNE 15. sorry"."""
_IN_QUOTES = re.compile(r"(?:^|\s)[\"“'‘](?P<words>[^\"“”\n]+)[\"”'’]\W*$")
_FORGOTTEN = re.compile(r"\bforgotten\b", re.I)


def to_write(text: str) -> list[Candidate]:
    """The words to be written, whole, without those that lead to them."""
    if meant := _MEANT_TO_SAY.search(text):
        start, end = trim(text, *meant.span("words"))
        return [Candidate(start, end, text[start:end], SURE, 0, TO_WRITE)]
    lead = _WRITE_LEAD.match(text) or _SET_OFF.match(text)
    closes = _CLOSES.search(text, max(0, len(text) - 40))
    first, last = lead.end() if lead else 0, closes.start() if closes else len(text)
    parts = [(first + start, first + end) for start, end in sentences(text[first:last])]
    parts = [part for part in parts if not _is_beside(text[slice(*part)])]
    if not parts:
        return []
    start, end = parts[0][0], parts[-1][1]
    end = up_to_other(text, start, end)
    quoted = _IN_QUOTES.search(text, start, end)
    start, end = trim(text, *(quoted.span("words") if quoted else (start, end)))
    if not re.search(r"\w", text[start:end]):
        return []
    return [Candidate(start, end, text[start:end], SURE, 0, TO_WRITE)]


def _is_beside(sentence: str) -> bool:
    """Whether a sentence asks, refuses or waits, and is not written on anything."""
    sentence = _FORGOTTEN.sub("", sentence)
    return is_no_answer(sentence) or is_request(sentence)
