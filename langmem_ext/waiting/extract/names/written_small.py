"""People's names that are written small, which only their place in a message tells from words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.english.concepts import WORDS
from langmem_ext.waiting.extract.english.leadin import answer_span
from langmem_ext.waiting.extract.english.lexicon import (
    FUNCTION_WORDS,
    GENERIC_NOUNS,
    NEVER_NAMES,
    VERBS,
    word_set,
)
from langmem_ext.waiting.extract.english.tokens import Token, before, tokens
from langmem_ext.waiting.extract.english.vocabulary import own_stems, stem
from langmem_ext.waiting.extract.names.bystanders import KIN, is_firm
from langmem_ext.waiting.extract.names.openness import is_no_answer
from langmem_ext.waiting.extract.names.telling import is_remark
from langmem_ext.waiting.extract.numbers.numerals import UNITS
from langmem_ext.waiting.extract.reply import Reply

STATES = word_set(
    "hungry vegan vegetarian sorry ready happy busy late new sure done urgent available flexible"
    " free interested tired sick ok okay back single married pregnant allergic disabled diabetic"
    " early lost home out away glad sad angry upset fine good great afraid confused perfect mad"
    " broke unwell ill poorly alone awake asleep stuck bored hurt dead blind deaf dizzy sore tall"
    " short old young rich poor safe scared curious local foreign abroad downstairs upstairs"
    " outside inside serious healthy lucky unhappy retired"
)

ALSO_NAMES = word_set("will may")
"""Names that are function words when they are written small."""

LOOSE_NAME = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*\.?")

_AFTER_CUE = re.compile(
    r"\b(?:to|for|with|under|name is|name['’]?s|named|call me|i'm|i am|this"
    r" is|it's)\s+(?:my\s+|mr\.?\s+|mrs\.?\s+|dr\.?\s+)?(?=[a-z])",
    re.I,
)

_REMARK = re.compile(
    r"\W*(?:(?:that'?s|that is)\s+(?:\w+\s+\w+\s+\w|[a-z]+\W*$)|(?:you|you're|what a|how)\s+[a-z])",
    re.I,
)

_GO_AHEAD = re.compile(r"\b(?:go|going) (?:ahead|on)\b", re.I)

_NAME_IS = re.compile(
    r"\b(?:name(?:['’]s| is|:)|my names|in the name of|under the name(?: of)?)\s+(?=[a-z])", re.I
)

_NO_NAME = (
    NEVER_NAMES
    | GENERIC_NOUNS
    | UNITS.keys()
    | word_set(
        "name's names name’s born always usually often never sometimes normally generally"
        " lunchtime teatime dinnertime bedtime noon midday midnight breakfast ish"
        " early came went got was were"
        " did had said told took made left lost sent gave paid wore"
    )
)
"""Words that written small are no name."""

_DOES = frozenset(map(stem, VERBS))
"""Stems of what somebody does: "my friend lives next door"."""

NO_PART = word_set(
    "monday tuesday wednesday thursday friday saturday sunday january february march april june"
    " july august september october november december morning afternoon evening night dear team"
    " support service customer happy thank good best regards christmas easter new north south east"
    " west street road avenue lane close square park station airport hotel"
)
"""Words that are capitalised for other reasons, or begin the names of places."""

THINGS = re.compile(
    r"(?:tion|sion|ness|ship|ity|ware)s?$|^(?:lessons?|tests?|tours?|rooms?|class(?:es)?|courses?"
    r"|treatments?|trips?|menus?|plans?|tickets?"
    r"|change|repairs?|service|session|meetings?|appointments?|bookings?|checks?|check-?ups?|party"
    r"|packages?|cards?|passes|pass|days?|weeks?"
    r"|chips|burgers?|cheeseburgers?|pizza|salad|and)$",
    re.I,
)
"""Words for what can be had or booked, which are capitalised in titles."""

STREETS = re.compile(
    r"\b(?:street|st|road|rd|avenue|ave|lane|drive|close|square|park|station|airport|hotel|court"
    r"|terrace|gardens?|hill|bridge|restaurant|"
    r"bar|cafe|inn|hospital|school|university|bank|ltd|inc|gmbh|llc)\b",
    re.I,
)

_KIN_SMALL = re.compile(
    rf"\b(?:my|our|his|her|their)\s+(?:\w+\s+)?{KIN}(?:['’]s name is|\s+is"
    r" called|\s+called|,)?\s+(?=[a-z])",
    re.I,
)

GETTERS = frozenset(
    stem(word) for word in ("recipient", "receiver", "payee", "beneficiary", "gets", "receives")
)

_PAY_SMALL = re.compile(
    r"\b(?:pay|give|tip)\s+(?=[a-z]+\s+(?:[$€£¥]?\d|[a-z]+(?:\s+[a-z]+)?\s+(?:dollars?|bucks?"
    r"|euros?|pounds?|quid)))(?P<name>[a-z]+)"
    r"|\b(?:send|pay|transfer|give|wire)\s+[^.!?]{0,20}(?:\d|dollars?|bucks?|euros?|pounds?"
    r"|quid)\s+to\s+(?:my\s+)?(?P<to>[a-z]+)",
    re.I,
)

_STATE_ENDS = re.compile(r"(?:ing|ed|ly|ful|less|able|ible|ous|ish|ive|ant|ent|ic|ical|ck|st)$")
"""How words end that say in which state somebody is, written small."""

_IM = re.compile(
    r"(?:^|[.,;!?]\s*|\b(?:and|hi|hello|hey)\W+)(?:i['’]?m|i"
    r" am)\s+(?P<name>[a-z]+(?:['’-][a-z]+)*(?:\s+[a-z'’-]+)?)"
    r"(?=\s*(?:$|[.,;!?]|btw\b|here\b))",
    re.I,
)

_NAME_ALONE = re.compile(
    r"(?:^|[.,;!?]\s*|\b(?:my|the|and|under|last|first|full)\s+)(?:name"
    r"|surname)\s+(?P<name>[^\W\d_]+(?:['’-][^\W\d_]+)*(?:\s+[^\W\d_]+(?:['’-][^\W\d_]+)*){0,2})"
    r"(?=\s*(?:$|[.,;!?]))",
    re.I,
)

_TWICE = re.compile(
    r"\b(?:it['’]?s|it is|i['’]?m|i am|this"
    r" is)\s+(?P<short>[^\W\d_]+)[.,]\s+(?P<name>(?:(?P=short)\s+[^\W\d_]+"
    r"|[^\W\d_]+\s+(?P=short)))\b",
    re.I,
)
"""A name that is said again as a whole: "it's carol. carol finch"."""

_ACCOUNTS = word_set("savings checking current cash card")

TITLES = frozenset(("mr", "mrs", "ms", "miss", "dr", "doctor", "sir", "madam"))

_ROLE_BEFORE = re.compile(
    r"(?P<role>[^\W\d_]+)(?:\s*[:=]|['’]?s|\s+(?:is|will be|would be|called|named))?\s+$", re.I
)

_ROLE_AFTER = re.compile(
    r"\s+(?:(?:is|will|would|can|could|shall)\s+(?:be\s+)?(?:the|my|our)?\s*)?(?P<role>[^\W\d_]+)"
)

_WHO_DOES = re.compile(r"\bwho\s+(?:(?:will|is|can|should)\s+)?(?P<does>[a-z]+)", re.I)


def _roles(param: Param) -> frozenset[str]:
    """Stems of what a person is or does by the parameter's words: "skipper", "stands in"."""
    asked = _WHO_DOES.findall(f"{param.description} {param.prompt}".lower())
    does = {stem(word) for word in asked if word not in FUNCTION_WORDS | GENERIC_NOUNS}
    return frozenset(own_stems(param) | does) - {stem(word) for word in GENERIC_NOUNS}


def has_role(param: Param, text: str, group: Sequence[Token]) -> bool:
    """Whether a parameter's own word is beside a name: "skipper Bo Lind", "Bo covers for me"."""
    ahead = _ROLE_BEFORE.search(before(text, group[0].start))
    behind = _ROLE_AFTER.match(text, group[-1].end)
    return any(
        match is not None
        and match["role"].lower() not in FUNCTION_WORDS
        and stem(match["role"]) in _roles(param)
        for match in (ahead, behind)
    )


def small_with_role(param: Param, text: str) -> list[Token]:
    """Two words written small beside a parameter's own word: "ann lee covers for me"."""
    words, roles = tokens(text), _roles(param)
    if not any(stem(word.low) in roles for word in words):
        return []
    for at, word in enumerate(words[:-1]):
        group = words[at : at + 2]
        opens = (
            at == 0
            or text[words[at - 1].end : word.start].strip()
            or (words[at - 1].low in FUNCTION_WORDS or stem(words[at - 1].low) in roles)
        )
        adjacent = text[word.end : group[1].start].isspace()
        if opens and adjacent and could_be_person(group) and has_role(param, text, group):
            return group
    return []


_LONG_NAME = 6
"""Letters of a name that ends as a state does, at most: "Tully", "Ahmed"."""


def could_be_person(group: Sequence[Token]) -> bool:
    """Whether words written small, which nothing marks, are of no kind that is known."""
    return _plain(group) and not any(
        (_is_state(word.low) and (len(word.low) > _LONG_NAME or word.low in STATES))
        or stem(word.low) in _DOES
        or stem(word.low) in WORDS
        or re.fullmatch(KIN, word.low)
        or word.low in NO_PART
        or THINGS.search(word.low)
        or STREETS.fullmatch(word.low)
        for word in group
    )


def is_full_name(words: Sequence[Token]) -> bool:
    """Whether words are a name of several parts, written as one: "Farouk Benali"."""
    written = all(word.capitalised for word in words)
    return len(words) > 1 and written and could_be_person(words) and not is_firm(words)


def small_answer(reply: Reply, masked: Sequence[tuple[int, int]]) -> list[Token]:
    """A name written small: the whole answer, of up to three words that could be a name's."""
    words = tokens(reply.text)
    if len(words) == 1 and words[0].low in ALSO_NAMES and words[0].capitalised:
        return words
    if (
        is_no_answer(reply.text)
        or is_remark(reply.text)
        or _REMARK.match(reply.text)
        or _GO_AHEAD.search(reply.text)
    ):
        return []
    start, end = answer_span(reply.text)
    lead = ME_FIRST.match(reply.text)
    start = max(start, lead.end() if lead else 0)
    group = [word for word in tokens(reply.text) if word.start >= start and word.end <= end]
    group = [word for word in group if word.low.strip(".") not in TITLES]
    while len(group) > 1 and group[-1].low in _HERE_LAST:
        group.pop()
    if not _plain(group):
        group = next(
            (
                after
                for cue in _AFTER_CUE.finditer(reply.text)
                if (after := _words_after(reply.text, cue.end()))
            ),
            _first_words(reply.text),
        )
        start, end = (group[0].start, group[-1].end) if group else (0, 0)
    if (
        len(group) == 1
        and _is_state(group[0].low)
        and re.search(r"\b(?:this|it|that|i)\b", reply.text, re.I)
    ):
        return []
    return (
        group
        if group
        and _plain(group)
        and not any(start < stop and begin < end for begin, stop in masked)
        else []
    )


def named_small(text: str, masked: Sequence[tuple[int, int]]) -> list[Token]:
    """A name written small after words that say that it is one: "my name is ruth"."""
    for match in _NAME_IS.finditer(text):
        group = _words_after(text, match.end())
        if _plain(group) and not any(
            group[0].start < stop and begin < group[-1].end for begin, stop in masked
        ):
            return group
    return []


def is_all_of(group: Sequence[Token], text: str) -> bool:
    """Whether an answer holds nothing else: "me, dean whitlock"."""
    lead = ME_FIRST.match(text)
    return len(group) == len(tokens(text[lead.end() if lead else 0 :]))


ME_FIRST = re.compile(
    r"\W*(?:(?:oh|yes|yeah|(?:it|that)['’]?s|this is|me|again|i['’]?m|for|and|under|put)\b\W*)*",
    re.I,
)

_HERE_LAST = word_set("here speaking again btw")

_MORE = re.compile(r"\s*(?:,|\.|;|[+\d(]|(?:on|at|born|and|my|account|phone|number|tel)\b)", re.I)


def _first_words(text: str) -> list[Token]:
    """The two or three words before another value of an answer: "kasia nowak, 07700 900123"."""
    begin = ME_FIRST.match(text)
    group = _words_after(text, begin.end() if begin else 0)
    cut = next((at for at, word in enumerate(group) if at and _MORE.match(word.text)), len(group))
    group = group[1:] if len(group) == 3 and group[0].low == group[1].low else group[:cut]
    states = any(_is_state(word.low) or stem(word.low) in _DOES for word in group)
    more = group and _MORE.match(text, group[-1].end)
    return group if 2 <= len(group) <= 3 and more and _plain(group) and not states else []


def _plain(group: Sequence[Token]) -> bool:
    letters = sum(len(word.text) for word in group)
    return 1 <= len(group) <= 3 < letters + 2 and all(
        word.low not in _NO_NAME and LOOSE_NAME.fullmatch(word.text) for word in group
    )


def _words_after(text: str, start: int) -> list[Token]:
    """Up to three words from `start` on that could be a name's."""
    group: list[Token] = []
    for word in tokens(text[start:]):
        moved = Token(word.text, word.start + start, word.end + start)
        gap = text[(group[-1].end if group else start) : moved.start].strip()
        if word.low in _NO_NAME or len(group) == 3 or gap:
            break
        group.append(moved)
    return group


def marked_small(param: Param, text: str) -> list[Token]:
    """A name written small in a message that answers nothing, after words that mark one."""
    for pattern in (_TWICE, _NAME_ALONE, _IM):
        for match in pattern.finditer(text):
            group = [
                word
                for word in _words_after(text, match.start("name"))
                if word.end <= match.end("name")
            ]
            if pattern is _NAME_ALONE and len(group) == 1 and re.search(r"\w{4}ed$", group[0].low):
                continue
            if _plain(group) and (
                pattern is not _IM or not any(_is_state(word.low) for word in group)
            ):
                return group
    for match in _KIN_SMALL.finditer(text):
        group = _words_after(text, match.end())
        ends = (
            re.match(
                r"\s*(?:$|[.,;!?]|(?:on|at|for|in|and|from|to|please|who|this|next|tomorrow"
                r"|today)\b)",
                text[group[-1].end :],
            )
            if group
            else None
        )
        if ends and not any(_is_state(word.low) or stem(word.low) in _DOES for word in group):
            return group
    for match in _PAY_SMALL.finditer(text) if own_stems(param) & GETTERS else ():
        group = _words_after(text, match.start("name") if match["name"] else match.start("to"))[:1]
        if _plain(group) and group[0].low not in _ACCOUNTS:
            return group
    return []


def _is_state(word: str) -> bool:
    return word in STATES or _STATE_ENDS.search(word) is not None
