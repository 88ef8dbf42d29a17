"""Texts that a message gives though nobody asked: what was lost, what its noun says, a reason."""

from __future__ import annotations

import re

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.closed_spans import closed_spans
from langmem_ext.waiting.extract.english.leadin import answer_span
from langmem_ext.waiting.extract.english.lexicon import word_set
from langmem_ext.waiting.extract.english.tokens import before, runs, sentences, tokens, trim
from langmem_ext.waiting.extract.english.vocabulary import own_stems, split_name, stem
from langmem_ext.waiting.extract.names.bystanders import is_firm
from langmem_ext.waiting.extract.names.name import PETS
from langmem_ext.waiting.extract.names.openness import is_no_answer, named_before
from langmem_ext.waiting.extract.names.person import is_person
from langmem_ext.waiting.extract.names.telling import (
    DOUBTED,
    asks_why,
    is_request,
    is_written,
    up_to_other,
)
from langmem_ext.waiting.extract.names.texts.asks import NARRATIVE, is_kind, is_title, wording_of
from langmem_ext.waiting.extract.names.texts.kind import HEADS
from langmem_ext.waiting.extract.names.texts.objects import is_family
from langmem_ext.waiting.extract.names.texts.what_for import said_for
from langmem_ext.waiting.extract.reply import Reply

_CALLED = re.compile(
    r"\b(?P<noun>[^\W\d_]+)(?:(?:['’]?s)? name)?(?:['’]?(?:s|re)|\s+(?:is|are|being))?"
    r"\s+(?:called|named|name(?:['’]?s|\s+is))\s+"
    r"(?P<name>[^\W_][\w'’&-]*(?:\s[\w'’&-]+){0,3})"
    r"(?=\s*(?:$|[.,;:!?()\n]|\s{2}|\band\s+(?:the|my|our|i|we|it)\b))",
    re.I,
)
_ITSELF = word_set(
    "the it its it's it’s that thats they we were we're this she she's shes he he's hes"
)
"""Subjects of an answer that are what was asked about: "it's called Snips"."""
_NOUN_BEFORE = re.compile(r"\b(?P<noun>[^\W\d_]+)\s*[:=]?\s+(?:the\s+)?$", re.I)


_BEHALF = re.compile(
    r"\b(?:on behalf of|(?:i|we) work (?:for|at)|(?:writing|calling|ringing) (?:from|for)|here at"
    r"|this is|i['’]?m from|we['’]?re from)\s+(?:the\s+)?$",
    re.I,
)
_THIS_IS = re.compile(r"\bthis is\s+(?:the\s+)?$", re.I)
_HERE = re.compile(r"\s+here\b", re.I)
"""What follows the name of who writes, at the beginning: "Dawson Foods here"."""
_FIRMS = frozenset(map(stem, ("company", "firm", "business", "employer", "organisation", "client")))


_FOR_THE = re.compile(r"\bfor (?:the|our|my)\s+$", re.I)
_ENDS = re.compile(
    r"\s*(?:$|[.,;:!?()\n]|\s{2}|(?:please|pls|from|on|at|for|until|till|to|with|and|arriving"
    r"|tonight|tomorrow|today|next|this)\b)",
    re.I,
)


def titled(param: Param, reply: Reply) -> list[Candidate]:
    """The name of a thing behind its noun or "for the": "our band is called Red Kettle"."""
    if not is_title(param):
        return []
    text, own = reply.text, own_stems(param)
    for match in _CALLED.finditer(text):
        itself = not reply.strict and match["noun"].lower() in _ITSELF
        animal = own & PETS and match["name"][:1].isupper()  # "a shih tzu called Mabel"
        if stem(match["noun"]) in own or itself or animal:
            return [Candidate(*match.span("name"), match["name"], 0.7, 2, "what it is called")]
    candidates = []
    for run in runs(text, tokens(text), closed_spans(param, reply)):
        lead = before(text, run.start)
        noun = _NOUN_BEFORE.search(lead)
        named = (
            named_before(param, text, run.start)
            or (noun and stem(noun["noun"]) in own)
            or (own & _FIRMS and _acts_for(reply, run.start, run.end))
        )
        if named or (_FOR_THE.search(lead) and _ENDS.match(text, run.end)):
            value, sure = text[run.start : run.end], 0.65 if named else 0.55
            candidates.append(Candidate(run.start, run.end, value, sure, 2, "name of a thing"))
    return candidates


def _acts_for(reply: Reply, start: int, end: int) -> bool:
    """Whether somebody writes for what is named: "Dawson Foods here", "I work for Acme".

    "Anna here" and "this is Anna" are a person where one is looked for.
    """
    text, lead = reply.text, before(reply.text, start)
    people = any(is_person(other) for other in reply.others)
    if people and not is_firm(tokens(text[start:end])):
        return _BEHALF.search(lead) is not None and _THIS_IS.search(lead) is None
    if _BEHALF.search(lead):
        return True
    opens = re.search(r"(?:^|[.!?\n,]|\b(?:hi|hello|hey|morning))\s*$", lead, re.I)
    return opens is not None and _HERE.match(text, end) is not None


_LOST = re.compile(r"\b(?:lost|lose|left|leave|forgot|forget|found|missing)\b", re.I)
_LEFT = re.compile(
    r"\b(?:lost|left|forgot|forgotten|misplaced)\s+(?P<thing>(?:my|an?|the|our|his|her|some)(?:\s+"
    r"(?!(?:at|in|on|with|behind|by|under|yesterday|last|this|today|tonight|somewhere|here|there"
    r"|and|when|when|from|to|i|we)\b)[\w'’-]+){1,4})",
    re.I,
)


def _left(param: Param, text: str) -> list[Candidate]:
    """What was lost, for a parameter that asks for just that: "I left my scarf at yours"."""
    wording = wording_of(param)
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
    r"|ice)\b[^\"“”.;!?]{0,30}(?:[\"“](?P<words>[^\"“”\n]+)[\"”]"
    r"|(?<!\w)['‘](?P<single>[^'‘’\n]+)['’](?!\w))",
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
    if match is None:
        return []
    quoted = "single" if match.re is _QUOTED and match["single"] else "words"
    return [Candidate(*match.span(quoted), match[quoted], 0.8, 1, "what is to be written")]


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
    asked = re.search(r"\bwhere\b.*\b(?:leave|left|put)\b", wording_of(param), re.I)
    match = _LEAVE.search(text) if asked else None
    if match is None:
        return []
    start, end = answer_span(text, *match.span("where"), framed=False)
    end = start + len(re.sub(r"\s+(?:on|at|for|from)\s*$", "", text[start:end]))
    return [Candidate(start, end, text[start:end], 0.6, 1, "where to leave it")]


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
    own = {stem(word) for word in split_name(param.name)} - NARRATIVE - HEADS
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
    asks = NOTE_THAT.search(sentence)
    start, end = trim(text, told[0][0], told[0][0] + asks.start() if asks else told[0][1])
    return [Candidate(start, end, text[start:end], 0.5, 1, "speaks of it")]


NOTE_THAT = re.compile(
    r"(?<![\s,;–—-])[\s,;–—-]+(?:(?:so|and|but)\s+)?"
    r"(?:(?:can|could|would|will)\s+(?:you|u)|please|pls)\s+"
    r"(?:please\s+)?(?:note|add|mention|put|write|remember|bear|keep|tell|pass|take|make)\b.*$",
    re.I,
)
"""What asks that something be kept in mind: "…, can you note that"."""


_STATES = re.compile(
    r"^\W*(?:[\w'’-]+\s+){1,6}(?:has|have|had|takes?|is|are|gets?|suffers?)\b", re.I
)
"""How a sentence begins that says how somebody is."""


_IT_IS_CALLED = re.compile(
    r"\b(?P<noun>[^\W\d_]{3,})(?:\s+(?:(?:that|which)\s+)?(?:we|i|they|she|he)(?:['’]\w+)?\s+\w+"
    r"(?:\s+\w+)?)?\s+(?:is|will be|would be)\s+(?P<name>(?-i:[A-Z])[\w'’-]*(?:\s+[\w'’-]+){0,4}?)"
    r"(?=\s*(?:$|[.,;!?\n]))",
    re.I,
)


def _is_called(param: Param, text: str) -> list[Candidate]:
    """The name that a message gives for a thing by its noun: "the play we chose is Old Times"."""
    own = {stem(word) for word in split_name(param.name)} - HEADS
    match = _IT_IS_CALLED.search(text)
    if match is None or stem(match["noun"].lower()) not in own or is_kind(param):
        return []
    return [Candidate(*match.span("name"), match["name"], 0.65, 1, "what its noun is")]


def said_unasked(param: Param, reply: Reply) -> list[Candidate]:
    """What a message that answers nothing says of a text: what was lost, quoted, or a reason."""
    text = reply.text
    return (
        _left(param, text)
        or _worded(param, text)
        or _quoted(param, text)
        or _is_called(param, text)
        or _left_where(param, text)
        or _because(param, text)
        or said_for(param, reply)
        or _spoken_of(param, text)
    )
