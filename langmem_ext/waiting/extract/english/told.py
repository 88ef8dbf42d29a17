"""What a message only tells, and wants nothing of: what has happened, and what others do."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_LEADS: Final = 256
"""Words before a day that are remembered: each parameter looks at the same ones."""

_NO_WISH: Final = (
    r"(?!(?:want|need|hop|wonder|plann|book|prefer|lik|agre|arrang|suppos|schedul|reserv)ed)"
)

_DONE: Final = (
    rf"(?:{_NO_WISH}[a-z]{{2,}}(?<!e)ed|died|began|broke|bought|came|did|drank|drove|ate|fell|felt|found|gave|lost|left|made"
    r"|paid|put|ran|said|sat|saw|sent|spent|stole|took|tore|went|woke|wrote)"
)

_TOLD: Final = re.compile(
    r"\bsince\s+(?:(?:about|around|at least|last|the|on|like)\s+)*$"
    r"|\b(?:was|were|got)\s+(?!book|schedul|suppos|plann|need)[a-z]+e[dn]\b[^,.;!?]{0,20}$"
    r"|(?<!like )(?<!want )(?<!have )(?<!need )(?<!get )(?<!prefer )"
    r"(?<!can )(?<!could )(?<!will )(?<!would )(?<!may )(?<!shall )"
    rf"\b(?:i|we|he|she|it|they|you|which|who)\s+(?:(?:just|first|only|both|all|\w+ly)\s+)?"
    rf"(?:{_DONE}|(?:was|were)(?!\s+(?:\w+ing|to|due|meant|supposed|booked|scheduled|down"
    r"|for)\b))\b"
    r"(?:(?!\b(?:to|and|but|so|can|could|will|would|please|until|till?|for|by|want|need|if)\b)"
    r"[^,.;!?]){0,60}$"
    r"|\b(?:he|she|they)\s+(?:(?:have|['’]?ve|has|just)\s+)?(?:moved|sent|took|brought)\s"
    r"(?:(?!\b(?:and|but|so|can|could|will|would|please|until|till?|for|by|want|need|if)\b)"
    r"[^,.;!?]){0,40}$"
    r"|\b(?:happened|occurred|began|broke)\b[^,.;!?]{0,20}$",
    re.I,
)
"""Words before a date that tell what has happened: "we bought it on monday"."""

_OTHERS_DID: Final = re.compile(
    r"(?:\b(?:my|our|his|her|their|the)\s+(?:\w+\s+)?\w+|\bnew one)\s+"
    rf"(?:{_DONE}|was|were)\s+(?:on\s+|last\s+)?$"
    r"|\b(?:he|she|they)(?:['’]?s|['’]?re|\s+is|\s+are|\s+turns?|\s+will be)\s+(?:turning\s+)?"
    r"\d{1,2}\s+(?:on|this|next)\s+$"
    r"|\b(?:my|our|his|her|their|the)\s+\w+\s+(?:is|are|['’]s|['’]re)\s+(?:\w+\s+){0,2}"
    r"(?:till?|until)\s+$",
    re.I,
)
"""Words before a day on which something happened to somebody or something else."""


@lru_cache(maxsize=_LEADS)
def is_told_as_past(lead: str) -> bool:
    """Whether the words before a date put it into the past."""
    return _TOLD.search(lead) is not None or happened_to_others(lead)


@lru_cache(maxsize=_LEADS)
def happened_to_others(lead: str) -> bool:
    """Whether the words before a date tell what was done by others: "my gran died on"."""
    return _OTHERS_DID.search(lead) is not None


_THEY_DID: Final = re.compile(
    rf"\b(?:he|she|they)\s+(?:\w+ly\s+)?(?:{_DONE}|was|were)\b[^.,;!?]*$"
    r"|\b(?:i|we)(?:['’]?ve|\s+have)\s+been\s+(?:\w+ing|together|married)\b[^.,;!?]*$",
    re.I,
)
"""What others did, or what the user has been doing, for a length of time."""


def done_by_others(lead: str) -> bool:
    """Whether the words before a length of time tell what others did: "he drank here for"."""
    return _THEY_DID.search(lead) is not None


_SOMEBODY_IS: Final = re.compile(
    r"\b(?:i|we|he|she|they)(?:['’]?(?:m|re|s)|\s+(?:am|are|is|have|has))\s+"
    r"(?!(?:free|available|around|home|in)\b)[^.,;!?]*$",
    re.I,
)
"""Words up to a day on which somebody is, or has, something of his own."""

_BEGINS: Final = re.compile(
    r"\b(?:the|my|our|his|her|their)\s+(?:\w+\s+)?\w+\s+(?:starts?|begins?|is|ends?|opens?|leaves?)\s*$",
    re.I,
)
"""Words up to a day on which something else is: "the season starts the day after"."""

_NEXT_LED: Final = re.compile(
    r"(?:^|[,.;:!?–—-]\s*|\b(?:so|or|and|but|for|on|by|till?|until|to|from|make it|not|no|then"
    r"|maybe|actually|rather|better|say|do|i mean|meant|can be|could be|is it|about|even|want|need"
    r"|prefer|like|there|get|come|is|would be|['’]d be|['’]s|in|leave|leaving|out|back|take|home|go"
    r"|return))\s*$",
    re.I,
)
"""Words right before "the day after" where nobody else does something then: "nan flies …"."""


_ANOTHERS: Final = re.compile(
    r"\b(?:it|that)['’]?s\s+(?:(?:my|our|his|her|their)\s+)?(?!(?:not|now|for|to|best|better|easier"
    r"|possible|free|available|open|needed|wanted|due|just|only|about|on|in|at|got|meant|actually|booked|scheduled|happening|gonna|going"
    r"|definitely|moved|planned)\b)"
    r"\w+(?:\s+\w+)?\s+on\s+$",
    re.I,
)
"""Words before a day on which something else is, where a day is known: "it's swimming on"."""


_OTHERS_TELL: Final = re.compile(
    r"\W*(?:(?:as|because|since|cos|and|but|so)\s+)?(?:the|my|our|his|her|their|s?he|they)\s+"
    r"(?:\w+\s+)?(?:has|have|is|are|needs?|leaves?|ends?|starts?|finish\w*|must|can)\b",
    re.IGNORECASE,
)
"""How a part begins that tells of somebody or something else."""

_IS_NOT_UNTIL: Final = re.compile(
    r"\W*\w+\s+(?:is\s?n['’]?t|is not|is|comes|lands)\s+(?:til|till|until|on|at|not until)\b",
    re.IGNORECASE,
)
"""The same of a thing: "payday isn't till the 27th"."""


def is_day_of_others(lead: str) -> bool:
    """Whether something else is on the day that follows: "we're away", "the season starts"."""
    return bool(_BEGINS.search(lead) or not _NEXT_LED.search(lead) or _SOMEBODY_IS.search(lead))


def something_is_on(lead: str) -> bool:
    """Whether the words before a day say what is on then: "it's swimming on"."""
    return _ANOTHERS.search(lead) is not None


def tells_of_others(part: str) -> bool:
    """Whether a part of a message begins by telling of somebody or something else."""
    return _OTHERS_TELL.match(part) is not None or _IS_NOT_UNTIL.match(part) is not None
