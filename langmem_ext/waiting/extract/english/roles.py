"""Which of a pair a value is: the words before it that say "from" or "to"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from langmem_ext.waiting.catalog.param import Param, Role
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.english.tokens import before
from langmem_ext.waiting.extract.english.vocabulary import own_stems, stem
from langmem_ext.waiting.extract.reply import Reply


@dataclass(frozen=True, slots=True)
class Cues:
    """Expressions that mark a role.

    `near` ones count only directly before the value, `far` ones anywhere since the last value.
    """

    near: re.Pattern[str]
    far: re.Pattern[str]


def _cues(near_from: str, near_to: str, far_from: str, far_to: str, whose: str = "") -> Cues:
    article = rf"(?:\s+(?:the|a|an|about|around|city of|town of|city|like|maybe))*{whose}\s*$"
    return Cues(
        re.compile(rf"\b(?:(?P<from>{near_from})|(?P<to>{near_to})){article}", re.I),
        re.compile(rf"\b(?:(?P<from>{far_from})|(?P<to>{far_to}))\b", re.I),
    )


DATE_CUES = _cues(
    "from|starting|beginning|since",
    "to|until|till|through|thru|til|ending|by",
    r"from|pick(?:ing|ed)?(?:\s+\w+){0,3}?\s+up|pickup|pick|leav(?:e|ing)|depart(?:ing|ure|s)?"
    r"|check(?:ing)?[\s-]*in|start(?:ing|s)?"
    r"|begin(?:ning|s)?"
    r"|outbound|heading out|fly(?:ing)? out|arriv(?:e|ing|al)|going",
    r"until|till|til|return(?:ing|s)?|back|drop(?:ping|ped)?(?:\s+\w+){0,3}?\s+off|dropoff"
    r"|check(?:ing)?[\s-]*out|end(?:ing|s)?"
    r"|inbound|keep(?:ing)?",
)
TIME_CUES = _cues(
    "from|starting|beginning",
    "to|until|till|til|ending|by",
    r"from|start(?:ing|s)?|begin(?:ning|s)?|pick(?:ing)?(?:\s+\w+){0,3}?\s+up|depart(?:ing|ure)?"
    r"|leav(?:e|ing)",
    r"until|till|til|end(?:ing|s)?|return(?:ing)?|back|drop(?:ping)?(?:\s+\w+){0,3}?\s+off"
    r"|arriv(?:e|ing|al)",
)
_WHOSE = (
    r"(?:(?:(?<=from)|(?<=to))(?!\s+(?:be|go|come|get|have|take|bring|pick|collect|fetch|deliver|send|drop"
    r"|leave|book|order|move|see|meet|start|arrive|do)\b)"
    r"(?:\s+(?!(?:to|from)\b)[\w'’]+){1,4}?(?:\s*,|\s+(?:at|in|on)))?"
)
"""Whoever lives at a place, or what is there: "to my mum, 118 Castle Hill"."""

PLACE_CUES = _cues(
    "from|leaving|leave|departing|depart|out of|off",
    "to|into|towards?|for|visit|visiting|reach|via to",
    r"from|leav(?:e|ing)(?!\s+for)|depart(?:ing|ure|s)?(?!\s+for)|origin|start(?:ing)?|pick(?:ing"
    r"|ed)?(?:\s+\w+){0,3}?\s+up|pickup"
    r"|board(?:ing)?|originat\w+|out of|collect(?:ing|ed|ion|s)?|fetch(?:ing|ed)?",
    r"destination|head(?:ing|ed)|arriv(?:e|ing|al)|going|go|end(?:ing)?"
    r" up|reach|get(?:ting)?(?=\s+to)|visit(?:ing)?"
    r"|travel(?:l?ing)?\s+to|fly(?:ing)?\s+to"
    r"|drop(?:ping|ped)?(?:\s+\w+){0,3}?\s+off|need to be|towards?|to be|deliver(?:y|ed|ing)?",
    _WHOSE,
)


def role_before(segment: str, cues: Cues) -> Role | None:
    """The role that the words before a value give it; None when they give none."""
    match = cues.near.search(segment)
    if not match:
        match = next(reversed(list(cues.far.finditer(segment))), None)
    if not match:
        return None
    return "from" if match["from"] else "to"


def asked_roles(prompt: str, cues: Cues) -> set[Role]:
    """The roles that a question names."""
    return {"from" if match["from"] else "to" for match in cues.far.finditer(prompt)}


def with_roles(
    param: Param, reply: Reply, candidates: Sequence[Candidate], cues: Cues
) -> list[Candidate]:
    """The candidates, moved by the cues for the parameter's role.

    The same role raises the fit by 2; the other role puts it below 0 when that is certain.

    The words by which a parameter differs from the others of its type come before general cues:
    "collecting her on sunday".
    """
    if not candidates:
        return []
    if named := _stated(param, reply.text, candidates):
        return named
    if named := _by_own_words(param, reply, candidates):
        return named
    if param.role is None:
        return list(candidates)
    contested = any(
        other.type == param.type and other.role not in (None, param.role) for other in reply.others
    )
    judged: list[Candidate] = []
    previous = 0
    for candidate in candidates:
        segment = reply.text[max(previous, candidate.start - 150) : candidate.start]
        role = role_before(segment, cues)
        opposite = role not in (None, param.role) and (
            contested or cues.near.search(segment) is not None
        )
        judged.append(
            candidate.moved(-candidate.fit - 2 if opposite else 2 if role == param.role else 0)
        )
        previous = candidate.end
    return _by_order(param, reply, judged, cues) if contested else judged


def _stated(param: Param, text: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, the stated one raised: "so my last day off is the thursday".

    Empty when the message does not state exactly one.
    """
    own = own_stems(param)
    led = [
        (candidate, _IS.search(text, max(0, candidate.start - 80), candidate.start))
        for candidate in candidates
        if _STATES.search(before(text, candidate.start))
    ]
    stated = [
        candidate
        for candidate, match in led
        if match and own <= {stem(word) for word in match["what"].lower().split()}
    ]
    if len(own) < 2 or len(stated) != 1:
        return []
    return [candidate.moved(3 if candidate is stated[0] else 0) for candidate in candidates]


_STATES = re.compile(r"\b(?:is|be)\s+(?:(?:on|the|at)\s+)*\Z", re.I)
_IS = re.compile(
    r"(?P<what>(?:\b[^\W\d_]+\s+){1,5})(?:is|will be|would be|should be)\s+(?:(?:on|the|at)\s+)*\Z",
    re.I,
)


def _by_order(param: Param, reply: Reply, judged: list[Candidate], cues: Cues) -> list[Candidate]:
    """The candidates, moved by their order where no cue decides.

    The first of two is where something begins, the last where it ends. A lone one is the beginning
    when both were asked for.
    """
    neutral = [candidate for candidate in judged if 0 <= candidate.fit < 2]
    if not neutral:
        return judged
    if len(judged) == 1:
        both = len(asked_roles(reply.prompt, cues)) != 1
        return [replace(judged[0], fit=-1)] if both and param.role == "to" else judged
    likely = neutral[0] if param.role == "from" else neutral[-1]
    return [candidate.moved(1) if candidate is likely else candidate for candidate in judged]


def _by_own_words(param: Param, reply: Reply, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates, moved by the words before them that name one of several parameters.

    Only words that distinguish parameters of the same type count; empty where they move no
    candidate.
    """
    others = [
        other for other in reply.others if other.type == param.type and other.name != param.name
    ]
    theirs = frozenset[str]().union(*map(own_stems, others)) if others else frozenset()
    own = own_stems(param)
    if not others or not (own - theirs or theirs - own):
        return []
    judged: list[Candidate] = []
    previous = 0
    for candidate in candidates:
        segment = reply.text[max(previous, candidate.start - 60) : candidate.start]
        words = {stem(word) for word in re.findall(r"[^\W\d_]+", re.split(r"[.;!?]", segment)[-1])}
        mine, other = bool(words & (own - theirs)), bool(words & (theirs - own))
        judged.append(
            candidate.moved(
                3 if mine and not other else -candidate.fit - 2 if other and not mine else 0
            )
        )
        previous = candidate.end
    return (
        judged
        if any(
            candidate.fit != after.fit for candidate, after in zip(candidates, judged, strict=True)
        )
        else []
    )
