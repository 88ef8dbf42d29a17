"""Replies that are no value: yes, no, no preference, unknown, a question, another wish."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_TEXTS: Final = 64
"""Texts of which an attitude is remembered: a message is asked about it for every parameter."""

_FILLER = (
    r"^\W*(?:(?:well|hm+|um+|uh|oh|dear|so|actually|hey|hi|hello|ah|and|but|thanks|great|cool"
    r"|awesome|lol)\b\W*)*"
)
YES = re.compile(
    _FILLER + r"(?:yes|yeah|yeh|yep|yup|yea|ya|y|aye|sure|ok(?:ay)?|of"
    r" course|certainly|absolutely|definitely|def+o"
    r"|spot on|right|correct|exactly|indeed|affirmative"
    r"|perfect|fine"
    r"|great|awesome|cool|excellent|please do|go ahead|no problem|no worries|why not|sounds?"
    r" (?:good|great|fine|perfect|right|ok(?:ay)?)"
    r"|(?:that|this|it)(?:'s| is| was| would| will|'ll|'d| sounds?| works?)?(?: be| do)?"
    r"(?: just| all)?(?: fine| good| great| ok(?:ay)?| right| correct| perfect| true| work| works"
    r"| nice| cool| alright| do"
    r"| sounds good)?(?=\W*(?:$|[.,!;]|for me|with me|please|by me))"
    r"|i (?:do|am|would|will|agree|accept|confirm)(?=\W*(?:$|[.,!;])|\s+(?:please|like that|want"
    r" that|love))|i(?:'d| would) (?:love"
    r"|like) (?:to|that)(?=\W*(?:$|[.,!;]))"
    r"|i['’]?d better(?=\W*(?:$|[.,!;]))"
    r"|alright|all right|sounds good|works for me|(?:i )?don'?t mind|i(?:'m| am)"
    r" (?:ok(?:ay)?|fine|good|cool|happy|comfortable) with)\b",
    re.I,
)
NO = re.compile(
    _FILLER + r"(?:no|nope|nah|nay|n|(?:of"
    r" course|absolutely|certainly|definitely|probably|surely|sure|better|maybe|perhaps"
    r"|hopefully) not"
    r"|not really|not at all|negative|never|i don'?t(?! mind| care| know| have| remember)"
    r"|i do not(?! mind| care| know| have)"
    r"|i(?:'d| would) (?:rather|prefer) not(?: to)?|please don'?t|don'?t|not necessary|no"
    r" thanks?|no thank you|i'm not|i am not|it(?:'s"
    r"| is) not|neither)"
    r"\b(?!\W*(?:problem|worries|issue|preference|specific|particular|idea|matter|need to worry))",
    re.I,
)
LATER = re.compile(
    r"\b(?:not (?:now|yet|today|right now|at the moment|for now|this time)|maybe later|later,?"
    r" (?:please|maybe)|another time"
    r"|no,? thanks?(?: you)?|nothing(?! like\b)(?: else)?"
    r"|that'?s (?:all|it)|that is (?:all|it)|that will be all|i'?m (?:good|done|all"
    r" set)|nevermind|never mind)\b",
    re.I,
)
_BOTH = re.compile(r"\W*yes or no\b", re.I)
_WHY_NOT = re.compile(r"\W*why not\b", re.I)
_THANKS = re.compile(r"\bno,? thanks?(?: you)?\b", re.I)
_DONTCARE = re.compile(
    r"\b(?:(?:do(?:n['’]?t| not)|dont|doesn['’]?t|does not|wouldn['’]?t) (?:really |actually"
    r" |particularly |much )?(?:care|mind(?! (?:a"
    r"|the|if|shar))|matter)"
    r"|no (?:real |special |strong |big |particular |specific"
    r" )?(?:preference|preferences|particular|specific|certain|issue"
    r"|requirements?|restrictions?)\b|"
    r"(?:don['’]?t|do not|dont) have (?:a |any |a particular |a specific |much )?(?:\w+"
    r" )?preferences?|not (?:particular|picky|fussy"
    r"|important)|irrelevant"
    r"|(?<!in case )(?<!if )(?:any(?:thing|where|time|one|body)?|either|whichever|whatever"
    r"|whoever|wherever"
    r"|whenever)\b(?!"
    r" (?:else|other|in|with"
    r"|of (?:these|them|those) in|\w+ in)\b)"
    r"(?= *(?:$|[.,!?;]|one\b|is\b|will\b|would\b|works?\b|suits?\b|you\b|do(?:es)?\b|sounds?\b"
    r"|goes\b|kind|type|part|area|sort|range|price"
    r"|of (?:them|those)|food|cuisine|city|place|please|that (?:is|works|you)|day|time|\w+"
    r" (?:is|will|would|works?|please|range|of)\b"
    r"|\w+\W*$))"
    r"|you (?:can )?(?:choose|decide|pick)|(?:your|ur) (?:choice|call)|up to you|surprise me|all"
    r" the same|makes? no difference|i(?:'m"
    r"| am) (?:flexible|open|easy)"
    r"|no matter|i am open to (?:any|all)|open to any)",
    re.I,
)
_NOT_ANY = re.compile(r"\b(?:do(?:es)?\s?n['’]?t|do(?:es)? not|never)\s+(?:\w+\s+){1,2}$", re.I)
"""Words that forbid: "don't send anyone"."""
_LACKS = re.compile(
    r"(?<!it )(?<!they )(?<!which )\b(?:(?:do(?:n['’]?t| not)|dont|can(?:'|’)?t|cannot|can"
    r" not|couldn['’]?t|didn['’]?t|haven['’]?t|have not|never|won['’]?t|will not"
    r"|wouldn['’]?t) (?:really |seem to |quite |actually |currently |even )*"
    r"(?:have|know|remember|recall|find|got|get|say|tell|give|share|provide|disclose|locate|think"
    r" of)\b(?!\W+(?:if|a preference"
    r"|any preference|time|to)\b)"
    r"|(?:not|un)\s?sure(?! if)|no idea|no clue|idk|dunno"
    r"|(?<!nearly )(?<!almost )forgot(?:ten)?|i lost"
    r"|i(?:'ve| have) lost|misplaced|rather not|prefer not|without (?:it"
    r"|one|them)"
    r"|none of your business|not (?:comfortable|willing|able|available)|unable to|skip"
    r" (?:it|this|that)|isn['’]?t (?:handy|available"
    r"|with me)|(?:don['’]?t|do not) want to (?:say|tell|give|share|answer))",
    re.I,
)
_ASKS = re.compile(
    r"^\W*(?:(?:well|hmm+|um+|uh|oh|so|ok(?:ay)?|yes|yeah|no|sure|actually|sorry|and|but|great"
    r"|please|thanks?|also|wait|hi|hello|hey"
    r"|first(?: of all)?|before that)\b\W*)*"
    r"(?:wh?dym|what(?! about|ever| (?:i|we) (?:really |actually )?(?:need|want))(?:'?s)?"
    r"|why(?! not)|how(?!"
    r" about| (?!much|many|long|far|often|old|big|come|so|soon|early"
    r"|late)\w+[\s.!]*$)(?:'?s)?|who(?:'?s|se)?|(?:where|when)(?:'?s)?(?! (?:i|we|he|she|they"
    r"|it|the|my|our"
    r"|his|her|their) [^?,]{1,60},[^?]*$)|which|whom|am i"
    r"|(?:is|are|has|was(?! (?:(?!any|some|every|no)\w+ing|both|all|\d+)\b)"
    r"|were(?= (?:you|they|there|these|those|any|the|my|our|his|her|your|it|he|she|i|we)\b))"
    r"(?! (?:to|been|got|gone|going|fine|ok(?:ay)?|good|great|perfect|best"
    r"|better|not|too|about|only|just|also)\b)"
    r"|do(?! (?:it|that|so|not|them|me|both|my|another|one|two|three|\d+"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b| the \d| (?-i:[A-Z])[a-z]|\W*$|\s*[,.;!])"
    r"|does|did|have you|have they"
    r"|should i|must i|will (?:it|that|there|they|this)|would (?:it|that|there) (?:cost|be"
    r" (?:possible to|any))|any (?:other|more)"
    r"|anything (?:else|more)"
    r"|(?:can|could|would|will) you (?:please"
    r" )?(?:explain|repeat|say|clarify|help|provide|share|list|describe|remind|let me know)"
    r"|(?:tell|give) me (?:the|their|its|more|about|some more)|i(?:'d| would)? (?:like to|want"
    r" to|wanna|need to) know"
    r"|let me know (?:what|how|which|the|when|where|who))\b",
    re.I,
)
_SOFT = re.compile(
    r"^\W*(?:(?!(?:what|how|when|where|who|which|why)\b)\w+\W+){0,3}?(?:can|could|may|would|will)"
    r" (?:i|we|you|u|it|he|she|they|some(?:body|one))\b",
    re.I,
)
_PREFERENCE = re.compile(
    r"\b(?:prefer\w*|in mind|particular|specific|certain|any (?!other)|interested in|looking"
    r" for|would you like|favou?rite)\b",
    re.I,
)
_NONE = re.compile(
    r"\b(?:(?:do not|don['’]?t|dont) (?:really )?have (?:an?y?|one)\b|no"
    r" (?:certain|price|particular|specific)\b|none\b)",
    re.I,
)
_OTHER_WISH = re.compile(
    r"^\W*(?:(?:please|well|ok(?:ay)?|actually|no|sorry|hey|oh|wait|now|also|and|but|first|then|hi"
    r"|hello|can"
    r" you|could you|would you"
    r"|will you|i want to|i wanna|i(?:'d| would) like to|i need to"
    r"|let(?:'s| us)|i|to|just)\b\W*)*"
    r"(?:cancel(?:l?ing)?|stop|quit|exit|abort|forget (?:it|about|that)|never\s?mind|start"
    r" (?:over|again)|restart|reset|go back|undo"
    r"|leave it|drop it|human|agent|operator|representative"
    r"|(?:talk|speak) (?:to|with)|(?:transfer|connect) me|change (?:my|the|it|that)|update"
    r" (?:my|the)|track|refund|complain|goodbye"
    r"|good\s?bye|bye"
    r"|(?:help|thanks?(?: you)?|thank you|(?:hello|hi|hey)(?: there| you)?"
    r"|good (?:morning|afternoon|evening)|that'?s (?:all|it|everything)|that is (?:all"
    r"|it|everything)|i'?m done|nothing(?: else)?|what|huh|sorry|pardon"
    r"|whatever|ok(?:ay)?|sure|yes|no|fine|please)(?=\W*$))"
    r"(?!\w)",
    re.I,
)


_LOOKS = r"(?:just )?(?:check|look|dig|think|search|find|ask|get|grab|see|go|fetch|scroll)"
_STALL = re.compile(
    r"\W*(?:(?:oh|ok(?:ay)?|sorry|yes|well|um+|just)\b\W*)*(?:"
    r"(?:(?:hang|hold) on|wait|sec|bear with me"
    r"|(?:one|two|an?|1|2|half a) (?:sec(?:ond)?|min(?:ute)?|moment|mo|tick)s?"
    r"|(?:give me|wait|just) (?:an?|one|two) \w+)(?:\W+(?:please|pls))?"
    rf"(?:[\s,]+(?:while )?(?:i['’]?m |i am |let me |i['’]?ll |i(?: need| have) to )?(?:still )?"
    rf"(?:{_LOOKS}(?:t?ing|ging)?)\b[^.!?;\n]*)?"
    rf"|(?:let me|i['’]?ll(?: have to)?|i will) {_LOOKS}\b[^.!?;\n]*)\W*",
    re.I,
)


def stalls(text: str) -> bool:
    """Whether a sentence only asks for time: "hang on, digging through my bag"."""
    return _STALL.fullmatch(text) is not None


_NO_MORE = re.compile(r"\bthat['’]?s (?:all|it)\b|\bthat is (?:all|it)\b", re.I)
"""What closes a yes, and puts nothing off."""


def says_yes(text: str) -> bool:
    """Whether the message begins by agreeing."""
    return YES.match(text) is not None and not (
        NO.match(text) or LATER.search(_NO_MORE.sub(" ", text[:40])) or _BOTH.match(text)
    )


def says_no(text: str) -> bool:
    """Whether the message begins by refusing."""
    return NO.match(text) is not None and not _WHY_NOT.match(text)


def postpones(text: str) -> bool:
    """Whether the message leaves the question for later: "not now"."""
    return LATER.search(_THANKS.sub(" ", text)) is not None


@lru_cache(maxsize=_TEXTS)
def puts_off(text: str) -> bool:
    """Whether the message closes or postpones the subject: "not now", "no thanks"."""
    return LATER.search(text) is not None


@lru_cache(maxsize=_TEXTS)
def does_not_care(text: str) -> bool:
    """Whether any value will do for the user."""
    return any(
        not (match.group().lower().startswith("any") and _NOT_ANY.search(text, 0, match.start()))
        for match in _DONTCARE.finditer(text)
    )


def asks_preference(prompt: str) -> bool:
    """Whether a question asks what the user would like, and not for a fact."""
    return _PREFERENCE.search(prompt) is not None


@lru_cache(maxsize=_TEXTS)
def has_none(text: str) -> bool:
    """Whether the user has none of what was asked for."""
    return _NONE.search(text) is not None


@lru_cache(maxsize=_TEXTS)
def lacks(text: str) -> bool:
    """Whether the user does not have the value, does not know it or will not give it."""
    return _LACKS.search(text) is not None


@lru_cache(maxsize=_TEXTS)
def asks_back(text: str) -> bool:
    """Whether the message or sentence asks instead of answering.

    A wish in the form of a question ("Can you try X?") does not.
    """
    return _ASKS.match(text) is not None


@lru_cache(maxsize=_TEXTS)
def wishes_by_asking(text: str) -> bool:
    """Whether the message wishes by asking ("Can I get a table at X?"); it may hold a value."""
    return _SOFT.match(text) is not None


@lru_cache(maxsize=_TEXTS)
def wants_other(text: str) -> bool:
    """Whether the message wants something else done, or greets, thanks or leaves."""
    return _OTHER_WISH.match(text) is not None
