"""Words that say nothing: "um", "you know", a "like" that likes nothing.

They are left out once, before a message is read, so that no grammar need allow for them between
any two words.
"""

from __future__ import annotations

import re
from typing import Final

_SOUNDS: Final = r"(?:u+h+m*|u+m+|e+r+m+|(?-i:er)|e+h+m+)"
_PHRASES: Final = (
    r"(?<!\bdo )(?<!\bdid )(?<!\blet )(?<!\bif )(?<!\bas )(?<!\bn['’]t )(?<!\bto )(?<!\bshould )"
    r"you know(?! (?:what|how|where|when|who|why|if|whether|that|the|my|any|about|of)\b)"
    r"|basically|to be honest|tbh"
)
_OPENING: Final = (
    r"i mean(?!,? (?:it|the|that)\b)|so(?! (?:many|much|far|long|that|sorry|proud|happy|glad)\b)"
    r"|well(?! (?:done|behaved|known|made)\b)|like(?! (?:last|before|the last|i said|always)\b)"
)
"""Words that say nothing where a message begins with them."""

_FILLER: Final = re.compile(rf"(?<![\w'’.@/-])(?:{_SOUNDS}|{_PHRASES})(?![\w'’@/-])[,.…]*\s*", re.I)
_PAUSES: Final = re.compile(
    rf"(?<![\w'’.@/-])(?:{_SOUNDS}|^\W*(?:{_PHRASES}))(?![\w'’@/-])[,.…]*\s*", re.I
)
"""The same in what may be kept as it is."""
_FIRST: Final = re.compile(rf"^(\W*)(?:(?:{_OPENING})(?![\w'’-])[,.…]*\s+(?=\w))+", re.IGNORECASE)
_FIRST_SET_OFF: Final = re.compile(
    r"^(\W*)(?:(?:i mean|so|well|like)\s*(?:,|\.\.+|…)\s*(?=\w))+", re.IGNORECASE
)
_BETWEEN: Final = re.compile(r"(?<=\s)(?P<word>like|so|well|i mean)(?=\s)", re.IGNORECASE)
_BEFORE: Final = re.compile(
    r"(?:^|[^\w'’-])(?:a|an|the|my|our|your|this|next|of|at|on|in|for|from|to|until|till|by|past"
    r"|half|quarter|around|about|was|were|is|are|be|has|had|been|not|and|or|but)\s+$",
    re.IGNORECASE,
)
_NEXT: Final = re.compile(
    r"\s+(?:(?:about|around|at)\s+)?(?:\d|half\b|quarter\b|past\b|of\b|week\b|tomorrow\b"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day\b)",
    re.IGNORECASE,
)
"""What comes before, and after, a word that separates what belongs together."""

_MEANT: Final = re.compile(
    r"(?:\b(?:as|is|are|was|were|be|been|not|or|and|it)\s+(?:so|well)"
    r"|\b(?:to|not|and|or|but|is|are|was|were|be|been|i|we|you|they|d|would|really|also|much|looks?"
    r"|sounds?|feels?|seems?)\s+like|\b(?:not|and|or|but)\s+i mean)$",
    re.IGNORECASE,
)
"""What only seems to say nothing: "as well", "would like", "is so", "looks like"."""


def without_fillers(text: str, *, free: bool = False) -> str:
    """The message without words that say nothing.

    Args:
        text: The message.
        free: Whether it may be kept as it is: then only what can be nothing else is left out.
    """
    kept = (_PAUSES if free else _FILLER).sub(_pause, text)
    kept = (_FIRST_SET_OFF if free else _FIRST).sub(r"\1", kept)
    if not free:
        kept = re.sub(r"(?<=\S)  (?=\S)", " ", _BETWEEN.sub(_between, kept))
    return kept if re.search(r"\w", kept) else text


def _pause(match: re.Match[str]) -> str:
    """Nothing; but a pause that ended a sentence still ends it."""
    return ". " if match.start() and re.search(r"\.(?!\.)", match.group()) else ""


def _between(match: re.Match[str]) -> str:
    """Nothing, for a word that parts what belongs together: "half well past four"; else itself."""
    text, (start, end), word = match.string, match.span(), match["word"].lower()
    parts = _BEFORE.search(text, max(0, start - 12), start) or (
        word in ("like", "well") and _NEXT.match(text, end)
    )
    meant = _MEANT.search(text, max(0, start - 12), end)
    return "" if parts and not meant else match.group()
