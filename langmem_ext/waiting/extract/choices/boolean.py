"""Yes or no, said as such or by what is wanted: "a shared ride is fine"."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import lru_cache

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.english.attitude import (
    NO,
    YES,
    asks_back,
    lacks,
    postpones,
    says_no,
    says_yes,
)
from langmem_ext.waiting.extract.english.concepts import WORDS as CONCEPTS
from langmem_ext.waiting.extract.english.concepts import phrases_in
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, VERBS
from langmem_ext.waiting.extract.english.tokens import blanked_where, sentences, trim
from langmem_ext.waiting.extract.english.vocabulary import own_stems, split_name, stem
from langmem_ext.waiting.extract.numbers.integer import AGE_TOLD
from langmem_ext.waiting.extract.numbers.party import is_person
from langmem_ext.waiting.extract.reply import Reply

_WORD = re.compile(r"[^\W\d_]+(?:['’][a-z]+)?")
_NEGATION = re.compile(
    r"\b(?:no|not|n't|never|without|(?:do|does|did|has|have|had|is|are|wo|would|could|ca)n['’]?t"
    r"|cannot|dislike|hate"
    r"|avoid|skip|decline|refuse|neither|nor|nothing|none|nobody|nowhere)\b",
    re.I,
)
_NOT_NEGATED = re.compile(
    r"\b(?:no (?:problem|probs?|worries|issues?|objections?|bother(?!ing))"
    r"|not (?:a problem|an issue|bad)|don['’]?t mind|do not mind|wouldn['’]?t mind"
    r"|won['’]?t mind|why not|not only"
    r"|(?:wouldn['’]?t|won['’]?t|doesn['’]?t|does not|would not|will not) (?:bother|hurt|be a"
    r" problem))\b",
    re.I,
)
_TRUE = re.compile(r"^\W*(?:true|on|enabled?|1)\W*$", re.I)
_FALSE = re.compile(r"^\W*(?:false|off|disabled?|0)\W*$", re.I)
_OPENS = (
    r"^\W*(?:(?:well|hmm+|um+|uh(?!"
    r" huh)|oh|so|actually|sorry|and|but|ah|hey|ok|okay|thanks|honestly|i think|i"
    r" guess|{also})\b\W*)*?"
)
_ENDS = (
    r"\b\W*(?:(?:please|thanks?|thank you|then|tbh|sir|ma'?am|for (?:me|us|that|it|now)|at"
    r" all|really|(?:very|so) much|today"
    r"|if (?:possible|you can))\W*)*$"
)
_AGREES = re.compile(
    _OPENS.format(also="yes|yeah|yep|sure")
    + r"(?:i (?:guess|suppose|think|believe|reckon|hope|imagine) so|(?:i|we)"
    r" (?:do|would|will|am|are)|by all means|go for it|go ahead"
    r"|you bet|uh[ -]huh|m+h+m+|mm-?hm+|ye+|yes+|yea+h+|yeh|yuh|aye|(?:hell|heck|oh|ah)"
    r" ye(?:s|ah)|for sure|sure thing|totally|naturally"
    r"|very much|please|preferably|if possible|if you can|might as well|do it|count me in|most"
    r" (?:certainly|definitely)"
    r"|(?:i|we)(?:['’]?d| would) (?:really )?(?:appreciate|like|love|prefer|want)"
    r" (?:that|it|one|some)|i want (?:that|it|one|some)"
    r"|(?:that|it)(?:['’]?d| would) be"
    r" (?:nice|great|good|lovely|perfect|helpful|fine|ideal)|without (?:a )?doubt"
    r"|(?:that|it|this)(?:['’]?s| is| would be) (?:no (?:problem|issue|trouble)|not (?:a problem|an"
    r" issue)))" + _ENDS,
    re.I,
)
_REFUSES = re.compile(
    _OPENS.format(also="no|nope|nah")
    + r"(?:(?:(?:i|we)(?:['’]?d| would) )?(?:rather|prefer) not(?: to)?|no need(?: (?:for|of)"
    r" (?:that|it|this|one))?|no (?:way|chance|sir)"
    r"|not (?:needed|required|necessary|for"
    r" (?:me|us)|interested|wanted|keen|likely|particularly|especially|bothered|necessarily)"
    r"|(?:it|that|this)(?: is|['’]s| wo|['’]ll| will)?(?: not|n['’]?t)(?: be)?"
    r" (?:necessary|needed|required)"
    r"|(?:that|it) (?:isn['’]?t|won['’]?t be) (?:necessary|needed|required)|i['’]?ll pass|(?:hard"
    r" )?pass"
    r"|(?:skip|leave out|drop|omit) (?:it|that)|leave (?:it|that|them) (?:out|off)|don['’]?t"
    r" bother|forget it|under no circumstances"
    r"|(?:i|we)(?:['’]ll| can| could| will|['’]d)? (?:do|go|manage) without(?: it| that| them|"
    r" one)?|without(?: it| that| them| one| any)?"
    r"|(?:i|we) (?:don['’]?t|wouldn['’]?t|won['’]?t|do not|would not|will"
    r" not)|no+|nope?s?|wrong|incorrect"
    r"|none(?: of (?:that|it|those|them|us))?|nobody|no one|nothing"
    r"|neither|hardly|of course not)" + _ENDS,
    re.I,
)
_STATES = re.compile(
    _OPENS.format(also="yes|yeah|yep|sure|no|nope|nah")
    + r"(?:(?:he|she|it|they|we|i|you|both|all|there|that|this)(?: both| all)?(?:"
    r" (?:is|are|am|was|were|does|do|did"
    r"|has|have|will|would|can|isnt|arent|doesnt|dont|wont|wasnt|cant|havent|hasnt)|['’]?m)"
    r"(?P<not>n['’]?t| not)?|(?P<no>(?:unfortunately|sadly|regrettably|(?:i['’]?m )?afraid)(?:"
    r" not| no"
    r"|,? i don['’]?t)?|not that i know(?: of)?|not anymore)"
    r"|(?:would|that would) be (?:good|great|nice)|already(?: \w+)?|has been(?:,? yes)?)" + _ENDS,
    re.I,
)
_LAST = re.compile(r"^[^,;.!?]{1,60}[,;]\s*(?:(?P<yes>yes|yeah|yep)|(?P<no>no|nope))\W*$", re.I)
_YES_WITHOUT = re.compile(r",?\s+(?:but\s+)?without(?: it| that| them| one| any)?" + _ENDS, re.I)
_SIGNS = {"👍": True, "👌": True, "✅": True, "✔": True, "👎": False, "❌": False}


def _whole(text: str) -> bool | None:
    """The answer of a message that only agrees or refuses in other words; None if it does not."""
    sign = _SIGNS.get(text.strip()[:1])
    if sign is not None and not re.search(r"\w", text):
        return sign
    if len(text) > _LONGEST:
        return None
    led = YES.match(text)
    if stated := _STATES.match(text):
        return not (
            stated["no"]
            or stated["not"]
            or re.search(r"(?:is|are|does|do|wo|was|ca|have|has)nt\b", stated.group(), re.I)
        )
    if not led and (last := _LAST.match(text)):
        return bool(last["yes"])
    return (
        False
        if _REFUSES.match(text) or (led and _YES_WITHOUT.match(text, led.end()))
        else True
        if _AGREES.match(text)
        else None
    )


_LONGEST = 120
"""Characters of a message that is nothing but an agreement or a refusal."""


def _negated(sentence: str) -> bool:
    return _NEGATION.search(_NOT_NEGATED.sub(" ", sentence)) is not None


def _own_noun(param: Param, text: str) -> tuple[int, int] | None:
    """The sentence that speaks of the parameter by its own nouns, or the clause of its phrase."""
    text = blanked_where(text, _IF)
    own, names, best = telling_stems(param), set(split_name(param.name)), 0
    where: tuple[int, int] | None = None
    for start, end in sentences(text):
        words = {word.lower() for word in _WORD.findall(text[start:end])}
        said = sum(1 + (word in names) for word in words if _is_own(stem(word), own))
        if said > best:
            best, where = said, (start, end)
    return phrase_of(param, text, *where) or where if where else phrase_of(param, text)


def telling_stems(param: Param) -> frozenset[str]:
    """Stems of its own nouns; not those of people beside others: a child needs no child seat."""
    own = own_stems(param) - {"one"}  # "whether it is a motorised one"
    things = frozenset(word for word in own if word in _FOR_PEOPLE or not is_person(word))
    return (things or own) | kinds_of(param)


_KINDS = frozenset(("pet", "lend"))
"""Concepts of which each word says as much as the noun."""


def kinds_of(param: Param) -> frozenset[str]:
    """Stems of words for a noun of the parameter's name: a cat is a pet; who borrows is lent."""
    meant = _KINDS.intersection(
        name for word in split_name(param.name) for name in CONCEPTS.get(stem(word), ())
    )
    return _words_of(meant) if meant else frozenset()


@lru_cache(maxsize=16)
def _words_of(meant: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word, names in CONCEPTS.items() if not meant.isdisjoint(names))


_FOR_PEOPLE = frozenset(("seat", "ticket"))
"""What counts people, and is a thing by itself."""


def phrase_of(
    param: Param, text: str, start: int = 0, end: int | None = None
) -> tuple[int, int] | None:
    """The clause with the phrase that ends the parameter's question: "by video", "hot tub"."""
    asked = _PHRASE.search(param.prompt)
    if asked is None or asked["noun"].lower() in FUNCTION_WORDS:
        return None
    noun = rf"{re.escape(asked['noun'])}s?\b"
    if asked["led"]:
        phrase = rf"\b{asked['led']}(?:out)?\s+(?:\w+(?:['’]s)?\s+){{0,2}}{noun}"
    elif asked["first"].lower() in (FUNCTION_WORDS | VERBS) - {"every", "each"}:
        return None
    else:
        phrase = rf"\b{asked['first']}(?:['’]?s)?\s+{noun}"
    match = re.compile(phrase, re.I).search(text, start, len(text) if end is None else end)
    if match is None:
        return None
    return _clause(text, *match.span())


def _clause(text: str, start: int, end: int) -> tuple[int, int]:
    """The clause around `[start, end)`."""
    ends = [match.span() for match in _CLAUSE_END.finditer(text)]
    begin = max((last for _, last in ends if last <= start), default=0)
    return begin, min((first for first, _ in ends if first >= end), default=len(text))


_PHRASE = re.compile(
    r"\b(?:(?P<led>by|with|in|on|at|as)\s+(?:(?!it\b|that\b)\w+(?:['’]s)?\s+){0,2}"
    r"|(?P<first>[a-z]{3,20})(?:['’]s)?\s+)(?P<noun>[a-z]{3,20})\s*\?\s*$",
    re.I,
)
_FORMER = re.compile(r"(?<!['’]ve )(?<!have )\b(?:had|used to|died|passed away)\b", re.I)
"""Words that say how things were."""
_OWNS = re.compile(
    r"\b(?:own(?:s|ed)?|(?:have|has|['’]ve|got|bring(?:ing)?)\s+(?:my|our|his|her|their|a|an)\b)"
    r"(?!.*\b(?:borrow|lend|lent|loan|need)\b)",
    re.I,
)
"""Words of who has a thing, and borrows none."""
_THEIR_OWN = re.compile(r"\b(?:my|our|his|her|their) own\b(?!.*\b(?:but|need|hire|rent)\b)", re.I)
_PROVIDED = re.compile(r"\b(?:hire[ds]?|rent(?:ed|al|s)?|needs?|needed|suppl\w+|provid\w+)\b", re.I)


def _has_own(param: Param, sentence: str) -> re.Match[str] | None:
    """The words of who has what is hired out or provided: "we've got our own skates"."""
    wording = f"{param.name.replace('_', ' ')} {param.description} {param.prompt}"
    return _THEIR_OWN.search(sentence) if _PROVIDED.search(wording) else None


_SO = re.compile(
    r"\bso\b(?=[^,;.!]*\b(?:can|could|may|would|need|want|please|pls|['’]?d like)\b)", re.I
)
"""What comes before a wish that follows from it: "we have no suits so could we borrow some?"."""
_IF = re.compile(r"\bif\b(?! possible)[^,;.!?]*", re.I)
"""What is supposed, and not said: "if you deliver"."""
_CLAUSE_END = re.compile(r"[,;.!?]\s|\b(?:and|but)\b|\bor (?=(?:i|we|s?he|it|they|you)\b)", re.I)


def _is_own(word: str, own: AbstractSet[str]) -> bool:
    """Whether a word is one of these, or of their family: "insurance" and "insured"."""
    return word in own or (
        len(word) > 5 and any(len(other) > 4 and word.startswith(other) for other in own)
    )


def _contradicts(sentence: str) -> bool:
    """Whether a yes or no is taken back at once: "no, I do want it", "yes, but not that"."""
    led = NO.match(sentence) or YES.match(sentence)
    if not led or not re.match(r"\s*,", sentence[led.end() :]):
        return False
    return _negated(sentence[led.end() :]) is not says_no(sentence)


def _takes_back(text: str) -> bool:
    """Whether a yes or no is followed by the opposite: "no, I do"."""
    led = NO.match(text) or YES.match(text)
    after = _AFTER.match(text, led.end()) if led else None
    return after is not None and (after["not"] is not None) is not says_no(text)


_AFTER = re.compile(r"\W*,\s*(?:i|we) (?:do|would|will|am|are|wo)(?P<not> not|n['’]?t)?\W*$", re.I)


_HAVING_ASKED = re.compile(
    r"\b(?:(?:do|does|have|has) (?:you|it|they|he|she|we)\b.{0,30}\b(?:have|got|own)|(?:is|are)"
    r" there)\b",
    re.I,
)
_HAS_NONE = re.compile(
    r"\b(?:(?:have|has)(?: not|n['’]?t)(?: got)?|(?:do|does)(?: not|n['’]?t) have|got no)"
    r" (?:one|any|that|those)\b|\bgot none\b",
    re.I,
)
"""What "Do you have an alarm?" is answered with by who has none."""


def _without(reply: Reply) -> list[Candidate]:
    none = _HAS_NONE.search(reply.text) if _HAVING_ASKED.search(reply.prompt) else None
    return [Candidate(*none.span(), False, 0.85, 1, "has none")] if none else []


def _stated(param: Param, reply: Reply) -> list[Candidate]:
    where = _own_noun(param, reply.text)
    if not where:
        return []
    sentence = reply.text[where[0] : where[1]]
    if wish := _SO.search(sentence):
        sentence = sentence[wish.end() :]
    if lacks(sentence):  # "we need skates, we don't have our own"
        sentence = reply.text[slice(*_clause(reply.text, *_named(param, reply.text, where)))]
    if asks_back(sentence) or lacks(sentence) or _FORMER.search(sentence):
        return []
    lends = {"lend", "borrow"} & kinds_of(param)
    owns = _OWNS.search(sentence) if lends else _has_own(param, sentence)
    if owns and _negated(sentence):
        return []  # who has none may still want none
    first, last = _clause(reply.text, *_named(param, reply.text, where))
    start, end = trim(reply.text, max(first, where[0]), min(last, where[1]))
    clause = reply.text[max(first, where[0]) : min(last, where[1])]
    said = clause if YES.match(clause) else sentence  # "yes, keep the parts, don't ask why"
    value = not (owns or _negated(said)) is not _is_negative(param)
    return [Candidate(start, end, value, 0.8, 1, "said by its own noun")]


def _is_negative(param: Param) -> bool:
    """Whether a parameter is true where something is not: `no_heating`."""
    return _WITHOUT.match(param.name) is not None


_WITHOUT = re.compile(r"(?:no|not|without)_", re.I)


def _free_of(noun: str, text: str) -> list[Candidate]:
    """Whether there is to be none of something: "no nuts", "nut free", for `nut_free`.

    Nothing where the thing is only named: who is allergic to nuts wants none.
    """
    said = re.search(
        r"(?P<no>\b(?:no|without|avoid|not) (?:any )?)?"
        rf"\b{noun}s?\b(?P<free>[\s-]free\b)?",
        text,
        re.I,
    )
    if said is None or (not said["no"] and not said["free"]):
        return []
    return [Candidate(*said.span(), (said["no"] is None) or not said["free"], 0.8, 1, "none of it")]


_FREE_OF = re.compile(r"(?P<noun>[a-z]{3,})_free")


def _named(param: Param, text: str, where: tuple[int, int]) -> tuple[int, int]:
    """The first of the parameter's own nouns in a sentence, that of its name first; or all."""
    own, names = telling_stems(param), set(map(stem, split_name(param.name)))
    named = [word for word in _WORD.finditer(text, *where) if _is_own(stem(word[0]), own)]
    first = next((word for word in named if stem(word[0]) in names), next(iter(named), None))
    return first.span() if first else where


def _is_chat(reply: Reply) -> bool:
    """Whether "no worries" only takes leave, or is said to a question how things are."""
    match = _NO_WORRIES.match(reply.text)
    return match is not None and (
        match["leave"] is not None
        or (
            _STATE_ASKED.match(reply.prompt) is not None
            and not re.search(r"\b(?:ok|okay|fine|alright|all right|problem)\b", reply.prompt, re.I)
        )
    )


_NO_WORRIES = re.compile(
    r"^\W*(?:(?:ok|okay|oh|ah|well)\W+)*no (?:worries|problem|prob|probs)\b"
    r"(?P<leave>\W+(?:(?:thanks|thank you|then|ok|cheers)\W+)*(?:good)?bye\b)?",
    re.I,
)
_NOT_YET = re.compile(r"^\W*(?:no|nope|nah)\W+(?:i'm afraid\W+)?not yet\W*$", re.I)
"""A "not yet" after "no" says how things are; alone it may as well put the question off."""


_YES_OR_NO = re.compile(r"(?<![\w'’])(?:(?P<yes>yes|yeah|yep)|no|nope)(?=\s*(?:$|[,.;!]))", re.I)


def _inside(text: str) -> list[Candidate]:
    """The one yes or no that a message says somewhere: "as far as I can see yes, all of them"."""
    matches = list(_YES_OR_NO.finditer(text))
    if len(matches) != 1 or "?" in text:
        return []
    return [
        Candidate(*matches[0].span(), matches[0]["yes"] is not None, 0.6, 0, "a yes or no inside")
    ]


_NOT_YET_ALONE = re.compile(r"^\W*not yet\W*(?:$|[,.;!])", re.I)
_STATE_ASKED = re.compile(
    r"^\W*(?:\w+\W+){0,3}?(?:is|are|has|have|did|does|was|were|do you have|have you)\b", re.I
)
"""A question how things are, and not what is wished for."""


def _inverted(prompt: str) -> bool:
    """Whether "no" agrees, as to "Do you mind …?"."""
    return re.search(r"\b(?:do|would) you mind\b", prompt, re.I) is not None


_OPPOSITES = {"deliver": "collect", "collect": "deliver"}
"""What is done by the one side where the other does not do it."""


def _opposite(param: Param, reply: Reply) -> list[Candidate]:
    """No, said by what is done instead: "I'll collect it", where a delivery is offered."""
    asked, done = (_done(text) for text in (f"{param.description} {reply.prompt}", reply.text))
    if len(asked) != 1 or done != {_OPPOSITES[next(iter(asked))]} or asks_back(reply.text):
        return []
    start, end = trim(reply.text, 0, len(reply.text))
    return (
        []
        if _negated(reply.text)
        else [Candidate(start, end, False, 0.7, 0, "does it another way")]
    )


def _done(text: str) -> set[str]:
    """Which of the opposites a text speaks of."""
    low = text.lower().replace("’", "'")
    concepts = [CONCEPTS.get(stem(word), frozenset()) for word in _WORD.findall(low)]
    concepts += [names for _, _, names in phrases_in(low)]
    return {name for names in concepts for name in names if name in _OPPOSITES}


_HEARD = re.compile(
    r"\W*(?:(?:ah+|oh+|ok(?:ay)?|right|i see|fair enough|hm+|um+|well|alright|got it)\b[\s.,!]*)+"
    r"(?=(?:yes|yeah|yep|yup|no(?! (?:problem|worries|bother))|nope|nah)\b)",
    re.I,
)
"""What only says that a message was heard, before a yes or a no."""


def read(param: Param, reply: Reply) -> list[Candidate]:
    """Yes or no from a reply; without a question, only where a sentence names the parameter."""
    if heard := _HEARD.match(reply.text):  # "oh i see. yes, my niece is"
        reply = replace(reply, text=" " * heard.end() + reply.text[heard.end() :])
    return _read(param, reply)


def _truth(text: str) -> Candidate | None:
    """A truth value, or the yes or no that a reason leads to: "had them in november so yes"."""
    for pattern, value in ((_TRUE, True), (_FALSE, False)):
        if pattern.match(text):
            return Candidate(*trim(text, 0, len(text)), value, 0.95, 1, "a truth value")
    after_all = _SO_YES.search(text)
    if after_all is None:
        return None
    group = "yes" if after_all["yes"] else "told"
    agreed = after_all[group].lower().startswith("y")
    return Candidate(*after_all.span(group), agreed, 0.85, 1, "agrees or refuses")


_OR_OLDER = re.compile(
    r"\b(?P<least>\d{1,2}) or (?:over|older|above)\b|\b(?:at least|over) (?P<over>\d{1,2})\b", re.I
)
"""An age that is asked for: "18 or over", "at least 21"."""


def _of_age(param: Param, reply: Reply) -> list[Candidate]:
    """Whether an age that a message tells is enough, where that is asked: "im 42 love"."""
    asked = _OR_OLDER.search(f"{param.description} {param.prompt}")
    told = AGE_TOLD.search(reply.text) if asked else None
    if asked is None or told is None:
        return []
    least = int(asked["least"] or asked["over"])
    return [Candidate(*told.span("age"), int(told["age"]) >= least, 0.85, 1, "by an age")]


_SO_YES = re.compile(
    r"\b(?:so|but) (?P<yes>yes|yeah|yep|no|nope|nah|not any ?more)\b"
    r"(?=\W*$|\s*[.!]|\s+(?:both|all|i|we|he|she|they|it|you)\b[^?]*$)"
    r"|^\W*(?:he|she|they|my \w+) (?:says?|said) (?P<told>yes|yeah|no)\b"
    r"(?![^.!]*\b(?:but|i)\b)(?!.*\?)",
    re.I,
)
"""What a reason leads to: "she had them in november so yes", "he plays, so yes he has"."""
_ECHO = re.compile(
    r"\W*(?P<said>(?:i|we|he|she|they) (?:have|had|do|did|am|are|is|will|would)"
    r"|(?:oh |well |no )?(?:(?:i['’]?m )?afraid|sadly|unfortunately) not)\s*[,.;]",
    re.I,
)
"""The verb of a question said again, or a sorry no, and more: "we have, twice"."""


def _read(param: Param, reply: Reply) -> list[Candidate]:
    text = reply.text
    where = _own_noun(param, text)
    if where and _contradicts(text[where[0] : where[1]]):
        return []
    free = _FREE_OF.fullmatch(param.name)
    stated = (
        _free_of(free["noun"], text) if free else _stated(param, reply) or _of_age(param, reply)
    )
    if reply.strict or stated:
        return stated
    if _takes_back(text) or _is_chat(reply):
        return []
    if plain := _truth(text):
        return [plain]
    echo = _ECHO.match(text)
    whole = (
        False
        if _NOT_YET_ALONE.match(text) and _STATE_ASKED.match(reply.prompt)
        else _whole(text[: echo.end("said")] if echo else text)
    )
    if whole is not None:
        start, end = trim(text, 0, len(text))
        value = True if not whole and _inverted(reply.prompt) else whole
        return [Candidate(start, end, value, 0.85, 1, "agrees or refuses")]
    agrees = YES.match(text) is not None and says_yes(text)  # "yes, a bit worn, that's all"
    refused = NO.match(text) is not None and says_no(text)  # "no, haven't got one"
    if (lacks(text) and not refused) or (
        postpones(text) and not agrees and not _NOT_YET.match(text)
    ):
        return _without(reply)
    match = YES.match(text) if says_yes(text) else NO.match(text) if says_no(text) else None
    if not match:
        return _inside(text) or _opposite(param, reply)
    start, end = trim(text, match.start(), match.end())
    agreed = says_yes(text)
    if _inverted(reply.prompt) and not agreed:
        return [Candidate(start, end, True, 0.7, 1, "does not mind")]
    return [Candidate(start, end, agreed, 0.9, 1, "yes or no")]
