"""Yes, no and thanks as they are meant: "yesss", "nooo", "yeh", "thnaks". English; pure."""

from __future__ import annotations

import re
from functools import lru_cache

from rapidfuzz.distance import DamerauLevenshtein

from langmem_ext.waiting.extract.english.lexicon import APPROVING, FUNCTION_WORDS, word_set

_SPELT = tuple(
    sorted(
        word
        for word in APPROVING | {"sorry", "please", "thanks", "thats", "that's"}
        if len(word) >= 5 and word not in ("sweet", "great", "grand", "confirms")
    )
)
"""Words long enough that one slip in them makes no other word."""


def plain_words(text: str) -> list[str]:
    """The words of a message in small letters, those of a yes, thanks or sorry spelt as usual."""
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
    **dict.fromkeys(["nae", "naw", "nay", "nup", "nein", "non", "nee", "nej"], "no"),
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
