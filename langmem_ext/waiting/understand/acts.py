"""What a user does besides giving values and asking for things. English; pure.

Starting over, cancelling, wanting a person and the like are judged on a whole clause: "cancel that
please" cancels, "cancel order O-1" asks for something, and an address that contains the word is an
address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache

from rapidfuzz.distance import DamerauLevenshtein

from langmem_ext._internal.names import in_words
from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.english.attitude import NO, asks_back
from langmem_ext.waiting.extract.english.lexicon import APPROVING, FUNCTION_WORDS, word_set
from langmem_ext.waiting.extract.english.vocabulary import own_stems, stem

LONGEST_SIGNAL = 120
"""Characters of a message that only cancels or starts over, at most."""

_LEAD = (
    r"please|pls|oh|ah|u[mh]+|hm+|well|so|no|nah|nope|hey|hi|hello|sorry|actually|wait|just|then"
    r"|and|but|now|thanks|thank"
    r" you|"
    r"(?:can|could|would|will) (?:you|we|i)|let'?s|let us|i (?:want|need|wish|have) to|i(?:'d|"
    r" would) like to|i wanna|i think|"
    r"you know what|best|better"
)
_ASSENT = r"ok|okay|k|yes|yeah|yep|sure|alright|all right|fine|right"
_TAIL = (
    r"please|pls|thanks|thank you|now|right now|then|for now|sorry|anyway|anyways|after"
    r" all|ok|okay|altogether|completely|entirely|"
    r"any ?more|instead|i found it(?: myself)?|i(?:'ll| will) do (?:it|that) (?:later|myself)|bye"
)
_THAT = r"(?:it|this|that|all(?: of (?:it|this|that))?|everything|the whole thing)"
_MATTER = r"(?:(?:the|this|that|my|our|current|the current|whole|the whole) )?"
_DROP = (
    rf"never ?mind(?: (?:it|that|then|about (?:it|that)))?|forget (?:about )?(?:it|this|that|the"
    rf" whole thing)|"
    rf"(?:stop|abort|quit|exit)(?: {_THAT})?|stop (?:asking(?: me)?|here)|(?:drop|scrap|scratch)"
    r" (?:it|this|that)|"
    rf"leave it(?: be| alone)?|"
    rf"(?:don'?t|do not) (?:book|order|reserve|send|buy|make|list) (?:it|that|this|them|anything)|"
    rf"forget (?:about )?(?:the|my|our) (?!time|date|day|name|number)\w+|"
    rf"i(?:'ve| have)? changed my mind|(?:don'?t|do not) bother|(?:it(?:'s| is) )?no longer"
    rf" (?:needed|necessary)|let'?s not|i give up|"
    rf"(?:i(?:'m| am) )?(?:not|no longer) interested|i (?:don'?t|do not) (?:want|need) (?:to"
    rf" (?:do|continue|proceed|go on)"
    rf"(?: (?:with )?{_THAT})?|{_THAT})"
)
_CANCEL = (
    r"cancel(?:"
    rf" (?:{_THAT}|{_MATTER}(?:request|process|operation|conversation|action|question|thing)))?"
)
_TALK = rf"{_MATTER}(?:conversation|chat|session|dialogu?e?|thread)"
_RESET = (
    rf"(?:reset|restart)(?: (?:{_THAT}|{_TALK}))?|(?:start|begin)(?: {_THAT})?"
    r" (?:over|again|anew|afresh|fresh|from scratch|"
    rf"from (?:the )?(?:beginning|start|zero))(?: again)?|(?:clear|erase|wipe|forget)"
    rf" (?:everything|all of (?:it|this|that)|"
    rf"{_TALK}|{_MATTER}(?:history|memory))|(?:start )?(?:a )?new"
    r" (?:conversation|chat|session)|/reset"
)
_CANCEL_SAID = re.compile(
    rf"(?:(?:{_LEAD}) )*(?:{_CANCEL})(?: (?:{_TAIL}))*|(?:(?:{_LEAD}|{_ASSENT}) )*(?:{_DROP})(?:"
    rf" (?:{_TAIL}))*"
)
_RESET_SAID = re.compile(rf"(?:(?:{_LEAD}|{_ASSENT}) )*(?:{_RESET})(?: (?:{_TAIL}))*")

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
_TURNING = word_set(
    "not no nor never cannot can't don't won't if but unless except only or instead first later "
    "before after until till when while yet without"
)
"""Words that make something else of a yes: a condition, an exception, an order of things."""
_AGREEING = word_set(
    "please pls thanks thank you very much so do it it's that that's this go ahead on proceed"
    " continue confirm confirmed sure certain positive now right away i'm me my our the of course"
    " all and then sir by means just let's at for in under with dear love mate madam a lot correct"
    " perfect great good fine lovely hurry asap quickly cheers ta ok okay send book thx tx tks"
    " thanx ty exactly absolutely everything u ur"
)
_SPELT = tuple(
    sorted(
        word
        for word in APPROVING | {"sorry", "please", "thanks", "thats", "that's"}
        if len(word) >= 5 and word not in ("sweet", "great", "grand", "confirms")
    )
)
"""Words long enough that one slip in them makes no other word."""
_GO_AHEAD = re.compile(
    r"\b(?:go ahead|go for it|go on|do (?:it|that|so|the needful)|carry on|that'?s (?:it|the"
    r" one|all right)|(?:please|"
    r"kindly) do|make it so|"
    r"(?:sounds|looks|works|seems) (?:good|great|fine|right|perfect|ok(?:ay)?|for me|for us)|works"
    r" for (?:me|us)|that (?:works|does it|would work|'ll do|will do)|"
    r"of course|by all means|no need to change|that'?ll do|bang on|lgtm|sure thing|you got it"
    r"|thumbs up|happy with (?:that|this|it))\b|\b(?:it is|i do)\W*$|[👍👌✅]",
    re.IGNORECASE,
)
_DOUBT = word_set(
    "maybe perhaps probably sorry wait later instead still however unfortunately besides otherwise"
    " anyway or either neither nor another other more also too few some any who what which where"
    " when why how might may should could would than per as since"
)
_DOUBT_OF_VALUE = _DOUBT - {"sorry", "wait", "later", "instead", "still", "too", "as"} | word_set(
    "not if unless never"
)
"""Words that leave open whether a value is meant."""
_WITH_A_YES = frozenset(
    word.replace("'", "") for word in (FUNCTION_WORDS - _DOUBT - _TURNING) | _AGREEING
) | word_set(
    "it thats would be that is was quite very much really so all lot go ahead on for do the needful"
    " kindly looks sounds works seems sound look work forward many wonderful kind one better thats"
    " its thank im were happy glad pleased yay phew love like wow oh thatll"
    " nicely bang lgtm thumbs up got thing"
)
"""Words that may come with a yes and change nothing of it, without their apostrophes."""
_REPEATED = "repeated"
"""Stands for a value of the prompt that a message repeats."""
_WISHING = word_set("want need can could would will you i want i'd like to let's")
_REFUSING = word_set(
    "no nope please pls thanks thank you very much sorry way it that this them the at all i want"
    " need to do not don't any more anymore"
)
_DO = re.compile(r"^\W*(?:please\W+)?do (?:it|that|so|not)\b", re.IGNORECASE)
_DO_NOT = re.compile(r"^\W*(?:please\W+)?do not\b", re.IGNORECASE)
_FLAT_NO = re.compile(
    r"^\W*(?:(?:oh|well|um+|hm+|sorry|actually|please|but)\b\W*)*(?:no|nope|nah|nay)"
    r"(?=\W*$|\s*[.,;:!–—-]|\s+(?:i|i'm|it|it's|keep|leave|do|don't|we|you|that|that's|this|my"
    r"|not)\b)",
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
    "hm mm number name it it's its is that's the a an my for at on to under by yes yeah yep no nope"
    " not ok okay but sorry please pls thanks instead"
)


def is_reset(text: str) -> bool:
    """Whether the message wants to start over, and nothing else."""
    return _says(_RESET_SAID, text)


def is_cancel(text: str) -> bool:
    """Whether the message drops what is going on, and nothing else.

    Ask this only while something goes on, and after a confirmation: about what is done, "cancel it"
    asks for its cancellation, and as an answer to "shall I cancel it?" it is a yes.
    """
    return _says(_CANCEL_SAID, text)


_LEAVES = re.compile(
    r"\b(?:leave|forget|skip|scrap|drop)\s+(?:about\s+)?(?:the|this|that|my|our)\s+"
    r"(?!time|date|day|name|number|address)(?P<matter>[a-z]+)"
    r"(?=\W*$|\s*[.,;!–—-])",
    re.IGNORECASE,
)


def with_plain_end(text: str, matter: AbstractSet[str]) -> str:
    """The message, words that drop what the request is about spelt plainly: "leave the booking".

    Args:
        text: The message.
        matter: The stems of the request's own words.
    """
    return _LEAVES.sub(
        lambda match: (
            "forget it".ljust(len(match.group()))
            if stem(match["matter"].lower()) in matter
            else match.group()
        ),
        text,
    )


def _says(signal: re.Pattern[str], text: str) -> bool:
    if len(text) > LONGEST_SIGNAL:
        return False
    words = re.sub(r"[^\w'/]+", " ", text.lower().replace("’", "'")).strip()
    return signal.fullmatch(words) is not None


def is_question(text: str) -> bool:
    """Whether the message asks something, whatever values it names: "where is O-2?".

    "What? No, O-2" does not.
    """
    rest = WHAT.sub(" ", text)
    return "?" in rest or (asks_back(rest) and not _DO.match(rest))


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
    text = _THAT_TOO.sub(" ", _ALSO_RIGHT.sub(r"\g<right>", _LOOKS_FORWARD.sub("", text)))
    words, again = _words(text), _said_again(prompt) | {_REPEATED}
    if words in (["true"], ["false"]):
        return words == ["true"]
    if "?" in text:
        return None
    if refused := NO.match(text) or _DO_NOT.match(text):
        return False if set(_words(text[refused.end() :])) <= _REFUSING | again else None
    repeats = (
        refers_back(text)
        and _said_again(prompt).intersection(words)
        and set(words) <= _AGREEING | _WISHING | again
    )
    if repeats and ({"cancel", "it"} <= set(words) or not is_cancel(text)):
        return True  # "cancel that" may be said of what goes on: then nothing is done
    plain = {word.replace("'", "") for word in words}
    agrees = not APPROVING.isdisjoint(plain) or _GO_AHEAD.search(text) is not None
    certain = (
        agrees
        and _TURNING.isdisjoint(words)
        and (plain <= APPROVING | _WITH_A_YES | again or _only_remarks(text, again))
    )
    return True if certain else None


_LOOKS_FORWARD = re.compile(
    r"(?<=\w)[\s,.!–—-]+(?:(?:i|we)\s+)?"
    r"(?:can['’]?t wait|cannot wait|looking forward(?: to it)?)\W*$",
    re.IGNORECASE,
)
"""What changes nothing behind a yes."""
_ALSO_RIGHT = re.compile(
    r"\b(?P<right>(?:that|this|it)['’]?s (?:all"
    r" )?(?:right|fine|good|correct|ok(?:ay)?|great|perfect)) too\b",
    re.IGNORECASE,
)
_THAT_TOO = re.compile(
    r"(?<=\w)[\s,.;:!–—-]+(?:and )?(?:that|this)(?: one)? too\b(?=\W*$)", re.IGNORECASE
)
_SEGMENT = re.compile(r"[,.;:!\n–—()]+|\s-\s")
_BEFORE_SAID = re.compile(rf"{_SEGMENT.pattern}|\bso\b", re.IGNORECASE)
"""What stands before the words that are said of a value: "she is coming after all, so 6"."""
_OPEN_STILL = re.compile(
    r"\b(?:change|wrong|different|another|other|update|edit|incorrect|should|ask|check|think|wonder"
    r"|forgot|call|hope|old|name)\b",
    re.IGNORECASE,
)
_REMARKS = re.compile(
    r"\s*(?:sorry|thanks?|thx|see you|looking forward|look forward|can['’]?t wait|have"
    r" an?|enjoy|such a|what a"
    r"|too bad|shame|pity|finally|at last|no (?:rush|hurry|worries))\b",
    re.IGNORECASE,
)


def repeats_order(text: str, question: str) -> bool:
    """Whether a message only repeats the proposed action: "submit" to "CC114 for 84. Submit?"."""
    proposed = [part for part in re.split(r"[.:;,]\s+", question) if re.search(r"\w", part)][-1:]
    words = set(_words(text)) - _AGREEING
    verb = next((word for word in _words(" ".join(proposed)) if word not in FUNCTION_WORDS), None)
    return (
        (verb in words or {"it", verb} <= set(_words(text)))
        and "?" not in text
        and words <= _said_again(" ".join(proposed))
        and not is_cancel(text)
    )


_YES_FIRST = re.compile(
    r"\W*(?:(?:oh|ah|aw+|omg|um+|uh|hm+|well|so|haha|lol|no problem|np|sadly|unfortunately|alas"
    r"|(?:i['’]?m )?afraid(?: so)?|it is)\b\W*)*"
    r"(?:(?P<yes>yes|yeah|yep|yup|yea|ya|yas|ye|aye|correct|exactly|perfect|go ahead|go for it"
    r"|that['’]?s (?:right|correct|it|fine|perfect|the one))|sure|ok(?:ay)?|right|fine)\b",
    re.IGNORECASE,
)
_FEW_WORDS = 6
"""Words of a message that begins with less than a plain yes, at most."""


def begins_with_yes(text: str) -> bool:
    """Whether a message says yes first, and nothing that takes it back or asks for more.

    Its other words may be any, misspelt ones too: "yes srory abuot short notice".
    """
    words = " ".join(_words(_THANKED.sub("", text)))
    first = _YES_FIRST.match(words)
    if first is None or "?" in text:
        return _says_yes_apart(text)
    rest = words[first.end() :]
    doubts = (_DOUBT | _TURNING | _ADDING) - _HARMLESS
    wished = WISHES.search(_PLEASE.sub("", rest)) or _AND_MORE.search(rest)
    more = wished or re.search(r"\d", rest) or _OPEN_STILL.search(rest)
    few = first["yes"] is not None or len(words.split()) <= _FEW_WORDS
    return few and doubts.isdisjoint(rest.split()) and not more and not asks_back(rest)


_THANKED = re.compile(
    r"(?<=\w)[\s,.!–—-]+(?:thanks|thank you|thx|cheers)\b(?:(?!\b(?:but|can|could"
    r"|please)\b)[^?\d])*$",
    re.IGNORECASE,
)
"""Thanks at the end of a message, whatever they are for."""
_EXCLAIMS = re.compile(r"\b(?:how (?:very )?\w+ of you|what a \w+)\b")


def _says_yes_apart(text: str) -> bool:
    """Whether one part of a message only agrees, and the others change nothing.

    "That is all correct, how kind of you"; a part says no more than a few words of thanks.
    """
    parts = [part for part in _SEGMENT.split(text) if re.search(r"\w", part)][:_FEW_WORDS]
    agreeing = [part for part in parts if yes_or_no(part, (), "")]
    rest = " ".join(_words(" ".join(part for part in parts if part not in agreeing)))
    rest = _EXCLAIMS.sub(" ", rest)
    turned = (_DOUBT | _TURNING | _ADDING) - _HARMLESS
    return bool(
        agreeing
        and "?" not in text
        and len(parts) > 1
        and turned.isdisjoint(rest.split())
        and not re.search(r"\d", rest)
        and not _OPEN_STILL.search(rest)
        and not WISHES.search(_PLEASE.sub("", rest))
        and not any(yes_or_no(part, (), "") is False for part in parts)
    )


_AND_MORE = re.compile(r"\b(?:and|plus|with) (?:a|an|the|one|two|some|my|our|can|could|then)\b")
"""What adds something to a yes: "yes and a quiet table"."""
_PLEASE = re.compile(r"\b(?:please|pls|plz)\b")
_HARMLESS = frozenset({"sorry", "so", "as", "since", "now"})
"""Words that leave a yes as it is, though they may turn other words."""


_NUMBER = re.compile(r"\d+")


def without_numbers(text: str) -> str:
    """The message with its numbers blanked."""
    return _NUMBER.sub(lambda match: " " * len(match.group()), text)


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


def is_meant(text: str, span: tuple[int, int], *, anew: bool = False) -> bool:
    """Whether a message says a value as one that is wanted: "take willow"; not "it might be 6".

    Args:
        text: The message.
        span: Where the value stands.
        anew: Whether the message takes something back: what it tells then is what is meant.
    """
    begin = max((match.end() for match in _BEFORE_SAID.finditer(text, 0, span[0])), default=0)
    closes = re.compile(rf"{_SEGMENT.pattern}|\?").search(text, span[1])
    end = closes.start() if closes else len(text)
    segment = text[begin:end]
    only_tells = not anew and (
        (tells(segment) and not _HOW_IT_IS.search(segment)) or _REMARKS.match(segment)
    )
    rest = _WOULD_SUIT.sub(" ", _NEEDED.sub(" ", f"{text[begin : span[0]]} {text[span[1] : end]}"))
    return not only_tells and (_DOUBT_OF_VALUE | _ADDING).isdisjoint(_words(rest))


def _only_remarks(text: str, again: AbstractSet[str]) -> bool:
    """Whether a message agrees first, and then only remarks: "yes, it's for my mother"."""
    agreed = False
    for segment in _SEGMENT.split(text):
        words = [word.replace("'", "") for word in _words(segment)]
        if set(words) <= APPROVING | _WITH_A_YES | again:
            agreed = (
                agreed or not APPROVING.isdisjoint(words) or _GO_AHEAD.search(segment) is not None
            )
            continue
        begin = re.match(
            rf"\W*(?:(?:{'|'.join(sorted(APPROVING))})\b\W*)*",
            segment.replace("’", "'"),
            re.IGNORECASE,
        )
        agreed = agreed or bool(begin and re.search(r"\w", begin.group()))
        rest = segment[begin.end() :] if begin else segment
        remark = (
            (tells(rest) or _REMARKS.match(rest))
            and not (re.search(r"\d", rest) or _OPEN_STILL.search(rest))
            and _REPEATED not in rest
        )
        if (
            not (agreed and remark)
            or not _DOUBT.isdisjoint(set(words) - {"sorry", "so"})
            or not _ADDING.isdisjoint(words)
        ):
            return False
    return agreed


def _said_again(prompt: str) -> frozenset[str]:
    """The words of a question that its answer may repeat; none of one that leaves a choice."""
    asked = frozenset(_words(prompt))
    return frozenset() if "or" in asked else asked - FUNCTION_WORDS - _TURNING


def begins_with_no(text: str) -> bool:
    """Whether the message says no first, and nothing that changes a value or takes it back.

    "No, it is a present" does; "no, for 6" may change the number.
    """
    return (
        _FLAT_NO.match(text) is not None
        and not is_question(text)
        and _NOT_FLAT.search(text) is None
    )


def is_value_alone(text: str, prompt: str, params: Iterable[Param]) -> bool:
    """Whether a message only gives values of these parameters, or asks for the same with them.

    Args:
        text: The message without the values.
        prompt: What was asked; its words may be said again: "cancel O-2".
        params: The parameters.
    """
    own, words, again = (
        frozenset[str]().union(*map(own_stems, params)),
        set(_words(text)),
        _said_again(prompt),
    )
    known = (
        _VALUE_ALONE
        | again
        | (FUNCTION_WORDS - _ADDING)
        | (_WISHING if words & again else frozenset())
    )
    return not is_question(text) and all(word in known or stem(word) in own for word in words)


_ADDING = word_set(
    "also too not nor neither either or if unless more other another nothing none maybe perhaps"
    " probably might may"
)
"""Words that make a value one of several, or none."""


def _words(text: str) -> list[str]:
    words = re.findall(
        r"[^\W_]+(?:'[^\W\d_]+)?", _DRAWN_OUT.sub(r"\1", text.casefold().replace("’", "'"))
    )
    return [_spelt(word) for word in words]


@lru_cache(maxsize=4096)
def _spelt(word: str) -> str:
    """The word that says yes, thanks or sorry which a word misspells by one slip; else the word."""
    if len(word) < 5 or word in _SPELT or word in FUNCTION_WORDS:
        return word
    return next(
        (
            meant
            for meant in _SPELT
            if word[0] == meant[0] and DamerauLevenshtein.distance(word, meant, score_cutoff=1) <= 1
        ),
        word,
    )


_DRAWN_OUT = re.compile(r"([^\W\d_])\1{2,}")
"""A letter that is drawn out: "yesss", "sooo"."""


_FIRST_WORD = re.compile(r"[^\W\d_]{2,12}(?![\w'’])")
_SHORT_ANSWERS = word_set("yes yep yup yeah yea no nope nah ok sure")
_SPELLINGS = {
    **dict.fromkeys(
        [
            "yeh",
            "yeap",
            "yap",
            "yip",
            "yah",
            "yuh",
            "yis",
            "yus",
            "yas",
            "yh",
            "aye",
            "si",
            "oui",
            "ja",
        ],
        "yes",
    ),
    **dict.fromkeys(["nae", "naw", "nay", "nup"], "no"),
    **dict.fromkeys(["oki", "okey", "okie", "okies"], "ok"),
}
"""How people write yes, no and ok."""


def with_plain_answer(text: str) -> str:
    """The message, the yes or no that begins it spelt as usual: "yess", "nooo", "yeh"."""
    first = _FIRST_WORD.match(text)
    if first is None:
        return text
    word, rest = first.group().casefold(), text[first.end() :]
    once = re.sub(r"(\w)\1+", r"\1", word)
    if once in _SHORT_ANSWERS and word not in FUNCTION_WORDS:
        return f"{once}{rest}"
    alone = re.match(r"\s*(?:$|[,.!;:])", rest) is not None
    return f"{_SPELLINGS.get(word, first.group())}{rest}" if alone else text


def refers_back(text: str) -> bool:
    """Whether the message refers to something said before: "cancel it", "the same one"."""
    return _REFERENCE.search(text) is not None


def without_part(text: str, span: tuple[int, int]) -> str:
    """The message with the part at `span` blanked; the rest keeps its place."""
    start, end = span
    return text[:start] + " " * len(text[start:end]) + text[end:]


def words_without_values(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The message without the parts at `spans`, which are `[start, end)` offsets."""
    kept = list(text)
    for start, end in spans:
        kept[start:end] = " " * len(kept[start:end])
    return " ".join("".join(kept).split())


_HANDS_OVER = re.compile(
    rf"(?:(?:{_LEAD}|{_ASSENT}|i|to)"
    r" )*(?:(?:talk|speak|chat|connect|transfer|put|pass|get|give|call|need|want|"
    rf"have)(?: me| us)?(?: through| over)?"
    rf"(?: (?:to|with))? )?(?:an? |the |some ?|your |real |actual |live |human |proper )*"
    rf"(?:human|person|agent|operator|representative|rep|somebody|someone|colleague|employee|staff"
    rf"|adviser|advisor|"
    rf"manager|supervisor|human being)"
    rf"(?: (?:real|human|please|pls|now|there|instead|from (?:the|your) \w+|on the phone|who can"
    rf" help(?: me)?|thanks|"
    rf"i can (?:talk|speak) to))*"
)
_REPEATS = re.compile(
    rf"(?:(?:{_LEAD}|{_ASSENT}) )*(?:what(?: did you (?:say|ask)(?: again)?| was (?:that|the"
    r" question)(?: again)?|"
    rf" do you need(?: from me)?| again)?|huh|pardon(?: me)?|eh|"
    rf"come again|say (?:that|it) again|repeat(?: (?:that|it|the question|your question))?|once"
    rf" more|again|"
    rf"i (?:didn'?t|did not) (?:get|catch|understand) (?:that|you|the question))"
    rf"(?: (?:{_TAIL}))*"
)
_PROPOSES = re.compile(
    r"\b(?:how|what)"
    r" about\b|\b(?:ok(?:ay)?|possible|works?|fine|alright|good|doable|suit(?:s|able)?)\b(?: for"
    r" you|"
    r" with you| too| as well)?\W*\?\W*$|"
    r"^\W*(?:(?:ok(?:ay)?|so|then|well|hm+|maybe|perhaps)\W+)*(?:would|does|is|will|could)"
    r" .{1,40}\b(?:work|ok(?:ay)?|"
    r"possible|fine|do|suit)\b|"
    r"\bshall we say\b|\bwhy not\b",
    re.IGNORECASE,
)
_TAKES_BACK = re.compile(
    r"\b(?:change|wrong|different|another|other|correct|fix|update|edit|not right|incorrect|should"
    r" be|switch|move)\b",
    re.IGNORECASE,
)


_REFUSES = re.compile(
    r"\b(?:do\s?n['o]?t|do not|never|no way|keep|leave|of course not|certainly not|absolutely"
    r" not|no,? thanks?|"
    r"no thank you|not (?:any ?more|at all))\b",
    re.IGNORECASE,
)


def refuses(text: str) -> bool:
    """Whether a no is final: "don't", "never", "no thanks", "keep it"."""
    return is_cancel(text) or _REFUSES.search(text.replace("’", "'")) is not None


def wants_person(text: str) -> bool:
    """Whether a clause asks for a person to talk to, and nothing else."""
    return _says(_HANDS_OVER, text)


def wants_repeat(text: str) -> bool:
    """Whether a clause asks to hear the question again: "what?", "say that again"."""
    return _says(_REPEATS, text)


def proposes(text: str) -> bool:
    """Whether a question offers a value: "how about friday?", "is 7 ok?"."""
    return _PROPOSES.search(text) is not None


def asks_back_only(text: str) -> bool:
    """Whether a clause is a question that offers no value and wishes for nothing."""
    if proposes(text) or _OPINION.match(text):
        return False
    rest = WHAT.sub(" ", text)
    opens = asks_back(rest) and not _DO.match(rest)
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
