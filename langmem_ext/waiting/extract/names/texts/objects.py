"""The things that a message speaks of, the likeliest first: what is wished for, then any other.

"my husband has lost a bet, I need a bear costume for friday" names two things. One is what the
request is about: its noun is the parameter's own, or it stands behind what the request does, "need"
or "hire", or behind "for", "of" and "about" after the request's noun, "a prescription for …".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from langmem_ext.waiting.extract.english.concepts import WORDS
from langmem_ext.waiting.extract.english.leadin import answer_span
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, VERBS, word_set
from langmem_ext.waiting.extract.english.tokens import Token, tokens
from langmem_ext.waiting.extract.english.vocabulary import stem
from langmem_ext.waiting.extract.names.bystanders import KIN

Span = tuple[int, int]

_NUMBERS: Final = word_set("two three four five six seven eight nine ten")
_OWNERS: Final = word_set("the my our your his her their this that these those")
_BEFORE_NOUNS: Final = _NUMBERS | _OWNERS | word_set("a an some any one several more few another")
_JOINS: Final = word_set("and n & plus")
_NO_NOUNS: Final = word_set(
    "behind along left lost came went took gave made fell broke ran sent bought paid spent died"
    " got found stuck asap somewhere lol btw asking back"
)
_ASIDE: Final = word_set("aside away back by")
"""What a verb has behind its object: "put some stilton aside"."""
_NO_THING: Final = word_set(
    "born look bit minute moment second sec while hand lot load chance go word time day week month"
    " year hour night problem issue question thing favour note call quote morning afternoon evening"
    " reason way idea problems questions days weeks hours nights minutes months years people times"
    " things something stuff one ones rest end money use weekend"
)
"""What follows an article and is no thing."""
_PLAIN: Final = word_set(
    "new big small large good nice other different same next last first second quick short long old"
    " little cheap best spare extra urgent emergency repeat regular normal full whole whole proper"
)
"""Words beside a noun that do not tell which one."""
_PEOPLE: Final = re.compile(
    rf"{KIN}s?|children|lad|parents|name|person|human|someone|man|woman", re.I
)
"""Whom one has, which is no thing."""
_WISHES: Final = word_set(
    "need needs want like love get have got hire rent buy order borrow sell after theres there's"
    " there"
)
"""What one does with a thing that one asks for."""
_TO_WHOM: Final = word_set("me us you him her them for")
_ASKING: Final = word_set("to you u i we can please pls someone somebody and")
_TOPIC: Final = word_set("about regarding concerning")
_LINKS: Final = word_set("for of on")
_PLACED: Final = word_set(
    "in on at by near from to into onto with behind under as inside outside beside around through"
)
_APART: Final = word_set("left leave hand handed trade turn turned")
"""Verbs of which "behind" and "in" may be a part: "did anyone hand in a scarf"."""
_MORE: Final = word_set("more out some looking its it's it’s thats that's")


def is_noun_of_thing(word: str) -> bool:
    """Whether a word in small letters is for nobody whom one has, and for no time or favour."""
    return word not in _NO_THING and _PEOPLE.fullmatch(word) is None


def is_one_of(noun: str, own: AbstractSet[str]) -> bool:
    """Whether a noun is one of these, by their stems, or means the same: pills, medicine."""
    meant = WORDS.get(stem(noun), frozenset())
    return stem(noun) in own or any(not meant.isdisjoint(WORDS.get(word, ())) for word in own)


def is_family(word: str, known: AbstractSet[str]) -> bool:
    """Whether a word is one of these, by their stems, or goes on from a long one: "donations"."""
    own = stem(word)
    return own in known or any(own.startswith(each) for each in known if len(each) > _LONG)


_LONG: Final = 4
"""Letters of a stem that other words may go on from, more than."""


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A noun with the words before it.

    Attributes:
        first: Index of its first word, behind articles.
        last: Index after its last word.
        opening: Index of the first article or number before it.
    """

    first: int
    last: int
    opening: int


def things_in(
    text: str, known: AbstractSet[str], own: AbstractSet[str] = frozenset()
) -> list[Span]:
    """The things that a message may be about, as far as none is likelier than they are.

    Args:
        text: The message; what is read already is blank.
        known: Stems of words for what it is about, which are no things of their own.
        own: Stems of the nouns of the parameter: "a pirate costume" is a costume.
    """
    words = tokens(text)
    ranked: list[tuple[int, Span]] = []
    for phrase in _phrases(text, words, known):
        rank = _rank(text, words, phrase, known, own)
        start, end = _bounds(words, phrase)
        joined = text[ranked[-1][1][1] : words[phrase.opening].start] if ranked else ""
        if rank and ranked and _is_joined(joined, determined=phrase.opening < phrase.first):
            best, (begin, _) = ranked.pop()
            ranked.append((best, (begin, end)))
        elif rank:
            ranked.append((rank, (start, end)))
    best = max((rank for rank, _ in ranked), default=0)
    return [span for rank, span in ranked if rank == best]


def objects_in(text: str, known: AbstractSet[str]) -> list[Span]:
    """What the request does something to, by its name alone: "could you feed pepper"."""
    words = tokens(text)
    return [
        _bounds(words, phrase)
        for phrase in _phrases(text, words, known)
        if phrase.opening == phrase.first or words[phrase.first - 1].low in _OWNERS
        if _rank(text, words, phrase, known, frozenset()) > _SPOKEN_OF
    ]


def _bounds(words: Sequence[Token], phrase: _Phrase) -> Span:
    """From the number before a thing, or the thing itself, to its end."""
    number = phrase.first > phrase.opening and _is_number(words[phrase.first - 1])
    last = phrase.last - (words[phrase.last - 1].low in _ASIDE and phrase.last - phrase.first > 1)
    return words[phrase.first - number].start, words[last - 1].end


def _is_number(word: Token) -> bool:
    return word.low in _NUMBERS or word.text.isdigit()


def _is_joined(between: str, *, determined: bool) -> bool:
    between = between.strip(" ").lower()
    return between in _JOINS or (determined and between == ",")


def _phrases(text: str, words: Sequence[Token], known: AbstractSet[str]) -> list[_Phrase]:
    """The nouns of a message with what is before them, in order."""
    phrases, at = [], 0
    while at < len(words):
        first = _behind_articles(text, words, at)
        if first == at and _is_done(text, words, at, known):
            at += 1
            continue
        last = first
        while (
            last < len(words)
            and (last == at or _follows(text, words, last))
            and _is_noun(words, last, first=first, determined=first > at)
        ):
            last += 1
        while last > first and words[last - 1].low == "of":
            last -= 1
        if last > first:
            phrases.append(_Phrase(first, last, at))
        at = max(last, at + 1)
    return phrases


def _behind_articles(text: str, words: Sequence[Token], at: int) -> int:
    """Behind the articles, numbers and "a lot of" that begin at `at`."""
    first = at
    while first < len(words) and (first == at or _follows(text, words, first)):
        low = words[first].low
        if low not in _BEFORE_NOUNS and not _is_number(words[first]):
            break
        first += 1
        if [word.low for word in words[first : first + 2]] in (["lot", "of"], ["couple", "of"]):
            first += 2
    return first


def _follows(text: str, words: Sequence[Token], at: int) -> bool:
    """Whether a word follows the one before it at once."""
    return text[words[at - 1].end : words[at].start] in (" ", "-", " (")


def _is_done(text: str, words: Sequence[Token], at: int, known: AbstractSet[str]) -> bool:
    """Whether a word is what is to be done to the thing behind it: "please store old paintings"."""
    if at + 1 == len(words) or text[words[at].end : words[at + 1].start].strip():
        return False
    return words[at].low in _WISHES or (stem(words[at].low) in known and _is_free(text, words, at))


def _is_free(text: str, words: Sequence[Token], at: int) -> bool:
    """Whether a word begins a part, or follows whoever does it: "could you feed", "to store"."""
    opens = at == 0 or text[words[at - 1].end : words[at].start].strip() != ""
    return opens or words[at - 1].low in _ASKING


def _is_noun(words: Sequence[Token], at: int, *, first: int, determined: bool) -> bool:
    """Whether a word may be a noun or a word beside it: "drive" in "a drive belt"."""
    word = words[at]
    if word.low == "of":
        return at > first
    if word.low in FUNCTION_WORDS | _NO_NOUNS:
        return False
    if word.low in VERBS:
        return determined and not word.low.endswith(("ing", "ed"))
    if at == first or re.search(r"\w{3}(?:ed|ing)$", word.low) is None:
        return True
    closes = at + 1 == len(words) or words[at + 1].low in ("please", "for", "to")
    return determined and (word.low in _BESIDE_NOUNS or (closes and word.low.endswith("ing")))


_BESIDE_NOUNS: Final = word_set(
    "evening morning wedding swimming painting ceiling building heating washing sewing riding"
    " walking hiking boxing fishing camping cooking running dining training parking"
)
"""Words that end as a verb does and stand before nouns: "an old evening dress"."""


_OWN: Final = 5
_WISHED: Final = 4
_DONE_TO: Final = 3
_SPOKEN_OF: Final = 2
_BESIDE: Final = 1


def _rank(
    text: str,
    words: Sequence[Token],
    phrase: _Phrase,
    known: AbstractSet[str],
    own: AbstractSet[str],
) -> int:
    """How likely a message is about a thing; 0 for words that do not name one."""
    named = words[phrase.first : phrase.last]
    of = next((at for at, word in enumerate(named) if word.low == "of"), len(named))
    head = named[of - 1].low
    if not is_noun_of_thing(head) and of == len(named):
        return 0
    lead = _lead(text, words, phrase, known, own)
    telling = [word for word in named[: of - 1] if word.low not in _PLAIN | VERBS]
    if telling and is_one_of(head, own):
        return _OWN
    if is_family(head, known) and of == len(named):
        fresh = any(stem(word.low) not in known for word in telling)
        return _BESIDE if lead == _WISHED and (fresh or _is_counted(text, words, phrase)) else 0
    return lead


def _is_counted(text: str, words: Sequence[Token], phrase: _Phrase) -> bool:
    """Whether a number that is read already stands before "of": "5 kg of ferret biscuits"."""
    before = text[: words[phrase.opening].start]
    return re.search(r"\s{3}of\s$", before[-6:]) is not None


def _lead(
    text: str,
    words: Sequence[Token],
    phrase: _Phrase,
    known: AbstractSet[str],
    own: AbstractSet[str],
) -> int:
    """How likely a message is about a thing by the words that lead to it."""
    at, determined = phrase.opening, phrase.opening < phrase.first
    article = words[phrase.first - 1].low if determined else "your"
    spoken = 0 if article == "your" else _SPOKEN_OF if article in _OWNERS else _BESIDE
    if at == 0 or text[words[at - 1].end : words[at].start].strip():
        before = _to_be_done(text, words, phrase, known)
        return _WISHED if before else spoken
    lead = words[at - 1]
    blank = at == 1 or len(text[words[at - 2].end : lead.start]) > 1
    prior = words[at - 2].low if at > 1 else ""
    if lead.low in _TOPIC:
        return _WISHED
    asked = known - own if lead.low == "for" else known  # "a tool for the weekend" is no weekend
    if lead.low in _LINKS and (blank or stem(prior) in asked or prior in _MORE):
        return _WISHED
    apart = lead.low in ("behind", "in") and prior in _APART
    if lead.low in _PLACED | _LINKS and not apart:
        return 0
    while lead.low in _TO_WHOM and at > 1:
        at -= 1
        lead = words[at - 1]
    if not (determined or _is_free(text, words, at - 1)):
        return spoken
    if lead.low in _WISHES or (lead.low not in FUNCTION_WORDS and stem(lead.low) in known):
        return _WISHED
    return _DONE_TO if lead.low in VERBS else spoken


def _to_be_done(
    text: str, words: Sequence[Token], phrase: _Phrase, known: AbstractSet[str]
) -> bool:
    """Whether a thing comes before what the request does to it: "wardrobe to collect"."""
    after = words[phrase.last : phrase.last + 2]
    return len(after) > 1 and after[0].low == "to" and stem(after[1].low) in known


def topics_in(text: str, known: AbstractSet[str]) -> list[Span]:
    """What a message says that it is about, to the end of its part: "about my knee"."""
    words = tokens(text)
    topics: list[Span] = []
    for at, word in enumerate(words[:-1]):
        about = word.low in _TOPIC or (
            word.low in ("for", "of") and at and stem(words[at - 1].low) in known
        )
        begin = words[at + 1].start
        if not about or text[word.end : begin] != " " or (topics and begin < topics[-1][1]):
            continue
        end = _PART_ENDS.search(text, begin)
        start, stop = answer_span(text, begin, end.start() if end else len(text), framed=False)
        said = [word for word in tokens(text[start:stop]) if word.low not in FUNCTION_WORDS]
        if any(is_noun_of_thing(word.low) and stem(word.low) not in known for word in said):
            topics.append((start, stop))
    return topics


_PART_ENDS: Final = re.compile(r"[,.;:!?\n]+(?=\s|$)|\s{2,}|\s(?=(?:and|but|on|at|with)\b\s{2})")
