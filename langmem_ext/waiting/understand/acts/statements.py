"""Whether a message asks, wishes, tells, proposes, or means what it names. English; pure."""

from __future__ import annotations

import re

from langmem_ext._internal.names import in_words
from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.english.attitude import asks_back
from langmem_ext.waiting.extract.english.lexicon import word_set
from langmem_ext.waiting.extract.english.vocabulary import own_stems, stem
from langmem_ext.waiting.understand.acts.spelling import plain_words

_REFERENCE = re.compile(
    r"\b(?:it|them)\b(?!\s*(?:['’](?:s|ll|d)\b|is\b|was\b|are\b|will\b|would\b|should\b|seems?\b"
    r"|looks?\b|possible\b|ok(?:ay)?\b))|"
    r"\bsame\b|\b(?:as|like) (?:before|last time)\b|\b(?:that|this|those|these)\s+one\b|"
    r"\b(?:that|this|those|these|the (?:last|previous|above|earlier))\s+"
    r"(?!is\b|was\b|are\b|were\b|will\b|would\b|has\b|had\b|i\b|you\b|we\b|they\b|it\b|he\b|she\b"
    r"|my\b|the\b|a\b|an\b|"
    r"time\b|mornings?\b|afternoon\b|evening\b|night\b|week\w*\b|month\w*\b|year\w*\b|day\b"
    r"|please\b|now\b)[^\W\d]{3,}|"
    r"\b(?:that|this|those|these)(?=(?:\s+(?:please|now|too|as well|instead|again|for"
    r" me))?[\s.!?,]*$)",
    re.IGNORECASE,
)
WHAT = re.compile(r"^\W*(?:what|huh|sorry|pardon|eh|hm+)\s*\?+", re.IGNORECASE)
DOUBT = word_set(
    "maybe perhaps probably sorry wait later instead still however unfortunately besides otherwise"
    " anyway or either neither nor another other more also too few some any who what which where"
    " when why how might may should could would than per as since"
)
_DOUBT_OF_VALUE = DOUBT - {"sorry", "wait", "later", "instead", "still", "too", "as"} | word_set(
    "not if unless never"
)
"""Words that leave open whether a value is meant."""
DO_IT = re.compile(r"^\W*(?:please\W+)?do (?:it|that|so|not)\b", re.IGNORECASE)


def is_question(text: str) -> bool:
    """Whether the message asks something, whatever values it names: "where is O-2?".

    "What? No, O-2" does not.
    """
    rest = WHAT.sub(" ", text)
    return "?" in rest or (asks_back(rest) and not DO_IT.match(rest))


WISHES = re.compile(
    r"\b(?:would (?:(?:also|really|still) )?(?:like|love)|(?:i|we)['’]?d (?:(?:also|really|still)"
    r" )?(?:like|love|rather|prefer)|"
    r"wants?|wanna|needs?|(?:can|could|would|will) (?:i|we|you"
    r"|u|somebody|someone|anybody|anyone)"
    r"|(?:can|could) (?:it|he|she|they|the|my|our|[a-z]*-?\d\w*)|"
    r"please|pls|plz|let me|looking (?:for|to)|hoping (?:for|to)|keen (?:on|to)|interested in"
    r"|could do with|fancy|(?<!\bthe )(?<!\ba"
    r" )(?:book|cancel)(?= (?:me|us|my|the|a|an|it|in)\b))\b",
    re.IGNORECASE,
)
"""Words that wish for something."""
_TELLS = re.compile(
    r"^\W*(?:(?:and|but|so|because|cos|cause|since|as|well|oh|sorry|just|argh?|hi|hello|hey|um+"
    r"|uh+)\b\W*)*"
    r"(?!well\s+(?:the|an?|in|on|at)\b)"
    r"(?:(?:i|we|he|she|they|it|this|that|there|somebody|someone)(?:['’]?(?:ve|m|re|s|d|ll))?|(?:my"
    r"|our|the|his|her|their)\s+(?!\d)\w+)\s+(?!of\b)\w+",
    re.IGNORECASE,
)


def tells(text: str) -> bool:
    """Whether a phrase states a fact and neither asks nor wishes: "I can't make it on monday"."""
    return _TELLS.match(text) is not None and not WISHES.search(text) and "?" not in text


SEGMENT = re.compile(r"[,.;:!\n–—()]+|\s-\s")
_BEFORE_SAID = re.compile(rf"{SEGMENT.pattern}|\bso\b", re.IGNORECASE)
"""What stands before the words that are said of a value: "she is coming after all, so 6"."""
REMARKS = re.compile(
    r"\s*(?:sorry|thanks?|thx|see you|looking forward|look forward|can['’]?t wait|have"
    r" an?|enjoy|such a|what a"
    r"|too bad|shame|pity|finally|at last|no (?:rush|hurry|worries))\b",
    re.IGNORECASE,
)
_HOW_IT_IS = re.compile(
    r"\b(?:i|we|it|there|that|this)(?:['’]?(?:ll be|m|re|s)|\s+(?:am|are|is|will be|should be))\b"
    r"|\b(?:i|we)(?:['’]?(?:ll|d)| will| can| could)\s+(?:take|have|go|need|come|bring|do|manage"
    r"|stretch|run to|afford|make)\b"
    r"|\b(?:would|will|['’]d)\s+(?:do|be|suit|work|fit)\b"
    r"|\b(?:says?|said|thinks?|prefers?|reckons?|insists?)\b",
    re.IGNORECASE,
)
"""Words of who tells how things are to be: "we are 5", "my wife says marble"."""
_WOULD_SUIT = re.compile(
    r"\b(?:would|['’]d)\s+(?:be\s+(?:better|best|good|great|fine|ideal|perfect|safer|easier|nicer)"
    r"|do|suit|work|fit)\b"
    r"|\b(?:could|would)\s+(?:i|we|you|he|she|they|some(?:body|one))\b|\bcould\s+it\b"
    r"|\b(?:i|we)\s+could\b",
    re.IGNORECASE,
)
"""Words that say of a value that it is wanted: "half past would be better", "could we do 5?"."""
_NEEDED = re.compile(
    r"\b(?:what|all) (?:i|we)(?:['’]\w+)?(?: \w+){0,2} (?:need|want|after|like)(?:ed)? (?:is"
    r"|are)\b",
    re.IGNORECASE,
)
"""What leads to a value that is wanted: "what I really need is a sander"."""


_IF_POSSIBLE = re.compile(
    r"\bif (?:that|it|this)['’]?s (?:\w+ )?(?:ok(?:ay)?|all right|alright|fine|possible|trouble)\b"
    r"|\bif (?:possible|poss|i may|you (?:can|could|don['’]?t mind))\b",
    re.IGNORECASE,
)
"""Conditions that leave a wish as it is."""


_INSTEAD = re.compile(r"\binstead\W*$", re.IGNORECASE)
_NEVER = re.compile(r"\b(?:not|never|no)\b", re.IGNORECASE)
_RATHER_THAN = re.compile(r"\brather\b.*?\bthan\b.*", re.IGNORECASE)


def is_meant(text: str, span: tuple[int, int], *, anew: bool = False) -> bool:
    """Whether a message says a value as one that is wanted: "take willow"; not "it might be 6".

    Args:
        text: The message.
        span: Where the value stands.
        anew: Whether the message takes something back: what it tells then is what is meant.
    """
    begin = max((match.end() for match in _BEFORE_SAID.finditer(text, 0, span[0])), default=0)
    closes = re.compile(rf"{SEGMENT.pattern}|\?|\band\b").search(text, span[1])
    end = closes.start() if closes else len(text)
    segment = text[begin:end]
    only_tells = not anew and (
        (tells(segment) and not _HOW_IT_IS.search(segment)) or REMARKS.match(segment)
    )
    rest = f"{text[begin : span[0]]} {text[span[1] : end]}"
    for wish in (_NEEDED, _WOULD_SUIT, _IF_POSSIBLE):
        rest = wish.sub(" ", rest)
    rest = _RATHER_THAN.sub(" ", rest)
    if anew and _INSTEAD.search(text, span[1]):
        return not only_tells and _NEVER.search(rest) is None
    return not only_tells and (_DOUBT_OF_VALUE | ADDING).isdisjoint(plain_words(rest))


ADDING = word_set(
    "also too not nor neither either or if unless more other another nothing none maybe perhaps"
    " probably might may"
)
"""Words that make a value one of several, or none."""


def refers_back(text: str) -> bool:
    """Whether the message refers to something said before: "cancel it", "the same one"."""
    return _REFERENCE.search(text) is not None


_PROPOSES = re.compile(
    r"\b(?:how|what)"
    r" about\b|\b(?:ok(?:ay)?|possible|works?|fine|alright|good|doable|suit(?:s|able)?)\b(?: for"
    r" you|"
    r" with you| too| as well)?\W*\?\W*$|"
    r"^\W*(?:(?:ok(?:ay)?|so|then|well|hm+|maybe|perhaps)\W+)*(?:would|does|is|will|could)"
    r" .{1,40}\b(?:work|ok(?:ay)?|"
    r"possible|fine|do|suit)\b|"
    r"\bshall we say\b|\bwhy not\b"
    r"|^\W*(?:(?:ok(?:ay)?|so|then|well|hm+|um+|and)\W+)*"
    r"(?:(?:is|are) there|(?:have|do) you (?:got|have))"
    r" (?:anything|any (?:space|room|slots?|appointments?)|space|room|a (?:slot|space))\b"
    r"(?!\s+(?:wrong|else|cheaper|more|i|we|you|to)\b)"
    r"(?=.*(?:\d|\b(?:\w+day|tomorrow|tonight|mornings?|afternoons?|evenings?|week\w*|noon)\b))",
    re.IGNORECASE,
)
_TAKES_BACK = re.compile(
    r"\b(?:change|wrong|different|another|other|correct|fix|update|edit|not right|incorrect|should"
    r" be|switch|move)\b",
    re.IGNORECASE,
)


def proposes(text: str) -> bool:
    """Whether a question offers a value: "how about friday?", "is 7 ok?"."""
    return _PROPOSES.search(text) is not None


def asks_back_only(text: str) -> bool:
    """Whether a clause is a question that offers no value and wishes for nothing."""
    if proposes(text) or _OPINION.match(text):
        return False
    rest = WHAT.sub(" ", text)
    opens = asks_back(rest) and not DO_IT.match(rest)
    return opens or (rest.rstrip().endswith("?") and _INVERTED.search(rest) is not None)


_INVERTED = re.compile(
    r"\b(?:what|how|when|where|who|why|which|do (?:you|i|we|they)|does (?:it|that|this)|are"
    r" (?:you|there|they)|"
    r"is (?:it|there|that|this)|can (?:it|that)|will (?:it|that|there))\b",
    re.IGNORECASE,
)
_OPINION = re.compile(r"^\W*(?:i (?:guess|think|suppose)|maybe|perhaps|probably)\b", re.IGNORECASE)


def wants_instead(text: str) -> bool:
    """Whether a message says no to what is asked, and wishes for another thing in its place."""
    refused = re.search(r"(?:^|[.,;!?–—-]\s*|\bactually )(?:no|nope|nah)\b", text.strip(), re.I)
    return refused is not None and re.search(r"\b(?:instead|rather)\b", text, re.I) is not None


def takes_back(text: str) -> bool:
    """Whether a clause says that something is to be another: "the time is wrong"."""
    return _TAKES_BACK.search(text) is not None


def names(text: str, param: Param) -> bool:
    """Whether a text speaks of a parameter by its name or by one of its own nouns."""
    if re.search(rf"(?<!\w){re.escape(in_words(param.name))}(?!\w)", text, re.IGNORECASE):
        return True
    return not own_stems(param).isdisjoint(stem(word) for word in re.findall(r"[^\W\d_]+", text))
