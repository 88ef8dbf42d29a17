"""Messages that name a request and do not plainly ask for it: "don't cancel it", "who booked it?".

English; pure.
"""

from __future__ import annotations

import re
from typing import Final

_DENIED: Final = (
    r"\b(?:do\s?n['’]?t|do not|does\s?n['’]?t|did\s?n['’]?t|must(?:\s?n['’]?t| not)|never)\s+"
    r"(?!(?:mind|worry|forget|care|know|have|see|hesitate)\b)"
    r"|\bmust not\b|\bnot (?:yet|now)\b|\bno (?:need|longer)\b|\bany ?more\b"
)
_CONDITION: Final = (
    r"\b(?:unless|otherwise|thinking (?:of|about))\b|\bwithout (?:a |any )?(?:fee|charge|cost)\b"
    r"|\bif (?!(?:possible|poss|ok|you|that['’]?s|it['’]?s (?:ok|fine|possible|not)"
    r"|i (?:can|may|could)|there['’]?s|there is|u)\b)"
)
_ASKED: Final = (
    r"\b(?:who|why|how (?:much|many|come)|what happens"
    r"|did (?:you|i|we|he|she|they|some\w+|any\w+)|(?:have|has) (?:you|some\w+|any\w+))\b"
)
_TOLD: Final = (
    r"\b(?:i|we|you|he|she|they|some(?:body|one)|my \w+)(?:['’]ve| have| has| had)? (?:already )?"
    r"(?:booked|ordered|cancel+ed|sent|reserved|reported)\b"
)
_HEDGED: Final = re.compile("|".join((_DENIED, _CONDITION, _ASKED, _TOLD)), re.IGNORECASE)


def is_hedged(text: str) -> bool:
    """Whether a message denies what it names, makes a condition, asks about it, or tells of it.

    Nothing is done for it that the user has not seen first.
    """
    return _HEDGED.search(text) is not None
