"""A message taken apart: sentences and clauses, and what each of them does besides giving values.

"hi! how much is a kayak? one for saturday please, thanks" greets, asks, wishes and thanks. Values
are read from what neither greets nor asks, and a question is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final, Literal, TypeAlias

from langmem_ext.waiting.extract.english.attitude import wishes_by_asking
from langmem_ext.waiting.extract.english.tokens import blanked
from langmem_ext.waiting.extract.reading_cache import remembered
from langmem_ext.waiting.extract.reply import LONGEST
from langmem_ext.waiting.understand.acts.statements import asks_back_only
from langmem_ext.waiting.understand.acts.steering import LONGEST_SIGNAL, is_cancel

Act: TypeAlias = Literal["hello", "thanks", "bye", "help", "talk", "question", "cancel", "say"]

_END: Final = re.compile(
    r"(?<!\b[A-Za-z])(?<!\b[DM]r)(?<!\bMrs)(?<!\bMs)(?<!\bSt)(?<!\bProf)[.!?;…]+(?=\s|$"
    r"|[\"')\]])[\"')\]]*|\n+|(?<!\s)\s+[–—-]\s+"
)
"""The end of a sentence; not the point of a title or an initial."""

_OPENS: Final = re.compile(
    r"(?<=\bforget it)\s+(?=(?:i|we|he|she|they)(?:['’]?ll)?\b)|(?<=\bforget it then)\s+(?=\w)"
    r"|(?:,\s*|(?<!\s)\s+)(?=(?:and also|also (?:can|could|i|please|how|what|when|where|is|are"
    r"|do)\b|but"
    r" first|oh and|btw\b|by the way|"
    r"and (?:can|could|would|will) (?:you|i|we)\b|and (?:please|pls)\b|and i(?:'d| would| want|"
    r" need| have|'ve)\b|"
    r"and (?:how|what|when|where|who|do you|are you|is there|is it)\b|but (?:how|what|when|where|do"
    r" you|are you|is it|is there)\b|"
    r"then i (?:want|need)\b))"
    r"|,\s*(?=(?:can|could|would|will) (?:you|i|we)\b|(?:how|what|when|where|who) |(?:do|are)"
    r" you\b|is (?:there|that|it)\b|"
    r"(?:thanks|thank you|thx|cheers|ta)\b|(?:please|pls)? ?(?:cancel|forget)\b)",
    re.IGNORECASE,
)
"""Where a new clause opens inside a sentence."""

_WORDS: Final = (
    r"(?:there|all|everyone|everybody|guys|folks|team|again|dear|sir|madam|mate|you|to you|hope"
    r" you(?:'re| are) (?:well|ok|good|fine))"
)
_GREETING: Final = (
    rf"(?:hi+|hello+|hey+|hiya|yo|howdy|greetings|good"
    rf" (?:morning|afternoon|evening|day)|(?:morning|evening|"
    rf"afternoon)(?=\s*[!,])|dear (?:team|sir|madam|all))"
    rf"(?:[ ,]+{_WORDS})*"
)
_HELLO: Final = re.compile(
    rf"\W*{_GREETING}(?:[ ,]*how are you(?: doing| today)?)?\W*", re.IGNORECASE
)
_HELLO_FIRST: Final = re.compile(rf"^\W*{_GREETING}\s*[,:!.…–—-]*\s+(?=\S)", re.IGNORECASE)
_VERY: Final = (
    r"(?: (?:you|u|so|very|much|a lot|a mill(?:ion)?|love|hun|duck|pal|dear|again"
    r"|for (?:that|your help|everything|the"
    r" help)|then|guys|mate|all|in advance))*"
)
_THANKS: Final = re.compile(
    rf"\W*(?:(?:ok|okay|great|perfect|super|cool|lovely|brilliant|awesome|wonderful|that'?s"
    rf" (?:great|all|it|perfect)|no|oh)[ ,.!]*)*"
    rf"(?:thanks|thank ?(?:you|u|ya)|thx|thanx|thnx|tx|tks|ty|tysm|tyvm|cheers|ta|many thanks"
    rf"|much appreciated)\b{_VERY}"
    rf"(?:[ ,.!]*(?:bye|goodbye|see you|have a (?:nice|good|great)"
    rf" (?:day|one|evening|weekend)|fingers crossed|bless you"
    rf"|you(?:'re| are) (?:a )?(?:star|stars|legend|lifesaver|angel)s?|that'?s (?:all|it)"
    rf"|great|perfect))*\W*",
    re.IGNORECASE,
)
_BYE: Final = re.compile(
    r"\W*(?:(?:ok|okay|great|alright)[ ,.!]*)?(?:bye(?: bye)?|goodbye|good bye|see you(?: later|"
    r" soon| then)?|cya|"
    r"have a (?:nice|good|great) (?:day|one|evening|weekend)|that'?s (?:all|it)(?: for"
    r" (?:now|today))?|that will be all)\W*",
    re.IGNORECASE,
)
_HELP: Final = re.compile(
    r"\W*(?:help(?: me)?(?: please)?|/help|what can you do(?: for me)?|what (?:do|can) (?:you|i)"
    r" (?:offer|do|ask)(?: here)?|"
    r"(?:can|could) you help(?: me)?(?: please| out)?|i need (?:some )?help|how does this"
    r" work|options|menu\?|who are you|what are you|"
    r"are you (?:a )?(?:bot|robot|human|real|person|machine|an ai)(?: or .*)?)\W*",
    re.IGNORECASE,
)
_TALK: Final = re.compile(
    r"\W*(?:lo+l|haha+|hehe+|how are you(?: doing)?(?: today)?|nice weather(?: today)?(?:,? isn'?t"
    r" it)?|hm+|well|so|"
    r"ok(?:ay)? so|oh|wow|blimey|crikey|gosh|yikes|oof|ouch|phew|jeez|nice|cool|great"
    r"|fair enough|i see|got it|understood|bless you|noted|"
    r"you(?:'re| are) (?:funny|nice|great|stupid|dumb|useless|annoying)|this is"
    r" (?:annoying|stupid|taking (?:forever|ages))|"
    r"(?:just )?a (?:moment|second|sec|minute)(?: please)?|(?:one|wait a|hold on a|give me a)"
    r" (?:moment|second|sec|minute)(?: please)?|"
    r"hold on|hang on|wait|brb|let me (?:check|think|see|look)(?: (?:it|that)"
    r" up)?|sorry|apologies|no worries)\W*",
    re.IGNORECASE,
)
_WHOLE: Final[tuple[tuple[Act, re.Pattern[str]], ...]] = (
    ("hello", _HELLO),
    ("thanks", _THANKS),
    ("bye", _BYE),
    ("help", _HELP),
    ("talk", _TALK),
)
_POSSIBLE: Final = re.compile(
    r"\b(?:(?:would|might|could) (?:it|that|this) be (?:possible|ok(?:ay)?|doable)|(?:is|was)"
    r" (?:it|that|this) possible|any chance|"
    r"is there (?:a|any|still) (?:free|chance|slot|room|space)|have you got)\b",
    re.IGNORECASE,
)
"""Questions that are wishes."""

MOST: Final = 12
"""Clauses that a message is taken apart into; what follows is part of the last."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a message.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last character.
        text: What it says.
        act: What it does.
    """

    start: int
    end: int
    text: str
    act: Act


@remembered
def clauses_of(text: str) -> list[Clause]:
    """The clauses of a message, in order; empty for a message without a word."""
    return [
        Clause(start, end, text[start:end], act_of(text[start:end]))
        for start, end in _parts(text)
        if re.search(r"\w", text[start:end])
    ]


def _parts(text: str) -> Iterator[tuple[int, int]]:
    first = _HELLO_FIRST.match(text)
    begin = first.end() if first else 0
    if first:
        yield 0, begin
    cuts = sorted(
        {
            match.end()
            for ends in (_END, _OPENS)
            for match in islice(ends.finditer(text, begin, LONGEST), MOST)
        }
    )
    cuts = _with_cancellation(text, begin, cuts)[:MOST]
    for cut in (*cuts, len(text)):
        if cut > begin:
            yield begin, cut
            begin = cut


_COMMA: Final = re.compile(r",\s*")


def _with_cancellation(text: str, begin: int, cuts: list[int]) -> list[int]:
    """The cuts, with some around words that only cancel: "I can borrow one, so forget it"."""
    commas = [match.end() for match in islice(_COMMA.finditer(text, begin, LONGEST), MOST)]
    ends = sorted({begin, *cuts, *commas, len(text)})
    around = [
        cut
        for start, end in pairwise(ends)
        if end - start <= LONGEST_SIGNAL and is_cancel(text[start:end])
        for cut in (start, end)
    ]
    return sorted({*cuts, *around} - {begin, len(text)}) if commas else cuts


def act_of(text: str) -> Act:
    """What a clause does."""
    if len(text) > LONGEST:
        return "say"
    words = text.strip()
    for act, pattern in _WHOLE:
        if pattern.fullmatch(words):
            return act
    if is_cancel(words):
        return "cancel"
    if asks_back_only(words) and not wishes_by_asking(words) and not _POSSIBLE.search(words):
        return "question"
    return "say"


_JOINS: Final = re.compile(
    r"\s*[,;](?!\d)\s*(?:and\s+|then\s+|plus\s+|but\s+)?|\s+(?:and|then|plus|but|also)\s+",
    re.IGNORECASE,
)


def phrases_of(clause: Clause) -> list[Clause]:
    """The parts of a clause between "and", "then" and commas: each may be a request of its own."""
    parts, begin = [], 0
    for match in (*_JOINS.finditer(clause.text), None):
        end, following = (
            (match.start(), match.end()) if match else (len(clause.text), len(clause.text))
        )
        if re.search(r"\w", clause.text[begin:end]):
            text = clause.text[begin:end]
            parts.append(Clause(clause.start + begin, clause.start + end, text, clause.act))
        begin = following
    return parts


def without(text: str, clauses: Iterable[Clause]) -> str:
    """The message with some clauses blanked; the rest keeps its place."""
    for clause in clauses:
        text = blanked(text, (clause.start, clause.end))
    return text


def words_without_values(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """The message without the parts at `spans`, which are `[start, end)` offsets."""
    for span in spans:
        text = blanked(text, span)
    return " ".join(text.split())
