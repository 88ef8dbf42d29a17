"""Corrected spelling: of words of closed classes, and of a catalog's own words.

"satuday", "quartr", "tmrw", "dont" are of closed classes; in "emial" two letters of a catalog's
word have changed places, in "pasport" one is missing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rapidfuzz.distance import DamerauLevenshtein

from langmem_ext.waiting.extract.english.concepts import WORDS as CONCEPTS
from langmem_ext.waiting.extract.english.lexicon import APPROVING, FUNCTION_WORDS, VERBS
from langmem_ext.waiting.extract.numbers.numerals import TENS, UNITS

_SHORT = {
    short: "tomorrow"
    for short in (
        "tmrw",
        "tmr",
        "tmw",
        "tmrrw",
        "tmoro",
        "tomoz",
        "tomo",
        "tomm",
        "2moro",
        "2morrow",
        "2mrw",
        "tommorw",
    )
} | {
    "2day": "today",
    "2nite": "tonight",
    "2night": "tonight",
    "tonite": "tonight",
    "weds": "wednesday",
    "wens": "wednesday",
}
_SHORTENED = (
    "its=it's thats=that's whats=what's wheres=where's hows=how's whos=who's shes=she's"
    " hes=he's theres=there's theyre=they're youre=you're im=i'm ive=i've weve=we've"
    " youve=you've dont=don't cant=can't wont=won't didnt=didn't doesnt=doesn't isnt=isn't"
    " wasnt=wasn't arent=aren't couldnt=couldn't wouldnt=wouldn't havent=haven't hasnt=hasn't"
    " lets=let's u=you ur=your r=are cud=could wud=would shud=should wot=what wat=what"
    " cos=because coz=because cuz=because pls=please plz=please thx=thanks srry=sorry sry=sorry"
    " some1=someone any1=anyone every1=everyone apil=april apr=april nxt=next wk=week"
    " morn=morning aft=afternoon teh=the adn=and yse=yes fuor=four fvie=five sevne=seven"
    " abuot=about recieve=receive"
)
_SHORT |= dict(pair.split("=") for pair in _SHORTENED.split())
_NAMES = (
    *(
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "tomorrow",
        "yesterday",
    ),
    *("january", "february", "august", "september", "october", "november", "december"),
    "morning",
    *("quarter", "eleven", "twelve", "thirteen", "fifteen", "twenty", "afternoon", "evening"),
    *("tonight", "sorry", "please", "actually", "instead", "correct", "because", "already"),
)
"""Words long enough that a slip in one of them makes no other word."""

_OTHERS = frozenset(
    (
        "sundry",
        "sundae",
        "sundaes",
        "mondays",
        "fridays",
        "sundays",
        "augustus",
        "auguste",
        "augusta",
        "mandate",
        "mourning",
        "quartet",
        "quarters",
        "eleventh",
        "twelfth",
        "thirteenth",
        "fifteenth",
        "evenings",
        "afternoons",
        "corrects",
        "pleased",
        "pleases",
    )
)
_WORD = re.compile(r"(?<![\w'’.@/-])[2A-Za-z][a-z]{0,8}1?[a-z]{0,4}(?![\w'’@/-]|\.\w)", re.I)


@lru_cache(maxsize=4096)
def _meant(word: str) -> str | None:
    """The name that a word in small letters most likely misspells; None where it misspells none."""
    if word in _SHORT:
        return _SHORT[word]
    if len(word) < 5 or word in _OTHERS or word in _NAMES:
        return None
    for name in _NAMES:
        if word[0] == name[0] and word not in (f"{name}s", name):
            distance = DamerauLevenshtein.distance(word, name, score_cutoff=2)
            if distance <= (2 if len(name) >= 8 else 1):
                return name
    return None


_SLIPS = 5
"""Letters of a word of the catalog in which a slip makes no other word, at least."""


@lru_cache(maxsize=4096)
def _slipped(word: str, words: frozenset[str]) -> str | None:
    """The one word of a catalog in which two letters changed places, or one is missing or double.

    Nothing that may be a form of it: "orders", "ordered".
    """
    known = (words, FUNCTION_WORDS, APPROVING, VERBS, CONCEPTS, UNITS, TENS, _NAMES)
    if len(word) < _SLIPS - 1 or any(word in those for those in known):
        return None
    meant = [
        name
        for name in words
        if len(name) >= _SLIPS
        and name[0] == word[0]
        and name[-1] == word[-1]
        and (sorted(name) == sorted(word) or abs(len(name) - len(word)) == 1)
        and DamerauLevenshtein.distance(word, name, score_cutoff=1) == 1
    ]
    return meant[0] if len(meant) == 1 else None


_YEAR = re.compile(
    r"(?<=\s)nineteen[\s-]+(?:hundred(?:[\s-]+and)?[\s-]+)?(?P<rest>(?:oh[\s-]+)?[a-z]+(?:[\s-]+[a-z]+)?)\b",
    re.I,
)


def _years_in_words(text: str) -> list[tuple[int, int, str]]:
    """The years of the last century that a text spells out: "nineteen fifty five"."""
    years = []
    for match in _YEAR.finditer(text):
        words = re.split(r"[\s-]+", match["rest"].lower())
        tens, unit = (words[0], words[-1]) if len(words) > 1 else (words[0], "")
        value = TENS.get(tens) if tens != "oh" else 0
        if value is None or (unit and unit not in UNITS):
            value, unit = TENS.get(tens), ""
        if value is not None:
            end = match.end() if unit or len(words) == 1 else match.start("rest") + len(tens)
            years.append((match.start(), end, f"{1900 + value + (UNITS[unit] if unit else 0)}"))
    return years


class Spelled:
    """A text with such names put right, and where each of its characters stood.

    Attributes:
        text: The text as it was meant.
    """

    __slots__ = ("_edits", "text")

    def __init__(self, text: str, words: frozenset[str] = frozenset()) -> None:
        """Put a text right.

        Args:
            text: What somebody wrote.
            words: The words of a catalog, in small letters.
        """
        misspelt = [
            (match.start(), match.end(), meant)
            for match in _WORD.finditer(text)
            if not re.fullmatch(r"[A-Z]", match.group())  # an initial
            and (
                meant := _meant(match.group().lower())
                or (_slipped(match.group(), words) if words else None)
            )
        ]
        misspelt = sorted([*misspelt, *_years_in_words(text)])
        pieces, reached, self._edits = [], 0, []
        moved = 0
        for start, end, meant in misspelt:
            pieces += [text[reached:start], meant]
            reached = end
            self._edits.append((start + moved, start + moved + len(meant), start, end))
            moved += len(meant) - (end - start)
        self.text = "".join([*pieces, text[reached:]]) if misspelt else text

    def place(self, offset: int) -> int:
        """The offset in the text as written; in a corrected word, that of the word's nearer end."""
        moved = 0
        for start, end, old_start, old_end in self._edits:
            if offset <= start:
                break
            if offset < end:
                return old_start if offset - start < end - offset else old_end
            moved = old_end - end
        return offset + moved
