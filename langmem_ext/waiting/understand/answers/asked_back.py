"""Questions that come back to a question: "what's an order number?", "why do you need it?"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.extract.english.concepts import ASPECTS
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.understand.acts.statements import names
from langmem_ext.waiting.understand.clauses import Clause
from langmem_ext.waiting.understand.commands import Ask
from langmem_ext.waiting.understand.intents.similarity import units_of


def question_of(playbook: Playbook, session: Session, clauses: Sequence[Clause]) -> Ask:
    """The question: about the parameter that is asked for, or about something else."""
    text = " ".join(clause.text for clause in clauses if clause.act == "question")
    waiting = session.waiting_for
    if waiting and waiting != CONFIRMATION and _is_about(text, playbook.param(waiting)):
        return Ask(waiting, why="asks about what is asked for")
    return Ask(why="asks something")


def _is_about(text: str, param: Param) -> bool:
    return _MEANS.search(text) is not None or names(text, param)


_TO_KNOW: Final = re.compile(
    r"^\W*(?:(?:so|ok(?:ay)?|yes|well|please|hi|hello)\b\W*)*(?:(?:i|we)(?:['’]?d| would)?"
    r" (?:want|need|like|love) to know"
    r"|(?:please )?tell me|what (?:i am|i['’]?m) looking for is)\b",
    re.IGNORECASE,
)


def tells_what_about(text: str) -> bool:
    """Whether a message says what it is about and asks for no aspect of it, such as its price."""
    aspects = [unit for unit in units_of(text) if not ASPECTS.isdisjoint(unit.concepts)]
    return _TO_KNOW.match(text) is not None and "?" not in text and not aspects


def asks_what_it_is(playbook: Playbook, name: str | None, clauses: Sequence[Clause]) -> Ask | None:
    """The question what the awaited parameter is: "what's a tracking number?"; else None."""
    if name is None:
        return None
    param = playbook.param(name)
    for clause in clauses:
        if clause.act == "question" and (
            _WHAT_IS.match(clause.text)
            and names(clause.text, param)
            or _WHERE_IT_IS.search(clause.text)
        ):
            return Ask(name, why="asks what it is")
    return None


_WHAT_IS: Final = re.compile(
    r"^\W*(?:(?:sorry|wait|hm+|ok|and|but|um+)\W+)*(?:what(?:'s|s| is| are| does)|which|where"
    r" (?:do|can) i|"
    r"how do i (?:find|get|know))\b(?!.*\d)",
    re.IGNORECASE,
)


_WHERE_IT_IS: Final = re.compile(
    r"\b(?:where|how) (?:do|can|would|should|could) i (?:find|get|see|know|check)"
    r" (?:it|that|this)\b|\bwhat(?:'s| is|"
    r"s) (?:that|this|it)\b|\bwhat do you mean\b|"
    r"\bwhy (?:do|would) you (?:need|want|ask)\b",
    re.IGNORECASE,
)


_MEANS: Final = re.compile(
    r"\b(?:what(?:'s| is| are|s)? (?:that|this|it|those|the (?:options|choices|difference))|what do"
    r" you mean|"
    r"what does (?:that|it|this) mean|why|"
    r"how (?:do|can|would|should) i (?:find|get|know|see|check)|where (?:do|can|would|should) i"
    r" (?:find|get|see)|"
    r"where (?:is|'s) (?:it|that)|"
    r"what (?:would|do|can) you (?:suggest|recommend|have|offer)|which (?:ones?|are there|do you"
    r" have)|what (?:kinds?|"
    r"types?|options|choices)|"
    r"what can i (?:choose|pick|say)|do you (?:really )?need)\b",
    re.IGNORECASE,
)


_TOPIC: Final = re.compile(
    r"\b(?:about|topic|subject|questions?|query|enquiry|discuss)\b", re.IGNORECASE
)
_INDIRECT: Final = re.compile(
    r"\W*(?:how(?: long| much| many| often| far)?|what|when|where|why|whether|if|which \w+)\s+"
    r"(?:i|we|it|he|she|they|my|our|the|his|her|their|to)\b[^?]*",
    re.IGNORECASE,
)
"""A question that is told: "how long it takes to renew a visa"."""


def is_topic(param: Param, text: str) -> bool:
    """Whether a message says what something is about as people say it: by what they would know."""
    asked = param.type is ParamType.TEXT and _TOPIC.search(f"{param.description} {param.prompt}")
    return bool(asked) and _INDIRECT.fullmatch(text) is not None


def asks_about(playbook: Playbook, name: str, text: str, reason: str) -> Ask:
    """The question that an answer turned out to be: about the parameter, or something else."""
    return Ask(name if _is_about(text, playbook.param(name)) else None, why=reason)
