"""Names of people, whole or only the first or last name, as the parameter asks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.leadin import answer_span
from langmem_ext.waiting.extract.lexicon import GENERIC_NOUNS, NEVER_NAMES, word_set
from langmem_ext.waiting.extract.mask import closed_spans
from langmem_ext.waiting.extract.numerals import UNITS
from langmem_ext.waiting.extract.openness import is_no_answer, keep
from langmem_ext.waiting.extract.reply import Reply
from langmem_ext.waiting.extract.tokens import Token, before, runs, tokens
from langmem_ext.waiting.extract.vocabulary import split_name
from langmem_ext.waiting.param import Param, ParamType

_CUE = re.compile(
    r"(?:\b(?:name(?:'s| is| would be| will be|:)?|named|called|call me|i am|i'm|im|this is|it is|it's|to|for|with|from|by|under|mr|mrs"
    r"|ms|miss|dr|doctor|as|is|contact|send|pay))\W*(?:(?:my|our|the|his|her)\s+)?$",
    re.I,
)
_SURE = re.compile(r"\b(?:name(?:'s| is|:)|named|called|call me|under(?: the)?(?: name)?(?: of)?)\W*$", re.I)
_FIRST_NAMED = re.compile(r"\b(?:first|given|fore)\s*-?\s*name(?:'s| is|:)?\s*(?:is\s+)?$", re.I)
_LAST_NAMED = re.compile(r"\b(?:(?:last|family|sur|second)\s*-?\s*name)(?:'s| is|:)?\s*(?:is\s+)?$", re.I)
_LOOSE_NAME = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*\.?")
_KIN = word_set("aunt aunty auntie uncle grandma grandpa")
_AFTER_CUE = re.compile(
    r"\b(?:to|for|with|name is|named|call me|i'm|i am|this is|it's)\s+(?:my\s+|mr\.?\s+|mrs\.?\s+|dr\.?\s+)?(?=[a-z])", re.I
)
_REMARK = re.compile(r"\W*(?:that'?s|that is|this is|you|you're|what a|how)\s+[a-z]", re.I)
_PART_NAMED = re.compile(r"\b(first|given|last|family|second|sur(?=name))(?=[\w ,/&-]{0,14}name)", re.I)
_PARTICLES = word_set("de la del della du dos das da di van von der den ter bin al el le")
_NO_NAME = NEVER_NAMES | GENERIC_NOUNS | UNITS.keys()
"""Words that written small are no name."""
_TITLES = frozenset(("mr", "mrs", "ms", "miss", "dr", "doctor", "sir", "madam"))


def _part(param: Param) -> str:
    """Which part of a name is asked for: `first`, `last` or the whole."""
    words = {*split_name(param.name), *re.findall(r"[a-z]+", param.description.lower())}
    if words & {"first", "given", "forename", "firstname"}:
        return "" if words & {"last", "surname", "lastname", "full"} else "first"
    return "last" if words & {"last", "family", "surname", "lastname"} else ""


def _fit(lead: str, part: str) -> int:
    if _FIRST_NAMED.search(lead):
        return -1 if part == "last" else 3
    if _LAST_NAMED.search(lead):
        return -1 if part == "first" else 3
    if _SURE.search(lead):
        return 2
    return 1 if _CUE.search(lead) else 0


def _groups(reply: Reply, masked: Sequence[tuple[int, int]]) -> list[list[Token]]:
    """The capitalised names of a reply, as words, without titles."""
    words = tokens(reply.text)
    found: list[list[Token]] = []
    for run in runs(reply.text, words, masked):
        first = run.first
        while first and words[first - 1].low in _KIN | _PARTICLES and reply.text[words[first - 1].end : words[first].start].isspace():
            first -= 1
        group = [word for word in words[first : run.last] if word.low.strip(".") not in _TITLES and _LOOSE_NAME.fullmatch(word.text)]
        if not group or all(word.low in GENERIC_NOUNS for word in group):
            continue
        if found and re.fullmatch(r"\s*,\s*", reply.text[found[-1][-1].end : group[0].start]):
            found[-1].extend(group)
        else:
            found.append(group)
    return found


def _small(reply: Reply, masked: Sequence[tuple[int, int]]) -> list[Token]:
    """A name written small: the whole answer, of up to three words that could be a name's."""
    if is_no_answer(reply.text) or _REMARK.match(reply.text):
        return []
    start, end = answer_span(reply.text)
    group = [word for word in tokens(reply.text) if word.start >= start and word.end <= end]
    group = [word for word in group if word.low.strip(".") not in _TITLES]
    if not _plain(group):
        group = next((after for cue in _AFTER_CUE.finditer(reply.text) if (after := _words_after(reply.text, cue.end()))), [])
        start, end = (group[0].start, group[-1].end) if group else (0, 0)
    return group if group and _plain(group) and not any(start < stop and begin < end for begin, stop in masked) else []


def _plain(group: Sequence[Token]) -> bool:
    return 1 <= len(group) <= 3 and all(word.low not in _NO_NAME and _LOOSE_NAME.fullmatch(word.text) for word in group)


def _words_after(text: str, start: int) -> list[Token]:
    """Up to three words from `start` on that could be a name's."""
    group: list[Token] = []
    for word in tokens(text[start:]):
        moved = Token(word.text, word.start + start, word.end + start)
        gap = text[(group[-1].end if group else start) : moved.start].strip()
        if word.low in _NO_NAME or len(group) == 3 or gap:
            break
        group.append(moved)
    return group


def _chosen(group: Sequence[Token], part: str, reply: Reply) -> Sequence[Token]:
    """The words of a name that the parameter asks for; none when it holds only the other part."""
    if part and len(group) == 1:
        return group if _asked_first(part, reply) else ()
    if part == "first":
        return group[:1]
    if part == "last":
        return next((group[at:] for at in range(1, len(group)) if group[at].low in _PARTICLES), group[-1:])
    return group


def _asked_first(part: str, reply: Reply) -> bool:
    """Whether a lone name is this part: when both parts are asked for, it is the one that the question names first."""
    if not any(other.type == ParamType.PERSON and _part(other) not in ("", part) for other in reply.others):
        return True
    named = [match[1].lower() for match in _PART_NAMED.finditer(reply.prompt)]
    return ("first" if not named or named[0] in ("first", "given") else "last") == part


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The names of people in a reply, or their first or last parts."""
    masked = closed_spans(param, reply)
    part, text = _part(param), reply.text
    groups = _groups(reply, masked)
    confidence = 0.75
    if not groups and not reply.strict:
        small = _small(reply, masked)
        groups, confidence = ([small], 0.5) if small else ([], confidence)
    found = []
    for group in groups:
        fit = _fit(before(text, group[0].start), part)
        words = group if fit == 3 else _chosen(group, part, reply)
        if words:
            start, end = words[0].start, words[-1].end
            if re.search(r"['’]s$", text[start:end]):
                end -= 2
            found.append(Candidate(start, end, text[start:end], min(0.9, confidence + 0.05 * max(fit, 0)), fit, "name of a person"))
    return keep(reply, found, strict_fit=2)
