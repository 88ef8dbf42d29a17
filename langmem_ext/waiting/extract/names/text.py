"""Open text: the answer without its frame, or, for a kind or category, the words that name it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.closed_spans import closed_spans
from langmem_ext.waiting.extract.codes.identifier import by_pattern
from langmem_ext.waiting.extract.english.leadin import answer_span
from langmem_ext.waiting.extract.english.lexicon import (
    FUNCTION_WORDS,
    GENERIC_NOUNS,
    NEVER_NAMES,
    PRICE,
    STOPS_NAME,
    VERBS,
    word_set,
)
from langmem_ext.waiting.extract.english.tokens import Token, before, runs, sentences, tokens, trim
from langmem_ext.waiting.extract.english.vocabulary import own_stems, split_name, stem
from langmem_ext.waiting.extract.names.objects import is_family
from langmem_ext.waiting.extract.names.openness import is_no_answer, named_before
from langmem_ext.waiting.extract.names.person import is_of_person
from langmem_ext.waiting.extract.names.phrase import named_in, place_in
from langmem_ext.waiting.extract.names.telling import (
    DOUBTED,
    SURE,
    asks_why,
    begins,
    is_remark,
    is_request,
    is_written,
    to_write,
    told,
    up_to_other,
)
from langmem_ext.waiting.extract.names.what_for import behind_lead, said_for
from langmem_ext.waiting.extract.reply import LONGEST, Reply

_EMPTY = word_set(
    "the of particular specific certain different special various available any regular general"
    " preferred more most"
)
_KINDS = word_set(
    "genre type kind category cuisine style sort food range class mood color colour flavour flavor"
)
_REASON = re.compile(
    r"\b(?:because(?: of)?|due to|since|the reason (?:is|being)(?: that)?|reason:)\s+", re.I
)
_HEADS = frozenset(
    stem(word)
    for word in (
        *GENERIC_NOUNS,
        *word_set(
            "food cuisine dishes stuff genre flick options type category kind style section fan"
            " lover addict specials joint spot"
        ),
    )
)
_BUT = re.compile(r",?\s{1,9}(?:but|however|although)\s{1,9}|,\s+(?=(?:i|we|it|so)\b)", re.I)
_SERVES = re.compile(
    r"\b(?:serv(?:es?|ing)|offers?|offering|in the mood for|craving|feel"
    r" like|into)\s+(?:(?:some|any|a|an|the)\s+)?(?=\w)",
    re.I,
)
_NARRATIVE = frozenset(
    stem(word)
    for word in word_set(
        "reason note comment message description detail problem issue fault complaint symptom"
        " question request wish remark purpose feedback instruction text matter concern"
        " incident explanation statement happened happen wrong tell describe anything say write"
        " occasion"
    )
)
"""Words of a parameter whose values are whole sentences."""
_SHORT = 3
"""Words of an example that is no sentence, at most."""
_OFFER = re.compile(
    r"\W*(?:(?:is|are) there|any|do (?:you|they)|have you|can|could|tell me|give me|please)\b", re.I
)


def is_kind(param: Param) -> bool:
    """Whether the parameter holds a kind, named by a word or two, and not a free answer."""
    words = {*split_name(param.name), *re.findall(r"[a-z]+", param.description.lower())}
    return bool(words & _KINDS)


def is_free(param: Param) -> bool:
    """Whether any text of any length may be a value."""
    return param.pattern is None and not is_kind(param)


def _head(word: Token, heads: AbstractSet[str]) -> bool:
    return stem(word.low) in heads


def _modifiers(param: Param, reply: Reply, masked: Sequence[tuple[int, int]]) -> list[Candidate]:
    """Words before a noun of the parameter or its question: "a *funny* movie", "*thai* food"."""
    heads = own_stems(param) | _HEADS
    words = tokens(reply.text)
    candidates = []
    for at, word in enumerate(words):
        if not _head(word, heads) or at == 0:
            continue
        first = at
        while first > 0 and _modifies(reply.text, words, first - 1, masked, heads):
            first -= 1
        if first < at:
            start, end = words[first].start, words[at - 1].end
            candidates.append(
                Candidate(
                    start,
                    end,
                    reply.text[start:end],
                    0.45,
                    2 if stem(word.low) in own_stems(param) else 1,
                    "words before its noun",
                )
            )
    return candidates


def _modifies(
    text: str,
    words: Sequence[Token],
    at: int,
    masked: Sequence[tuple[int, int]],
    heads: AbstractSet[str],
) -> bool:
    word, after = words[at], words[at + 1]
    free = not any(word.start < stop and start < word.end for start, stop in masked)
    if (
        not free
        or text[word.end : after.start].strip()
        or _head(word, heads)
        or word.text[0].isdigit()
        or word.low.endswith("priced")
    ):
        return False
    title = (
        word.capitalised
        and at > 0
        and words[at - 1].low in ("a", "an", "the", "some", "any")
        and word.low in VERBS
    )
    return title or (word.low not in STOPS_NAME and word.low not in _EMPTY)


def _short(
    reply: Reply, masked: Sequence[tuple[int, int]], bounds: tuple[int, int]
) -> list[Candidate]:
    """An answer of up to three words besides those of its frame."""
    start, end = answer_span(reply.text, *bounds)
    words = tokens(reply.text[start:end])
    inside = any(start < stop and begin < end for begin, stop in masked)
    while words and _head(words[-1], _HEADS):
        words.pop()
    if (
        inside
        or not 1 <= len(words) <= 3
        or any(word.low in NEVER_NAMES and word.low != "and" for word in words)
    ):
        return []
    end = start + words[-1].end
    if all(stem(word.low) in _HEADS or not word.text[0].isalpha() for word in words):
        return []
    return [Candidate(start, end, reply.text[start:end], 0.45, 1, "a short answer")]


def _clauses(text: str) -> list[tuple[int, int]]:
    """The sentences of `text`, cut at "but" as well."""
    clauses = []
    for start, end in sentences(text):
        cuts = [start, *(match.end() + start for match in _BUT.finditer(text[start:end])), end]
        clauses += [
            (begin, stop) for begin, stop in zip(cuts, cuts[1:], strict=False) if begin < stop
        ]
    return clauses


def _kind(param: Param, reply: Reply) -> list[Candidate]:
    """The words that name a kind.

    A question ("Are there any thai restaurants?") gives only what is before the parameter's own
    noun.
    """
    masked = closed_spans(param, reply)
    named = [*_modifiers(param, reply, masked), *_after_cue(reply, masked), *_served(reply, masked)]
    candidates: list[Candidate] = []
    for start, end in _clauses(reply.text):
        clause = reply.text[start:end]
        inside = [
            candidate for candidate in named if start <= candidate.start and candidate.end <= end
        ]
        if is_no_answer(clause):
            candidates += [
                candidate for candidate in inside if candidate.fit == 2 and _OFFER.match(clause)
            ]
            continue
        short = _short(reply, masked, (start, end))
        candidates += [
            *inside,
            *(c for c in short if not any(c.overlaps(n.start, n.end) for n in inside)),
        ]
    return _by_price(param, reply.text, candidates)


def _by_price(param: Param, text: str, candidates: list[Candidate]) -> list[Candidate]:
    """Words of price are values of a price range and of nothing else."""
    if "pric" in own_stems(param):
        return [
            Candidate(m.start(), m.end(), _plain(m.group()), 0.7, 2, "a word of price")
            for m in PRICE.finditer(text)
        ]
    return [
        candidate
        for candidate in candidates
        if not PRICE.fullmatch(text[candidate.start : candidate.end])
    ]


def _plain(word: str) -> str:
    return word.lower().removesuffix("ly") if word.lower().endswith(("ately", "ively")) else word


def _after_cue(reply: Reply, masked: Sequence[tuple[int, int]]) -> list[Candidate]:
    """Up to four words after "serves", "in the mood for"."""
    candidates, words = [], tokens(reply.text)
    for cue in _SERVES.finditer(reply.text):
        taken: list[Token] = []
        for word in (word for word in words if word.start >= cue.end()):
            gap = reply.text[taken[-1].end if taken else cue.end() : word.start].strip()
            stops = (word.low in STOPS_NAME and word.low not in ("and", "&")) or _head(word, _HEADS)
            if (
                gap
                or stops
                or len(taken) == 4
                or any(word.start < end and start < word.end for start, end in masked)
            ):
                break
            taken.append(word)
        while taken and taken[-1].low in ("and", "&", "the", "of"):
            taken.pop()
        if taken:
            candidates.append(
                Candidate(
                    taken[0].start,
                    taken[-1].end,
                    reply.text[taken[0].start : taken[-1].end],
                    0.5,
                    1,
                    "what is wanted",
                )
            )
    return candidates


def _served(reply: Reply, masked: Sequence[tuple[int, int]]) -> list[Candidate]:
    """Capitalised words within a sentence, after no preposition of place; surer after "serves"."""
    text, words = reply.text, tokens(reply.text)
    candidates = []
    for run in runs(text, words, masked):
        before = words[run.first - 1].low if run.first else ""
        if (
            before in ("in", "near", "around", "from", "at", "to")
            or words[run.first].low in GENERIC_NOUNS
        ):
            continue
        last = run.last
        if (
            last + 1 < len(words)
            and words[last].low == "and"
            and words[last + 1].capitalised
            and words[last + 1].low not in NEVER_NAMES
        ):
            last += 2
        served = before in (
            "serve",
            "serves",
            "serving",
            "offers",
            "like",
            "love",
            "want",
            "into",
            "with",
        )
        start, end = words[run.first].start, words[last - 1].end
        candidates.append(
            Candidate(start, end, text[start:end], 0.4, 1 if served else 0, "capitalised words")
        )
    return candidates


def _free(param: Param, reply: Reply) -> list[Candidate]:
    """The whole answer; only what follows "because" when it gives a reason.

    Of an answer to a question for a thing ("which carrier?") only the words that name one.
    """
    text = reply.text
    if is_written(param):
        return to_write(text)
    if not (is_narrative(param) or param.sensitive):
        reason = _REASON.search(text)
        return _whole(text, reason.end(), len(text)) if reason else _thing(param, text)
    start, end, sure = told(param, text)
    start = behind_lead(param, text, start, end)
    reason = _REASON.search(text, start, end) if asks_why(param) else None
    return _whole(text, reason.end() if reason else start, end, sure)


_NO_BEFORE = re.compile(r"\bno\s+$", re.I)
_IT_IS = re.compile(r"(?:it|that|this)(?:['’]?s| is| was)\s+(?=(?:the|an?|my|our)\b)", re.I)


def _whole(text: str, start: int, end: int, sure: float = SURE) -> list[Candidate]:
    start, end = answer_span(text, start, end, framed=False)
    lacks = _NO_BEFORE.search(before(text, start))
    first = re.compile(r"[^\W\d_]+").match(text, start) if lacks else None
    if lacks and first and first.group().lower() not in FUNCTION_WORDS | VERBS:
        start -= len(lacks.group())  # "no heating" is what is wrong
    if led := _IT_IS.match(text, start, end):
        start = led.end()
    if start >= end or all(word.low in FUNCTION_WORDS for word in tokens(text[start:end])):
        return []
    return [Candidate(start, end, text[start:end], sure, 0, "the whole answer")]


def _thing(param: Param, text: str) -> list[Candidate]:
    """The words that name a thing; less sure where the answer says something else as well."""
    led = behind_lead(param, text, 0, len(text))
    text = " " * led + text[led:]
    named = named_in(text)
    if named is None and _OF_PLACE.search(f"{param.description} {param.prompt}"):
        named = place_in(text)
    if named is None:
        return []
    value = text[named.start : named.end]
    sure = 0.45 if named.alone else 0.35
    return [Candidate(named.start, named.end, value, sure, 0, "what the answer names")]


_ARTICLE = re.compile(r"\W*(?P<phrase>(?:an|a|our|my) [^,.;:!?\n]{3,60}\w)\W*$", re.I)


def _noun_phrase(text: str) -> list[Candidate]:
    """An answer that is one thing with its article: "a jumble sale for the scouts"."""
    match = _ARTICLE.match(text)
    if match is None or any(word.low in VERBS for word in tokens(match["phrase"])):
        return []
    return [Candidate(*match.span("phrase"), match["phrase"], 0.45, 0, "one thing")]


_TITLE = re.compile(r"\bname of (?:the|your|a)\b|\bcalled\b", re.I)
_CALLED = re.compile(
    r"\b(?P<noun>[^\W\d_]+)(?:(?:['’]?s)? name)?(?:['’]?(?:s|re)|\s+(?:is|are|being))?"
    r"\s+(?:called|named|name(?:['’]?s|\s+is))\s+"
    r"(?P<name>[^\W_][\w'’&-]*(?:\s[\w'’&-]+){0,3})"
    r"(?=\s*(?:$|[.,;:!?()\n]|\s{2}|\band\s+(?:the|my|our|i|we|it)\b))",
    re.I,
)
_ITSELF = word_set("the it its it's it’s that thats they we were we're this")
"""Subjects of an answer that are what was asked about: "it's called Snips"."""
_NOUN_BEFORE = re.compile(r"\b(?P<noun>[^\W\d_]+)\s*[:=]?\s+(?:the\s+)?$", re.I)
_BEHALF = re.compile(
    r"\b(?:on behalf of|(?:i|we) work (?:for|at)|writing (?:from|for)|here at)\s+(?:the\s+)?$", re.I
)
_FIRMS = frozenset(map(stem, ("company", "firm", "business", "employer", "organisation", "client")))
_FOR_THE = re.compile(r"\bfor (?:the|our|my)\s+$", re.I)
_ENDS = re.compile(
    r"\s*(?:$|[.,;:!?()\n]|\s{2}|(?:please|pls|from|on|at|for|until|till|to|with|and|arriving"
    r"|tonight|tomorrow|today|next|this)\b)",
    re.I,
)


def is_title(param: Param) -> bool:
    """Whether the values are names of things: "name of the boat"."""
    return (
        param.type is ParamType.TEXT
        and not param.pattern
        and _TITLE.search(f"{param.description} {param.prompt}") is not None
        and not is_of_person(param)
    )


def is_thing(param: Param) -> bool:
    """Whether the values are words for a thing, and no name of one, kind, story or inscription."""
    told = is_title(param) or is_kind(param) or is_narrative(param) or is_written(param)
    return param.type is ParamType.TEXT and not (param.pattern or param.sensitive or told)


def _titled(param: Param, reply: Reply) -> list[Candidate]:
    """The name of a thing behind its noun or "for the": "our band is called Red Kettle"."""
    if not is_title(param):
        return []
    text, own = reply.text, own_stems(param)
    for match in _CALLED.finditer(text):
        if stem(match["noun"]) in own or (not reply.strict and match["noun"].lower() in _ITSELF):
            return [Candidate(*match.span("name"), match["name"], 0.7, 2, "what it is called")]
    candidates = []
    for run in runs(text, tokens(text), closed_spans(param, reply)):
        lead = before(text, run.start)
        noun = _NOUN_BEFORE.search(lead)
        named = (
            named_before(param, text, run.start)
            or (noun and stem(noun["noun"]) in own)
            or (own & _FIRMS and _BEHALF.search(lead))
        )
        if named or (_FOR_THE.search(lead) and _ENDS.match(text, run.end)):
            value, sure = text[run.start : run.end], 0.65 if named else 0.55
            candidates.append(Candidate(run.start, run.end, value, sure, 2, "name of a thing"))
    return candidates


_OF_PLACE = re.compile(r"\b(?:where|place|location|spot)\b", re.I)


_ABOUT = re.compile(r"(?<=\w)\s+(?:the|an?|your)\s+\w+\s+(?:is|are|was) (?:about|for|on)\b")
"""What a thing belongs to: "the item the complaint is about" is no complaint."""


def is_narrative(param: Param) -> bool:
    """Whether the parameter's values are whole sentences."""
    described = _ABOUT.sub(" ", f"{param.description}; {param.prompt}".lower())
    words = [*split_name(param.name), *re.findall(r"[a-z]+", described)]
    return any(
        len(example.split()) > _SHORT for example in param.examples
    ) or not _NARRATIVE.isdisjoint(map(stem, words))


_LOST = re.compile(r"\b(?:lost|lose|left|leave|forgot|forget|found|missing)\b", re.I)
_LEFT = re.compile(
    r"\b(?:lost|left|forgot|forgotten|misplaced)\s+(?P<thing>(?:my|an?|the|our|his|her|some)(?:\s+"
    r"(?!(?:at|in|on|with|behind|by|under|yesterday|last|this|today|tonight|somewhere|here|there"
    r"|and|when|when|from|to|i|we)\b)[\w'’-]+){1,4})",
    re.I,
)


def _left(param: Param, text: str) -> list[Candidate]:
    """What was lost, for a parameter that asks for just that: "I left my scarf at yours"."""
    wording = _wording_of(param)
    asked = _LOST.search(wording) and not re.search(r"\bwhere\b", wording, re.I)
    match = _LEFT.search(text) if asked else None
    return (
        [Candidate(*match.span("thing"), match["thing"], 0.6, 1, "what was lost")] if match else []
    )


_WORDED = re.compile(
    r"\b(?P<noun>[^\W\d_]+)\b(?:(?:\s+(?:with|that|should|to|can|could|please|which|the|it|words?"
    r"|text)){0,6}\s*\b(?:say|says|saying|reads?|reading|written)\b\s*[:,]?"
    r"|(?:\s+(?:for|to|on|about)\s+(?:(?:the|my|your|our)\s+)?[^\W\d_]+)?\s*:)(?=\s*\w)",
    re.I,
)
"""Where a text is given by its noun: "a card that says …", "note for the driver: …"."""


_QUOTED = re.compile(
    r"\b(?:write|writes|written|put|says?|saying|reads?|reading|print(?:ed)?|pipe"
    r"|ice)\b[^\"“”.;!?]{0,30}[\"“](?P<words>[^\"“”\n]+)[\"”]",
    re.I,
)
_WRITTEN = re.compile(
    r"\b(?:writ\w+|words?|messages?|inscription|lettering|cards?|note|text|says?)\b", re.I
)


_ON_THE_THING = re.compile(
    r"\b(?:(?:should|to|can|that|could)\s+(?:say|read)s?\b\s*:?|(?:saying|reading)\s*:?"
    r"|(?:inscription|wording|lettering|message)\s*:?)\s+(?P<words>[A-Z0-9][^.!?;\n]*)"
    r"|\bwith\s+(?P<named>[A-Z0-9][^.!?;,\n]{1,60}?)\s+(?:written\s+)?on (?:it|top|the \w+)\b"
)
"""Words to be written, by what leads to them: "it should say Happy birthday"."""


def _quoted(param: Param, text: str) -> list[Candidate]:
    """The words that are to be written, for a parameter that is just that: mostly in quotes."""
    written = is_written(param)
    if not (written or _WRITTEN.search(f"{param.name} {param.description} {param.prompt}")):
        return []
    match = _QUOTED.search(text) or (_MARKED.search(text) if written else None)
    if match is None and written and (led := _ON_THE_THING.search(text)):
        start, end = led.span("words") if led["words"] else led.span("named")
        start, end = trim(text, start, up_to_other(text, start, end))
        return [Candidate(start, end, text[start:end], 0.8, 1, "what is to be written")]
    return (
        [Candidate(*match.span("words"), match["words"], 0.8, 1, "what is to be written")]
        if match
        else []
    )


_MARKED = re.compile(r"(?:^|\s)[\"“](?P<words>[^\"“”\n]{2,})[\"”](?=\W|$)")


def _worded(param: Param, text: str) -> list[Candidate]:
    """The words that a message gives for a text by its noun: "a card that says: Happy birthday"."""
    own = {stem(word) for word in split_name(param.name)}
    for match in _WORDED.finditer(text):
        if stem(match["noun"]) in own:
            line = text.find("\n", match.end())
            end = up_to_other(text, match.end(), len(text) if line < 0 else line)
            start, end = trim(text, match.end(), end)
            return [Candidate(start, end, text[start:end], 0.8, 1, "what its noun says")]
    return []


_LEAVE = re.compile(
    r"\b(?:leave|put|drop|hide)\s+(?:it|them|(?:the|my)\s+\w+)\s+"
    r"(?P<where>(?:in|with|at|behind|by|under|on|round|next to|outside|inside)\s[^.,;!?\n]*\w)",
    re.I,
)


def _left_where(param: Param, text: str) -> list[Candidate]:
    """Where something is to be left, for a parameter that asks just that."""
    asked = re.search(r"\bwhere\b.*\b(?:leave|left|put)\b", _wording_of(param), re.I)
    match = _LEAVE.search(text) if asked else None
    if match is None:
        return []
    start, end = answer_span(text, *match.span("where"), framed=False)
    end = start + len(re.sub(r"\s+(?:on|at|for|from)\s*$", "", text[start:end]))
    return [Candidate(start, end, text[start:end], 0.6, 1, "where to leave it")]


def _wording_of(param: Param) -> str:
    return f"{param.description} {param.prompt}"


_BECAUSE = re.compile(
    r"\b(?:because(?: of)?|cos|cuz|due to|the reason (?:is|being)(?: that)?)\s+", re.I
)


def _because(param: Param, text: str) -> list[Candidate]:
    """The reason that a message gives for what it asks."""
    match = _BECAUSE.search(text) if asks_why(param) else None
    if match is None:
        return []
    first = sentences(text[match.end() :])[:1] or [(0, 0)]
    start, end = answer_span(text, match.end(), match.end() + first[0][1], framed=False)
    return [Candidate(start, end, text[start:end], DOUBTED, 1, "a reason")] if start < end else []


def _spoken_of(param: Param, text: str) -> list[Candidate]:
    """The one sentence that tells of what the parameter is named for: "she has a nut allergy"."""
    own = {stem(word) for word in split_name(param.name)} - _NARRATIVE - _HEADS
    if is_kind(param) or is_title(param) or not own:
        return []
    told = [
        (start, end)
        for start, end in sentences(text)
        if any(is_family(word.low, own) for word in tokens(text[start:end]))
    ]
    if len(told) != 1 or not _STATES.search(sentence := text[slice(*told[0])]):
        return []
    if is_no_answer(sentence) or is_request(sentence) or text[told[0][1] :].startswith("?"):
        return []
    start, end = trim(text, *told[0])
    return [Candidate(start, end, text[start:end], 0.5, 1, "speaks of it")]


_STATES = re.compile(
    r"^\W*(?:[\w'’-]+\s+){1,6}(?:has|have|had|takes?|is|are|gets?|suffers?)\b", re.I
)
"""How a sentence begins that says how somebody is."""


def _is_moment(param: Param, reply: Reply) -> bool:
    """Whether an answer is only a day, a time or a sum, which no free text is.

    It is not when the question asks when, how much or how long.
    """
    asked = f"{param.description} {param.prompt} {reply.prompt}"
    if len(reply.text) > LONGEST or re.search(
        r"\b(?:when|day|date|time|how much|how long)\b", asked, re.I
    ):
        return False
    kept = list(reply.text.lower())
    for start, end in closed_spans(param, reply):
        kept[start:end] = " " * (end - start)
    rest = "".join(kept)
    beside = _BESIDE_A_MOMENT if is_request(reply.text) else FUNCTION_WORDS
    return rest != reply.text.lower() and beside.issuperset(re.findall(r"[^\W_]+", rest))


_BESIDE_A_MOMENT = FUNCTION_WORDS | VERBS | {"same", "time"}
"""Words of a wish for another day or time: "can we do tuesday instead, same time"."""


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The values of an open parameter in a reply.

    With a declared pattern, only what matches it. Without a question, only what was lost, follows
    its noun, or is quoted.
    """
    if param.pattern:
        return by_pattern(param, reply.text)
    if titled := _titled(param, reply):
        return titled
    if reply.strict or not re.search(r"\w", reply.text) or _is_moment(param, reply):
        return (
            (
                _left(param, reply.text)
                or _worded(param, reply.text)
                or _quoted(param, reply.text)
                or _left_where(param, reply.text)
                or _because(param, reply.text)
                or said_for(param, reply)
                or _spoken_of(param, reply.text)
            )
            if reply.strict
            else []
        )
    if is_kind(param):
        return _kind(param, reply) or _noun_phrase(reply.text)
    if is_written(param):
        return _free(param, reply)
    if is_no_answer(begins(reply.text)) or _is_known(reply):
        return []
    if is_remark(reply.text, param) and not param.sensitive:
        return []
    if not _says_no(param, reply):
        return _free(param, reply)
    if _NO_CLAUSE.match(reply.text):
        return []
    return [replace(told, confidence=DOUBTED) for told in _free(param, reply)]


def _is_known(reply: Reply) -> bool:
    """Whether an answer is a value that is known already, and nothing else: "the main hall"."""
    said = _telling(reply.text)
    return bool(said) and any(
        said == _telling(value) for value in reply.filled.values() if isinstance(value, str)
    )


def _telling(text: str) -> list[str]:
    words = re.findall(r"[^\W_]+", text[:LONGEST].lower())
    return [word for word in words if word not in FUNCTION_WORDS]


_NO_CLAUSE = re.compile(
    r"\W*(?:no|nope|nah)\b\W*(?:(?:lol|ha(?:ha)*|sorry)\b\W*)*"
    r"(?:they|we|i|he|she|you)(?:['’]?(?:re|s|m|ve|ll|d)\b|\s)(?!\s*(?:mean|said)\b)",
    re.I,
)
_YES_OR_NO = re.compile(
    r"(?:^|[.!?,:]\s*)\W*(?:is|are|was|were|do|does|did|has|have|will|would|can|could|should|any\w*)\b",
    re.I,
)


def _says_no(param: Param, reply: Reply) -> bool:
    """Whether an answer says no to something that was not asked: "no, just tea and cake"."""
    return _PLAIN_NO.match(reply.text) is not None and not _YES_OR_NO.search(
        f"{param.description}. {reply.prompt}"
    )


_PLAIN_NO = re.compile(
    r"\W*(?:no|nope|nah)\b(?:\s*[,.!]|\s+(?:lol|ha(?:ha)*|they|we|i|he|she|you)\b)", re.I
)
