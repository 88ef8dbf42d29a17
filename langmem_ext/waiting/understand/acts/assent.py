"""Yes and no, in whatever words, and what else is said beside them. English; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.english.attitude import NO, asks_back
from langmem_ext.waiting.extract.english.lexicon import APPROVING, FUNCTION_WORDS, word_set
from langmem_ext.waiting.extract.english.vocabulary import own_stems, stem
from langmem_ext.waiting.understand.acts.spelling import plain_words
from langmem_ext.waiting.understand.acts.statements import (
    ADDING,
    DOUBT,
    REMARKS,
    SEGMENT,
    WISHES,
    is_question,
    refers_back,
    tells,
)
from langmem_ext.waiting.understand.acts.steering import is_cancel

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
_GO_AHEAD = re.compile(
    r"\b(?:go ahead|go for it|go on|do (?:it|that|so|the needful)|carry on|that'?s (?:it|the"
    r" one|all right)|(?:please|"
    r"kindly) do|make it so|"
    r"(?:sounds|looks|works|seems) (?:good|great|fine|right|perfect|ok(?:ay)?|for me|for us)|works"
    r" for (?:me|us)|that (?:works|does it|would work|'ll do|will do)|"
    r"of course|by all means|no need to change|that'?ll do|bang on|lgtm|sure thing|you got it"
    r"|as it should be|all in order|that['’]?s (?:me|us|them)(?=\W*(?:$|[,.!]))"
    r"|(?:order|book|fire) away|crack on|thumbs up|happy with (?:that|this|it))\b"
    r"|\b(?:it is|i do|do please)\W*$|^\W*please\W*$|[👍👌✅]",
    re.IGNORECASE,
)
_WITH_A_YES = frozenset(
    word.replace("'", "") for word in (FUNCTION_WORDS - DOUBT - _TURNING) | _AGREEING
) | word_set(
    "it thats would be that is was quite very much really so all lot go ahead on for do the needful"
    " kindly looks sounds works seems sound look work forward many wonderful kind one better thats"
    " its thank im were happy glad pleased yay phew love like wow oh thatll job obliged"
    " again order god x u away lifesaver bless crack"
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
_DO_NOT = re.compile(r"^\W*(?:please\W+)?do not\b", re.IGNORECASE)
_FLAT_NO = re.compile(
    r"^\W*(?:(?:oh|well|um+|hm+|sorry|actually|please|but)\b\W*)*(?:no|nope|nah|nay)"
    r"(?=\W*$|\s*[.,;:!–—-]|\s+(?:stop|i|i'm|it|it's|keep|leave|do|don't|we|you|that|that's|this|my"
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
    text = _THAT_TOO.sub(
        " ", _ALSO_RIGHT.sub(lambda match: match["right"] or "", _LOOKS_FORWARD.sub("", text))
    )
    words, again = plain_words(text), _said_again(prompt) | {_REPEATED}
    if not words and re.search("[👎❌]", text):
        return False
    if words in (["true"], ["false"]):
        return words == ["true"]
    if "?" in text:
        return None
    if refused := NO.match(text) or _DO_NOT.match(text):
        return False if set(plain_words(text[refused.end() :])) <= _REFUSING | again else None
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
    r"(?<=\w)[\s,.!–—-]+(?:(?:i|we)\s+(?=can|look))?"
    r"(?:can['’]?t wait|cannot wait|looking forward(?: to it)?"
    r"|as (?:it|they) should be|(?:quick(?:ly)? )?before (?:i|we|he|she|they|it)\b[^.?!\d]*)\W*$",
    re.IGNORECASE,
)
"""What changes nothing behind a yes."""
_ALSO_RIGHT = re.compile(
    r"\btoo (?=right\b)|\b(?P<right>(?:that|this|it)['’]?s (?:all"
    r" )?(?:right|fine|good|correct|ok(?:ay)?|great|perfect)) too\b",
    re.IGNORECASE,
)
_THAT_TOO = re.compile(
    r"(?<=\w)[\s,.;:!–—-]+(?:and )?(?:(?:that|this)(?: one)?|him|her|them|those|both)"
    r" (?:too|as well)\b(?=\W*$)",
    re.IGNORECASE,
)
_OPEN_STILL = re.compile(
    r"\b(?:change|wrong|different|another|other|update|edit|incorrect|should|ask|check|think|wonder"
    r"|forgot|call|hope|old|name)\b",
    re.IGNORECASE,
)


def repeats_order(text: str, question: str) -> bool:
    """Whether a message only repeats the proposed action: "submit" to "CC114 for 84. Submit?"."""
    proposed = [part for part in re.split(r"[.:;,]\s+", question) if re.search(r"\w", part)][-1:]
    words = set(plain_words(text)) - _AGREEING
    verb = next(
        (word for word in plain_words(" ".join(proposed)) if word not in FUNCTION_WORDS), None
    )
    return (
        (verb in words or {"it", verb} <= set(plain_words(text)))
        and "?" not in text
        and words <= _said_again(" ".join(proposed))
        and not is_cancel(text)
    )


_YES_FIRST = re.compile(
    r"\W*(?:(?:oh|ah|aw+|omg|um+|uh|hm+|well|so|haha|lol|no problem|np|sadly|unfortunately|alas"
    r"|(?:i['’]?m )?afraid(?: so)?|it is|if (?:i|we) must)\b\W*)*"
    r"(?:(?P<yes>yes|yeah|yep|(?<=afraid )so|sorted|let['’]?s go+|yup|yea|ya|yas|ye|aye"
    r"|correct|exactly|perfect"
    r"|go ahead|go for it"
    r"|that['’]?s (?:right|correct|it|fine|perfect|the one))|sure|ok(?:ay)?|right|fine)\b",
    re.IGNORECASE,
)
_FEW_WORDS = 6
"""Words of a message that begins with less than a plain yes, at most."""


def begins_with_yes(text: str) -> bool:
    """Whether a message says yes first, and nothing that takes it back or asks for more.

    Its other words may be any, misspelt ones too: "yes srory abuot short notice".
    """
    if "?" not in text and _YES_LAST.search(text) and not re.search(r"\d", text):
        return True
    if "?" not in text and _AND_DO_NOT.match(text) and not re.search(r"\d", text):
        return True
    words = " ".join(plain_words(_THANKED.sub("", text)))
    first = _YES_FIRST.match(words)
    if first is None or "?" in text:
        return _says_yes_apart(text)
    rest = words[first.end() :]
    plain = _PLAIN_YES.match(text) is not None
    doubts = (_TAKING_BACK if plain else DOUBT | _TURNING | ADDING) - _HARMLESS
    wished = WISHES.search(_PLEASE.sub("", rest)) or _AND_MORE.search(rest)
    more = wished or re.search(r"\d", rest) or _OPEN_STILL.search(rest)
    few = first["yes"] is not None or len(words.split()) <= _FEW_WORDS
    return few and doubts.isdisjoint(rest.split()) and not more and not asks_back(rest)


_TAKING_BACK = word_set(
    "but if unless not except wait instead only don't can't won't dont cant wont"
)
"""Words after a yes that take it back: "yes but not on friday"."""
_YES_LAST = re.compile(r"\b(?:but|so) (?:yes|yeah|yep)\W*$", re.IGNORECASE)
"""How a message ends that says yes after all: "unlucky for some but yes"."""
_AND_DO_NOT = re.compile(
    r"\W*(?:yes|yeah|yep|yup|perfect|lovely)\W+(?:(?:and|but|just|pls|please|sh+)\W+)+"
    r"(?:don['’]?t|do not|never) (?:ring|call|phone|text|tell|wake|knock|forget|put it on the \w+"
    r" board)\b(?!.*\b(?:yet|until|till|before|unless|if)\b)[^.!?]*(?:[.!?]\W*)?$",
    re.IGNORECASE,
)
"""A yes with something that is not to be done besides: "yes, and pls don't ring the house"."""
_PLAIN_YES = re.compile(
    r"\W*(?:yes|yeah|yep|yup|yea|aye)(?: (?:love|dear|mate|pal|hun|darling|duck))?\s*[.,!]+\s"
    r"|\W*(?:yes|yeah|yep) (?:book|do|send) it\b",
    re.IGNORECASE,
)
"""A sentence that is a yes: what follows is another, "yes. unlucky for some eh"."""
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
    parts = [part for part in SEGMENT.split(text) if re.search(r"\w", part)][:_FEW_WORDS]
    agreeing = [part for part in parts if yes_or_no(part, (), "")]
    rest = " ".join(plain_words(" ".join(part for part in parts if part not in agreeing)))
    rest = _EXCLAIMS.sub(" ", rest)
    turned = (DOUBT | _TURNING | ADDING) - _HARMLESS
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


def _only_remarks(text: str, again: AbstractSet[str]) -> bool:
    """Whether a message agrees first, and then only remarks: "yes, it's for my mother"."""
    agreed = False
    for segment in SEGMENT.split(text):
        words = [word.replace("'", "") for word in plain_words(segment)]
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
            (tells(rest) or REMARKS.match(rest))
            and not (re.search(r"\d", rest) or _OPEN_STILL.search(rest))
            and _REPEATED not in rest
        )
        if (
            not (agreed and remark)
            or not DOUBT.isdisjoint(set(words) - {"sorry", "so"})
            or not ADDING.isdisjoint(words)
        ):
            return False
    return agreed


def _said_again(prompt: str) -> frozenset[str]:
    """The words of a question that its answer may repeat; none of one that leaves a choice."""
    asked = frozenset(plain_words(prompt))
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
        set(plain_words(text)),
        _said_again(prompt),
    )
    known = (
        _VALUE_ALONE
        | again
        | (FUNCTION_WORDS - ADDING)
        | (_WISHING if words & again else frozenset())
    )
    return not is_question(text) and all(word in known or stem(word) in own for word in words)
