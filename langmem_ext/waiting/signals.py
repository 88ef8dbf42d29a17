"""What a user does besides answering and asking for things: starts over, cancels, corrects, refers back. English; pure.

Starting over and cancelling are judged on the whole message: "cancel that please" cancels, "cancel order O-1" asks for something, and an
address that contains the word is an address.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue

from langmem_ext.waiting.catalog import IntentCatalog
from langmem_ext.waiting.extract import Reply, extract, find
from langmem_ext.waiting.extract.lexicon import FUNCTION_WORDS
from langmem_ext.waiting.extract.vocabulary import own_stems, stem
from langmem_ext.waiting.param import Extraction, Param, ParamType

LONGEST_SIGNAL = 120
"""Characters of a message that only cancels or starts over, at most."""

_LEAD = (
    r"please|pls|oh|ah|u[mh]+|hm+|well|so|no|nah|nope|hey|hi|hello|sorry|actually|wait|just|then|and|but|now|thanks|thank you|"
    r"(?:can|could|would|will) (?:you|we|i)|let'?s|let us|i (?:want|need|wish|have) to|i(?:'d| would) like to|i wanna|i think|"
    r"you know what"
)
_ASSENT = r"ok|okay|k|yes|yeah|yep|sure|alright|all right|fine|right"
_TAIL = (
    r"please|pls|thanks|thank you|now|right now|then|for now|sorry|anyway|anyways|after all|ok|okay|altogether|completely|entirely|"
    r"any ?more|instead|i found it(?: myself)?|i(?:'ll| will) do (?:it|that) (?:later|myself)|bye"
)
_THAT = r"(?:it|this|that|all(?: of (?:it|this|that))?|everything|the whole thing)"
_MATTER = r"(?:(?:the|this|that|my|our|current|the current|whole|the whole) )?"
_DROP = (
    rf"never ?mind(?: (?:it|that|then|about (?:it|that)))?|forget (?:about )?(?:it|this|that|the whole thing)|"
    rf"(?:stop|abort|quit|exit)(?: {_THAT})?|stop (?:asking(?: me)?|here)|(?:drop|scrap|scratch) (?:it|this|that)|leave it(?: be| alone)?|"
    rf"i(?:'ve| have)? changed my mind|(?:don'?t|do not) bother|(?:it(?:'s| is) )?no longer (?:needed|necessary)|let'?s not|i give up|"
    rf"(?:i(?:'m| am) )?(?:not|no longer) interested|i (?:don'?t|do not) (?:want|need) (?:to (?:do|continue|proceed|go on)"
    rf"(?: (?:with )?{_THAT})?|{_THAT})"
)
_CANCEL = rf"cancel(?: (?:{_THAT}|{_MATTER}(?:request|process|operation|conversation|action|question|thing)))?"
_TALK = rf"{_MATTER}(?:conversation|chat|session|dialogu?e?|thread)"
_RESET = (
    rf"(?:reset|restart)(?: (?:{_THAT}|{_TALK}))?|(?:start|begin)(?: {_THAT})? (?:over|again|anew|afresh|fresh|from scratch|"
    rf"from (?:the )?(?:beginning|start|zero))(?: again)?|(?:clear|erase|wipe|forget) (?:everything|all of (?:it|this|that)|"
    rf"{_TALK}|{_MATTER}(?:history|memory))|(?:start )?(?:a )?new (?:conversation|chat|session)|/reset"
)
_CANCEL_SAID = re.compile(rf"(?:(?:{_LEAD}) )*(?:{_CANCEL})(?: (?:{_TAIL}))*|(?:(?:{_LEAD}|{_ASSENT}) )*(?:{_DROP})(?: (?:{_TAIL}))*")
_RESET_SAID = re.compile(rf"(?:(?:{_LEAD}|{_ASSENT}) )*(?:{_RESET})(?: (?:{_TAIL}))*")

_REFERENCE = re.compile(
    r"\b(?:it|them)\b(?!\s*(?:['’](?:s|ll|d)\b|is\b|was\b|are\b|will\b|would\b|should\b|seems?\b|looks?\b|possible\b|ok(?:ay)?\b))|"
    r"\bthe same\b|\b(?:that|this|those|these|same)\s+one\b|"
    r"\b(?:that|this|those|these|the (?:last|previous|above|earlier))\s+"
    r"(?!is\b|was\b|are\b|were\b|will\b|would\b|has\b|had\b|i\b|you\b|we\b|they\b|it\b|he\b|she\b|my\b|the\b|a\b|an\b|"
    r"time\b|mornings?\b|afternoon\b|evening\b|night\b|week\w*\b|month\w*\b|year\w*\b|day\b|please\b|now\b)[^\W\d]{3,}|"
    r"\b(?:that|this|those|these)(?=(?:\s+(?:please|now|too|as well|instead|again|for me))?[\s.!?,]*$)",
    re.IGNORECASE,
)

_STRONG = re.compile(
    r"\bi me(?:an|ant)\b|\b(?:mistake|typo|wrong|incorrect|misread|misspelled|mistyped|mixed up|correction)\b|"
    r"\bshould (?:be|have been|read)\b|\bnot\b.+\bbut\b|\b(?:change|correct|update|fix|switch|set)\b.+\bto\b",
    re.IGNORECASE,
)
_WEAK = re.compile(r"\b(?:sorry|oops|actually|wait|hold on|hang on|rather|instead|scratch that|make (?:it|that))\b|^\W*no\b", re.IGNORECASE)
_CORRECTED = tuple(
    re.compile(rf"{before}[\s,:]+(?:it(?:['’]?s| is) )?(?P<value>.+)", re.IGNORECASE | re.DOTALL)
    for before in (
        r".*\bi mean(?:t)?(?: to (?:say|type|write))?\b",
        r"\b(?:change|correct|update|fix|switch|set)\b.+?\bto\b",
        r"\bshould (?:be|have been|read)\b",
        r"\bnot\b.+?\bbut\b",
        r"\b(?:mistake|typo|wrong|incorrect|correction)\b.*?\bit(?=['’]?s\b| is\b)(?:['’]?s| is)",
    )
)
"""Where the new value begins, the surest way to say so first."""

_CORRECTING_WORDS = (
    "mean meant wrong incorrect mistake typo typed misread misspelled mistyped mixed correction correct change update fix switch set make "
    "wait hold hang scratch said say told gave entered wrote rather instead oops bad previous earlier old new read one number value"
)
_CORRECTING = frozenset(map(stem, _CORRECTING_WORDS.split()))
"""Words of a correction that are no request by themselves."""


def is_reset(text: str) -> bool:
    """Whether the message wants to start over, and nothing else."""
    return _says(_RESET_SAID, text)


def is_cancel(text: str) -> bool:
    """Whether the message drops what is going on, and nothing else.

    Ask this only while something goes on, and after a confirmation: about what is done, "cancel it" asks for its cancellation, and as an
    answer to "shall I cancel it?" it is a yes.
    """
    return _says(_CANCEL_SAID, text)


def _says(signal: re.Pattern[str], text: str) -> bool:
    if len(text) > LONGEST_SIGNAL:
        return False
    words = re.sub(r"[^\w'/]+", " ", text.lower().replace("’", "'")).strip()
    return signal.fullmatch(words) is not None


def refers_back(text: str) -> bool:
    """Whether the message speaks of something said before: "cancel it", "that order", "the same one"."""
    return _REFERENCE.search(text) is not None


def words_without_values(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The message without the parts at `spans` (`[start, end)` offsets): what it says besides the values it gives."""
    kept = list(text)
    for start, end in spans:
        kept[start:end] = " " * len(kept[start:end])
    return " ".join("".join(kept).split())


def correction(
    text: str,
    catalog: IntentCatalog,
    params: Mapping[str, JsonValue],
    *,
    now: datetime,
    waiting_for: str | None = None,
    among: Collection[str] | None = None,
) -> dict[str, JsonValue]:
    """New values for parameters that the message takes back: "sorry, I meant O-2", "change the order id to O-4".

    Args:
        text: The message.
        catalog: Declares the parameters.
        params: Values known already. Only these are corrected, and those that the message names.
        now: When the message was written.
        waiting_for: The parameter that is being asked for; a value that may be its answer corrects no other, unless that one is named.
        among: Parameters that may be corrected without having a value yet, when they are named; all of them if None.

    Returns:
        The corrected parameters; empty if the message corrects nothing. A value that is the known one already is no correction.
    """
    strong = _STRONG.search(text) is not None
    if not strong and not _WEAK.search(text):
        return {}
    pool = _correctable(text, catalog, params, waiting_for, among)
    marked = _marked(text, pool, params, now, catalog.params.get(waiting_for or ""))
    if marked:
        certain = strong or not _says_more(text, marked, params)
        return {param.name: found.value for param, found in marked} if certain else {}
    return _meant(text, pool, params, now, waiting_for) if strong else {}


def _correctable(
    text: str, catalog: IntentCatalog, params: Mapping[str, JsonValue], waiting_for: str | None, among: Collection[str] | None
) -> list[Param]:
    """The parameters that a correction may be about: those that the message names first, then the others that have a value."""
    open_names = catalog.params if among is None else among
    others = [param for name, param in catalog.params.items() if name != waiting_for]
    named = [param for param in others if _names(text, param) and (param.name in params or param.name in open_names)]
    return named + [param for param in others if param.name in params and param not in named]


def _names(text: str, param: Param) -> bool:
    return not own_stems(param).isdisjoint(stem(word) for word in re.findall(r"[^\W\d_]+", text))


def _marked(
    text: str, pool: Sequence[Param], params: Mapping[str, JsonValue], now: datetime, asked: Param | None
) -> list[tuple[Param, Extraction]]:
    """The values that stand out in the message by themselves; each is one parameter's only, the first in `pool` that it fits."""
    marked: list[tuple[Param, Extraction]] = []
    for param in pool:
        rest = _without_value(text, params.get(param.name))
        found = find(param, rest, now=now, others=[other for other in pool if other is not param])
        if found.status != "filled" or found.value == params.get(param.name):
            continue
        taken = any(found.span == other.span for _, other in marked)
        answers = asked is not None and not _names(text, param) and _may_answer(asked, param, found)
        if not taken and not answers:
            marked.append((param, found))
    return marked


def _may_answer(asked: Param, param: Param, found: Extraction) -> bool:
    """Whether what was found for `param` may as well be the answer to the question for `asked`."""
    return asked.type is param.type and (asked.pattern is None or re.fullmatch(asked.pattern, str(found.value), re.IGNORECASE) is not None)


def _says_more(text: str, marked: Sequence[tuple[Param, Extraction]], params: Mapping[str, JsonValue]) -> bool:
    """Whether the message has words beside the new values and the words of a correction: then it asks for something."""
    rest = words_without_values(text, [found.span for _, found in marked if found.span])
    for param, _ in marked:
        rest = _without_value(rest, params.get(param.name))
    known = _CORRECTING.union(*(own_stems(param) for param, _ in marked))
    return any(word not in FUNCTION_WORDS and stem(word) not in known for word in re.findall(r"[^\W\d_]+(?:['’]\w+)?", rest.lower()))


def _meant(
    text: str, pool: Sequence[Param], params: Mapping[str, JsonValue], now: datetime, waiting_for: str | None
) -> dict[str, JsonValue]:
    """The value after the words of a correction, if it can be about one parameter only: then it may look like anything."""
    named = [param for param in pool if _names(text, param)]
    about = named or [param for param in pool if param.type is not ParamType.TEXT and waiting_for is None]
    value = next((match["value"] for pattern in _CORRECTED if (match := pattern.search(text))), "")
    if len(about) != 1 or not value.strip():
        return {}
    [param] = about
    found = extract(param, Reply(value, prompt=param.prompt or "?", filled=params, now=now))
    return {param.name: found.value} if found.status == "filled" and found.value != params.get(param.name) else {}


def _without_value(text: str, value: JsonValue) -> str:
    """The message with the known value blanked: "not O-1 but O-2" corrects to O-2."""
    if not isinstance(value, str) or not value:
        return text
    return re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", lambda match: " " * len(match.group()), text, flags=re.IGNORECASE)
