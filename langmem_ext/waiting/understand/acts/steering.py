"""Messages that steer: start over, cancel, ask for a person or for the question again.

Each is judged on a whole clause: "cancel that please" cancels, "cancel order O-1" asks for
something, and an address that contains the word is an address. English; pure.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from langmem_ext.waiting.extract.english.vocabulary import stem

LONGEST_SIGNAL = 120
"""Characters of a message that only cancels or starts over, at most."""
_LEAD = (
    r"please|pls|oh|ah|u[mh]+|hm+|well|so|no|nah|nope|hey|hi|hello|sorry|actually|wait|just|then"
    r"|and|but|now|thanks|thank"
    r" you|"
    r"(?:can|could|would|will) (?:you|we|i)|let'?s|let us|i (?:want|need|wish|have) to|i(?:'d|"
    r" would) like to|i wanna|i think|"
    r"you know what|best|better|(?:i|we)(?:'ll| will)"
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


def is_reset(text: str) -> bool:
    """Whether the message wants to start over, and nothing else."""
    return _says(_RESET_SAID, text)


def is_cancel(text: str) -> bool:
    """Whether the message drops what is going on, and nothing else.

    Ask this only while something goes on, and after a confirmation: about what is done, "cancel it"
    asks for its cancellation, and as an answer to "shall I cancel it?" it is a yes.
    """
    return _says(_CANCEL_SAID, text)


_YES_FIRST = re.compile(rf"\W*(?:(?:{_ASSENT})\b\W*)+", re.IGNORECASE)


def ends_after_yes(text: str) -> bool:
    """Whether a clause says yes and drops what is going on: "yeah cancel that".

    Where an end is asked about, this is a yes.
    """
    said = _YES_FIRST.match(text)
    return said is not None and is_cancel(re.split(r"[,.;!]", text[said.end() :], maxsplit=1)[0])


_LEAVES = re.compile(
    r"\b(?:leave|forget|skip|scrap|drop)\s+(?:about\s+)?(?:(?:the|this|that|my|our)\s+"
    r"(?!time|date|day|name|number|address)(?P<matter>[a-z]+)|(?P<doing>[a-z]{3,}ing))"
    r"(?:\s+(?:it|for now|then|after all))?(?=\W*$|\s*[.,;!–—-])",
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
            if _roots(match["matter"] or match["doing"]) & matter
            else match.group()
        ),
        text,
    )


def _roots(word: str) -> set[str]:
    """The stem of a word, and the one without a doubled letter: "enrolling" is to enrol."""
    root = stem(word.lower())
    return {root, root[:-1]} if root[-2:-1] == root[-1:] else {root}


def _says(signal: re.Pattern[str], text: str) -> bool:
    if len(text) > LONGEST_SIGNAL:
        return False
    words = re.sub(r"[^\w'/]+", " ", text.lower().replace("’", "'")).strip()
    return signal.fullmatch(words) is not None


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


_ONCE_MORE = re.compile(r"\b(?:sorry|thanks|thank you) again\b", re.IGNORECASE)
"""Words that are only said once more."""


def wants_repeat(text: str) -> bool:
    """Whether a clause asks to hear the question again: "what?", "say that again"."""
    return _says(_REPEATS, text) and _ONCE_MORE.search(text) is None
