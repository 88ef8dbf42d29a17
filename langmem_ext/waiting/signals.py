"""What a user does besides answering and asking for things: starts over, cancels, corrects, refers back. English; pure.

Starting over and cancelling are judged on the whole message: "cancel that please" cancels, "cancel order O-1" asks for something, and an
address that contains the word is an address.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue

from langmem_ext.waiting.catalog import IntentCatalog
from langmem_ext.waiting.extract import Reply, extract, find
from langmem_ext.waiting.extract.attitude import NO, YES, asks_back, wishes_by_asking
from langmem_ext.waiting.extract.lexicon import FUNCTION_WORDS, word_set
from langmem_ext.waiting.extract.vocabulary import own_stems, stem
from langmem_ext.waiting.param import Extraction, Param, ParamType

OPEN = 0.5
"""Up to this confidence a value is read that nothing marks as one."""

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
_WEAK = re.compile(
    r"\b(?:sorry|oops|actually|wait|hold on|hang on|rather|instead|scratch that|make (?:it|that))\b|"
    r"^\W*no\b|^\W*not\b(?! (?:sure|really|yet|now)\b).*[,;.]",
    re.IGNORECASE,
)
_DISOWNED = re.compile(r"(?:['’]s|\s+(?:is|was))?\s+(?:wrong|incorrect|not right|not correct|a mistake|a typo)\b", re.IGNORECASE)
"""What follows a value that is not meant."""
_CORRECTED = tuple(
    re.compile(rf"{before}[\s,:]+(?:it(?:['’]?s| is) )?(?P<value>.+)", re.IGNORECASE | re.DOTALL)
    for before in (
        r".*\bi mean(?:t)?(?: to (?:say|type|write))?\b",
        r"\b(?:change|correct|update|fix|switch|set)\b.+?\bto\b",
        r"\bshould (?:be|have been|read)\b",
        r"\bnot\b.+?\bbut\b",
        r"\b(?:mistake|typo|wrong|incorrect|correction)\b.*?\bit(?=['’]?s\b| is\b)(?:['’]?s| is)",
        r"\bmake (?:it|that)\b",
    )
)
"""Where the new value begins, the surest way to say so first."""

_CORRECTING_WORDS = (
    "mean meant wrong incorrect mistake typo typed misread misspelled mistyped mixed correction correct change update fix switch set make "
    "wait hold hang scratch said say told gave entered wrote rather instead oops bad previous earlier old new read one number value"
)
_CORRECTING = frozenset(map(stem, _CORRECTING_WORDS.split()))
"""Words of a correction that are no request by themselves."""

_ASKING = word_set("who whom whose what which where when why how")
_WHAT = re.compile(r"^\W*(?:what|huh|sorry|pardon|eh|hm+)\s*\?+", re.IGNORECASE)
_TURNING = word_set(
    "not no nor never cannot can't don't won't if but unless except only or instead first later "
    "before after until till when while yet without"
)
"""Words that make something else of a yes: a condition, an exception, an order of things."""
_AGREEING = word_set(
    "please pls thanks thank you very much so do it it's that that's this go ahead on proceed continue confirm confirmed "
    "sure certain positive now right away i'm me my our the of course all and then sir by means just let's at for in under with"
)
_REPEATED = "repeated"
"""Stands for a value of the prompt that a message repeats."""
_WISHING = word_set("can could would will you i want i'd like to let's")
_REFUSING = word_set(
    "no nope please pls thanks thank you very much sorry way it that this them the at all i want need to do not don't any more anymore"
)
_DO = re.compile(r"^\W*(?:please\W+)?do (?:it|that|so|not)\b", re.IGNORECASE)
_DO_IT = re.compile(r"^\W*(?:please\W+)?(?:do (?:it|that|so)|confirm(?:ed)?|proceed)\b", re.IGNORECASE)
_DO_NOT = re.compile(r"^\W*(?:please\W+)?do not\b", re.IGNORECASE)
_FLAT_NO = re.compile(
    r"^\W*(?:(?:oh|well|um+|hm+|sorry|actually|please|but)\b\W*)*(?:no|nope|nah|nay)"
    r"(?=\W*$|\s*[.,;:!–—-]|\s+(?:i|i'm|it|it's|keep|leave|do|don't|we|you|that|that's|this|my|not)\b)",
    re.IGNORECASE,
)
_NOT_FLAT = re.compile(
    r"\b(?i:yes|yeah|yep|sure|ok(?:ay)?|fine|go ahead|do it|wait|hold on|hang on)\b|"
    r"\b(?i:change|update|correct|fix|use|make)\b|\d|(?<=[^\s.!?])\s+(?!I\b)[A-Z]"
)
"""What leaves open what a message decides that begins with no: words that take it back or change
something, a number, a name.
"""
_VALUE_ALONE = word_set(
    "number name it it's its is that's the a an my for at on to under by yes yeah yep no nope not ok okay but sorry "
    "please pls thanks instead"
)


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


def is_question(text: str) -> bool:
    """Whether the message asks something, whatever values it names: "where is O-2?".

    "What? No, O-2" does not.
    """
    said = _WHAT.sub(" ", text)
    return "?" in said or (asks_back(said) and not _DO.match(said))


def yes_or_no(text: str, values: Iterable[tuple[int, int]], prompt: str) -> bool | None:
    """What a message that says yes or no, and nothing else, decides; None for any other message.

    Args:
        text: The message.
        values: Where it repeats values of the prompt, as `[start, end)` offsets.
        prompt: What was asked. Its words may be said again: "yes, cancel the order", or just
            "cancel it".
    """
    for start, end in sorted(values, reverse=True):
        text = f"{text[:start]}{_REPEATED}{text[end:]}"  # not blanked: "it's" alone would be a yes
    words, again = _words(text), _said_again(prompt) | {_REPEATED}
    if words in (["true"], ["false"]):
        return words == ["true"]
    if "?" in text:
        return None
    if refused := NO.match(text) or _DO_NOT.match(text):
        return False if set(_words(text[refused.end() :])) <= _REFUSING | again else None
    repeats = refers_back(text) and _said_again(prompt).intersection(words) and set(words) <= _AGREEING | _WISHING | again
    if repeats and ({"cancel", "it"} <= set(words) or not is_cancel(text)):
        return True  # "cancel that" may be said of what goes on: then nothing is done
    rest = text
    while agreed := YES.match(rest) or _DO_IT.match(rest):
        rest = rest[agreed.end() :]
    certain = rest != text and _TURNING.isdisjoint(words) and set(_words(rest)) <= _AGREEING | again
    return True if certain else None


def _said_again(prompt: str) -> frozenset[str]:
    """The words of a question that its answer may repeat; none of one that leaves a choice."""
    asked = frozenset(_words(prompt))
    return frozenset() if "or" in asked else asked - FUNCTION_WORDS - _TURNING


def begins_with_no(text: str) -> bool:
    """Whether the message says no first, and nothing that changes a value or takes it back.

    "No, it is a present" does; "no, for 6" may change the number.
    """
    return _FLAT_NO.match(text) is not None and not is_question(text) and _NOT_FLAT.search(text) is None


def is_value_alone(text: str, prompt: str, params: Iterable[Param]) -> bool:
    """Whether a message gives nothing but values of these parameters, or asks for the same with them.

    Args:
        text: The message without the values.
        prompt: What was asked; its words may be said again: "cancel O-2".
        params: The parameters.
    """
    own, words, again = frozenset[str]().union(*map(own_stems, params)), set(_words(text)), _said_again(prompt)
    known = _VALUE_ALONE | again | (_WISHING if words & again else frozenset())
    return not is_question(text) and all(word in known or stem(word) in own for word in words)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:'[^\W\d_]+)?", text.casefold().replace("’", "'"))


def refers_back(text: str) -> bool:
    """Whether the message speaks of something said before: "cancel it", "that order", "the same one"."""
    return _REFERENCE.search(text) is not None


def without_part(text: str, span: tuple[int, int]) -> str:
    """The message with the part at `span` blanked; the rest keeps its place."""
    start, end = span
    return text[:start] + " " * len(text[start:end]) + text[end:]


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
    text = _WHAT.sub(lambda match: " " * len(match.group()), text)
    cue = next((match for pattern in _CORRECTED if (match := pattern.search(text))), None)
    strong = _STRONG.search(text) is not None
    if not (cue or strong or _WEAK.search(text)):
        return {}
    if is_question(text) and not wishes_by_asking(text) and (cue is None or "?" in text):
        return {}
    pool = _correctable(text, catalog, params, waiting_for, among)
    marked = _marked(text, pool, params, now, catalog.params.get(waiting_for or ""))
    rest = words_without_values(text, [found.span for _, found in marked if found.span])
    if marked:
        certain = marked if not _says_more(rest, marked, params) else _said_by(cue, text, marked, params)
        return {param.name: found.value for param, found in certain}
    if cue is None:
        return {}
    new = _meant(text, cue["value"], pool, params, now, waiting_for)
    return {param.name: found.value for param, found in new if strong or found.confidence > OPEN}


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
        if found.span and _DISOWNED.match(text[found.span[1] :]):
            continue
        taken = any(found.span == other.span for _, other in marked)
        answers = asked is not None and not _names(text, param) and _may_answer(asked, param, found)
        if not taken and not answers:
            marked.append((param, found))
    return marked


def _may_answer(asked: Param, param: Param, found: Extraction) -> bool:
    """Whether what was found for `param` may as well be the answer to the question for `asked`."""
    return asked.type is param.type and (asked.pattern is None or re.fullmatch(asked.pattern, str(found.value), re.IGNORECASE) is not None)


def _says_more(rest: str, marked: Sequence[tuple[Param, Extraction]], params: Mapping[str, JsonValue]) -> bool:
    """Whether the rest of a message has words that no correction needs: then it asks for something.

    `rest` is the message without its new values.
    """
    for param, _ in marked:
        rest = _without_value(rest, params.get(param.name))
    known = _CORRECTING.union(*(own_stems(param) for param, _ in marked))
    words = re.findall(r"[^\W\d_]+(?:['’]\w+)?", rest.lower())
    return any(word in _ASKING or (word not in FUNCTION_WORDS and stem(word) not in known) for word in words)


def _said_by(
    cue: re.Match[str] | None, text: str, marked: Sequence[tuple[Param, Extraction]], params: Mapping[str, JsonValue]
) -> list[tuple[Param, Extraction]]:
    """The new values that follow the words of a correction at once: "I meant O-2, it is for my mother"."""
    begin = cue.start("value") if cue else len(text)
    behind = [(param, found) for param, found in marked if found.span and found.span[0] >= begin]
    first = min((found.span[0] for _, found in behind if found.span), default=begin)
    return [] if _says_more(text[begin:first], behind, params) else behind


def _meant(
    text: str, value: str, pool: Sequence[Param], params: Mapping[str, JsonValue], now: datetime, waiting_for: str | None
) -> list[tuple[Param, Extraction]]:
    """The value after the words of a correction, if it can be about one parameter only: then it may look like anything."""
    named = [param for param in pool if _names(text, param)]
    about = named or [param for param in pool if param.type is not ParamType.TEXT and waiting_for is None]
    if len(about) != 1 or not value.strip():
        return []
    [param] = about
    found = extract(param, Reply(value, prompt=param.prompt or "?", filled=params, now=now))
    return [(param, found)] if found.status == "filled" and found.value != params.get(param.name) else []


def _without_value(text: str, value: JsonValue) -> str:
    """The message with the known value blanked: "not O-1 but O-2" corrects to O-2."""
    if not isinstance(value, str) or not value:
        return text
    return re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", lambda match: " " * len(match.group()), text, flags=re.IGNORECASE)
