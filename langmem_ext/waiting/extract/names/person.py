"""Names of people, whole or only the first or last name, as the parameter asks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.closed_spans import closed_spans
from langmem_ext.waiting.extract.english.concepts import WORDS
from langmem_ext.waiting.extract.english.leadin import answer_span
from langmem_ext.waiting.extract.english.lexicon import (
    FUNCTION_WORDS,
    GENERIC_NOUNS,
    NEVER_NAMES,
    VERBS,
    word_set,
)
from langmem_ext.waiting.extract.english.tokens import Token, before, runs, tokens
from langmem_ext.waiting.extract.english.vocabulary import own_stems, split_name, stem
from langmem_ext.waiting.extract.names.openness import is_no_answer, keep
from langmem_ext.waiting.extract.names.telling import is_remark
from langmem_ext.waiting.extract.numbers.numerals import UNITS
from langmem_ext.waiting.extract.reply import Reply

_CUE = re.compile(
    r"(?:\b(?:name(?:'s| is| would be| will be|:)?|named|called|call me|i am|i'm|im|this is|it"
    r" is|it's|to|for|with|from|by|under|mr|mrs"
    r"|ms|miss|dr|doctor|as|is|contact|send|pay))\W*(?:(?:my|our|the|his|her)\s+)?$",
    re.I,
)
_SURE = re.compile(
    r"\b(?:name(?:['’]?s| is| will be| would be|:)?|name (?:for|on|of)(?: (?:the|my|this|our)"
    r" \w+)?(?: is| would be| will be|:)?"
    r"|named|called|call me|under(?: the)?(?: name)?(?: of)?)\W*$",
    re.I,
)
_OWN_NAME = re.compile(
    r"\bmy (?:own |full )?name(?:['’]?s| is|:)?\s*(?:dr|mrs?|ms|miss)?\.?\s*$", re.I
)
_INTRODUCED = re.compile(
    r"(?:^|[.,;!?]|\b(?:and|hi|hello|hey|so|yes|well))\W*(?:i am|i['’]?m|this is|it is|it['’]?s)(?:"
    r" for)?\W*$",
    re.I,
)
"""Words that introduce whoever speaks, or whom it is for, where a name follows and not a state."""
_INTRODUCED_ENDS = re.compile(
    r"\W*(?:$|[.,;!?]|(?:and|here|speaking|calling|from|again|i|we|table|party|please|for)\b)", re.I
)
_HERE = re.compile(r"\s+(?:here|speaking|calling)\b", re.I)
_TITLED = re.compile(r"\b(?:mr|mrs|ms|miss|mx|dr|doctor|prof|professor)\.?\s*$", re.I)
_STATES = word_set(
    "hungry vegan vegetarian sorry ready happy busy late new sure done urgent available flexible"
    " free interested tired sick ok okay back single married pregnant allergic disabled diabetic"
    " early lost home out away glad sad angry upset fine good great afraid confused perfect mad"
    " broke unwell ill poorly alone awake asleep stuck bored hurt dead blind deaf dizzy sore tall"
    " short old young rich poor safe scared curious local foreign abroad downstairs upstairs"
    " outside inside serious healthy lucky unhappy retired"
)
_NAME_WORDS = word_set("name name's names surname")
"""What a capitalised word before a name may be: "Name's Ann Lee"."""
_ALSO_NAMES = word_set("will may")
"""Names that are function words when they are written small."""
_FIRST_NAMED = re.compile(r"\b(?:first|given|fore)\s*-?\s*name(?:'s| is|:)?\s*(?:is\s+)?$", re.I)
_LAST_NAMED = re.compile(
    r"\b(?:(?:last|family|sur|second)\s*-?\s*name)(?:'s| is|:)?\s*(?:is\s+)?$", re.I
)
_LOOSE_NAME = re.compile(r"[^\W\d_]+(?:['’.-][^\W\d_]+)*\.?")
_KIN = word_set("aunt aunty auntie uncle grandma grandpa")
_AFTER_CUE = re.compile(
    r"\b(?:to|for|with|under|name is|name['’]?s|named|call me|i'm|i am|this"
    r" is|it's)\s+(?:my\s+|mr\.?\s+|mrs\.?\s+|dr\.?\s+)?(?=[a-z])",
    re.I,
)
_REMARK = re.compile(
    r"\W*(?:(?:that'?s|that is)\s+(?:\w+\s+\w+\s+\w|[a-z]+\W*$)|(?:you|you're|what a|how)\s+[a-z])",
    re.I,
)
_GO_AHEAD = re.compile(r"\b(?:go|going) (?:ahead|on)\b", re.I)
_NAME_IS = re.compile(
    r"\b(?:name(?:['’]s| is|:)|my names|in the name of|under the name(?: of)?)\s+(?=[a-z])", re.I
)
_DEMONYM = re.compile(r"[A-Z][a-z]{2,}(?:ese|ish|ian|ean|ican)|[A-Z][a-z]ish")
_PART_NAMED = re.compile(
    r"\b(first|given|last|family|second|sur(?=name))(?=[\w ,/&-]{0,14}name)", re.I
)
_PARTICLES = word_set("de la del della du dos das da di van von der den ter bin al el le")
_NO_NAME = (
    NEVER_NAMES
    | GENERIC_NOUNS
    | UNITS.keys()
    | word_set("name's names name’s born always usually often never sometimes normally generally")
)
"""Words that written small are no name."""
_DOES = frozenset(map(stem, VERBS))
"""Stems of what somebody does: "my friend lives next door"."""
_NO_PART = word_set(
    "monday tuesday wednesday thursday friday saturday sunday january february march april june"
    " july august september october november december morning afternoon evening night dear team"
    " support service customer happy thank good best regards christmas easter new north south east"
    " west street road avenue lane close square park station airport hotel"
)
"""Words that are capitalised for other reasons, or begin the names of places."""
_NAME_SHAPE = re.compile(
    r"(?:[DO]['’]|Mc|Mac)?[^\W\d_a-z][^\W\d_]*[a-zà-öø-ÿ][^\W\d_]*(?:['’-][^\W\d_]+)*|[A-Z]\.?"
)
_SOMEWHERE = re.compile(
    r"\b(?:in|at|from|near|around|via|on|to|into|towards?|through|visit|visiting|of|about|the|an?"
    r"|this|that)\s+(?:the\s+)?$",
    re.I,
)
"""Words after which capitalised words are rather a place or a thing."""
_LEADS = re.compile(
    r"\b(?:for|with|by|under|is|it['’]?s|i['’]?m|am|contact|call|ask"
    r" for|see|meet|mr|mrs|ms|miss|dr|doctor|name|customer|patient|visitor"
    r"|guest|owner|client|tenant|student|and|from me|regards|yours|thanks)\.?\s+$",
    re.I,
)
"""Words that a name may follow at once."""
_THINGS = re.compile(
    r"(?:tion|sion|ness|ship|ity|ware)s?$|^(?:lessons?|tests?|tours?|rooms?|class(?:es)?|courses?"
    r"|treatments?|trips?|menus?|plans?|tickets?"
    r"|change|repairs?|service|session|meetings?|appointments?|bookings?|checks?|check-?ups?|party"
    r"|packages?|cards?|passes|pass|days?|weeks?"
    r"|chips|burgers?|cheeseburgers?|pizza|salad|and)$",
    re.I,
)
"""Words for what can be had or booked, which are capitalised in titles."""
_STREETS = re.compile(
    r"\b(?:street|st|road|rd|avenue|ave|lane|drive|close|square|park|station|airport|hotel|court"
    r"|terrace|gardens?|hill|bridge|restaurant|"
    r"bar|cafe|inn|hospital|school|university|bank|ltd|inc|gmbh|llc)\b",
    re.I,
)
KIN = (
    r"(?:wife|husband|partner|spouse|girlfriend|boyfriend|fianc[eé]e?|mother|mom|mum|father|dad"
    r"|sister|brother|son|daughter|friend|kid|child"
    r"|baby|guest|colleague|co-?worker|boss|client|cousin|aunt|uncle|grandma|grandpa|grandmother"
    r"|grandfather|grandson|granddaughter|roommate"
    r"|flatmate|neighbou?r|mate|niece|nephew|nan|gran|granny|grandad|aunty|auntie|landlord|landlady|tenant|teacher|assistant|manager"
    r"|secretary|patient|visitor|customer|pupil"
    r"|student|boy|girl|twin)"
)
"""Whom one has, as the source of a regular expression."""
_KIN_BEFORE = re.compile(rf"\b{KIN}(?:['’]s name is|\s+is called|\s+called|,)?\s+$", re.I)
_KIN_SMALL = re.compile(
    rf"\b(?:my|our|his|her|their)\s+(?:\w+\s+)?{KIN}(?:['’]s name is|\s+is"
    r" called|\s+called|,)?\s+(?=[a-z])",
    re.I,
)
_GETTERS = frozenset(
    stem(word) for word in ("recipient", "receiver", "payee", "beneficiary", "gets", "receives")
)
_PAY = re.compile(r"\b(?:pay|give|tip|reimburse)\s+(?:my\s+)?$", re.I)
_GIVEN_TO = re.compile(
    r"\b(?:send|pay|transfer|give|wire|forward|donate)\b(?:[^.!?]|\.\d){0,60}\b(?:to"
    r"|for)\s+(?:my\s+)?$",
    re.I,
)
_PAY_SMALL = re.compile(
    r"\b(?:pay|give|tip)\s+(?=[a-z]+\s+(?:[$€£¥]?\d|[a-z]+(?:\s+[a-z]+)?\s+(?:dollars?|bucks?"
    r"|euros?|pounds?|quid)))(?P<name>[a-z]+)"
    r"|\b(?:send|pay|transfer|give|wire)\s+[^.!?]{0,20}(?:\d|dollars?|bucks?|euros?|pounds?"
    r"|quid)\s+to\s+(?:my\s+)?(?P<to>[a-z]+)",
    re.I,
)
_OF_PERSON = re.compile(
    r"\b(?:person|customer|visitor|owner|guest|client|patient|student|pupil|member|user|passenger"
    r"|tenant|employee|caller|contact|holder"
    r"|surname|(?:your|full|first|last|family) name|(?:name|whom?) for the"
    r" (?:booking|reservation|table|appointment)|under which name)\b",
    re.I,
)
_STATE_ENDS = re.compile(r"(?:ing|ed|ly|ful|less|able|ible|ous|ish|ive|ant|ent|ic|ical|ck|st)$")
"""How words end that say in which state somebody is, written small."""
_IM = re.compile(
    r"(?:^|[.,;!?]\s*|\b(?:and|hi|hello|hey)\W+)(?:i['’]?m|i"
    r" am)\s+(?P<name>[a-z]+(?:['’-][a-z]+)*(?:\s+[a-z'’-]+)?)"
    r"(?=\s*(?:$|[.,;!?]|btw\b|here\b))",
    re.I,
)
_NAME_ALONE = re.compile(
    r"(?:^|[.,;!?]\s*|\b(?:my|the|and|under|last|first|full)\s+)(?:name"
    r"|surname)\s+(?P<name>[^\W\d_]+(?:['’-][^\W\d_]+)*(?:\s+[^\W\d_]+(?:['’-][^\W\d_]+)*){0,2})"
    r"(?=\s*(?:$|[.,;!?]))",
    re.I,
)
_TWICE = re.compile(
    r"\b(?:it['’]?s|it is|i['’]?m|i am|this"
    r" is)\s+(?P<short>[^\W\d_]+)[.,]\s+(?P<name>(?:(?P=short)\s+[^\W\d_]+"
    r"|[^\W\d_]+\s+(?P=short)))\b",
    re.I,
)
"""A name that is said again as a whole: "it's carol. carol finch"."""
_ACCOUNTS = word_set("savings checking current cash card")
_TITLES = frozenset(("mr", "mrs", "ms", "miss", "dr", "doctor", "sir", "madam"))


def _part(param: Param) -> str:
    """Which part of a name is asked for: `first`, `last` or the whole."""
    words = {*split_name(param.name), *re.findall(r"[a-z]+", param.description.lower())}
    if words & {"first", "given", "forename", "firstname"}:
        return "" if words & {"last", "surname", "lastname", "full"} else "first"
    return "last" if words & {"last", "family", "surname", "lastname"} else ""


def _fit(lead: str, part: str) -> int:
    titled = _TITLED.search(lead)
    lead = lead[: titled.start()] if titled else lead
    if _FIRST_NAMED.search(lead):
        return -1 if part == "last" else 3
    if _LAST_NAMED.search(lead):
        return -1 if part == "first" else 3
    if not part and _OWN_NAME.search(lead):
        return 3
    if _SURE.search(lead):
        return 2
    return (2 if titled else 1) if _CUE.search(lead) else 0


def _introduced(text: str, group: Sequence[Token]) -> bool:
    """Whether a message introduces this name: "I'm Bo", "this is Ruth", "Ruth here"."""
    if len(group) == 1 and (group[0].low in _STATES or _DEMONYM.fullmatch(group[0].text)):
        return False
    start, end = group[0].start, group[-1].end
    if _INTRODUCED.search(before(text, start)):
        return _INTRODUCED_ENDS.match(text, end) is not None
    return not text[:start].strip() and _HERE.match(text, end) is not None


_SPEAKS = re.compile(r"\b(?:i['’]?m|i am|it['’]?s|it is|this is)\s+$", re.I)


def _is_speaker_for(param: Param, text: str, group: Sequence[Token]) -> bool:
    """Whether a name is that of who speaks, where the one is wanted who gets something."""
    return (
        not own_stems(param).isdisjoint(_GETTERS)
        and _SPEAKS.search(before(text, group[0].start)) is not None
    )


def _stands_alone(reply: Reply, group: Sequence[Token]) -> bool:
    """Whether two to four capitalised words are a person without words that introduce one."""
    text, start = reply.text, group[0].start
    if any(
        other.type in (ParamType.PLACE, ParamType.NAME) and not is_of_person(other)
        for other in reply.others
    ):
        return False
    if (
        not 2 <= len(group) <= 4
        or not all(_is_written(word) for word in group)
        or text[group[0].start : group[-1].end].count(",") > 0
    ):
        return False
    lead = before(text, start)
    if _MADE_BY.search(lead):
        return False
    if any(_THINGS.search(word.text) or _DEMONYM.fullmatch(word.text) for word in group):
        return False
    return (
        _is_placed(text, group)
        and _SOMEWHERE.search(lead) is None
        and _STREETS.search(text[start : group[-1].end]) is None
        and not _of_street(text, group)
    )


_MADE_BY = re.compile(r"\b(?-i:[A-Z])[\w'’]*\s+by\s+$")
"""Words before who made a thing that has a name: "Blue Train by John Coltrane"."""


def _is_placed(text: str, group: Sequence[Token]) -> bool:
    """Whether words are in a name's place: after words that lead to one, or set apart."""
    lead, rest = before(text, group[0].start), text[group[-1].end :]
    if not re.search(r"[,.;:!?()\n–—-]\s*$|^\s*$", lead):
        return _LEADS.search(lead) is not None
    if re.search(r"[^\W\d_]{3}.*\W\s*$", lead, re.S):
        return re.match(r"\s*(?:$|[,.;:!?()\n–—-]|(?:and|born|here|please)\b)", rest) is not None
    return re.match(r"\s*(?:[,.;:\n(–—-]|born\b)(?=.*[\d@])", rest, re.S) is not None


def _of_street(text: str, group: Sequence[Token]) -> bool:
    """Whether a house number comes before the words, or a code behind them."""
    return (
        re.search(r"\d[a-z]?\s+$", before(text, group[0].start), re.I) is not None
        or re.match(r",?\s+\d{4,}\b(?!\s?\d)", text[group[-1].end :]) is not None
    )


def _is_written(word: Token) -> bool:
    """Whether a word is written like a part of a name, and not capitalised for other reasons."""
    return word.low in _PARTICLES or (
        _NAME_SHAPE.fullmatch(word.text) is not None and word.low not in _NO_PART
    )


def _is_kin(text: str, group: Sequence[Token]) -> bool:
    """Whether a word for a person is right before the name: "my son Oskar"."""
    return _KIN_BEFORE.search(before(text, group[0].start)) is not None and all(
        _NAME_SHAPE.fullmatch(word.text) for word in group[:1]
    )


_TRADE = (
    r"(?:solicitor|lawyer|accountant|agent|surveyor|plumber|builder|electrician|gp|doctor|vet|nurse"
    r"|midwife|coach|trainer|driver|receptionist|dentist|consultant|vicar|bank)"
)
"""People one deals with: their names are not the name of the user."""
_OTHERS = re.compile(
    rf"\b(?:my|our|his|her|their|the|your)\s+(?:\w+\s+)?(?P<who>{KIN}|{_TRADE}),?\s+"
    r"(?:(?:a|an|called|named)\s+)?(?:(?:mr|mrs|ms|miss|dr)\.?\s+)?$",
    re.I,
)
"""What stands before the name of somebody else: "my solicitor, Mr"."""
_NEAREST = re.compile(
    r"(?:wife|husband|partner|spouse|mother|mom|mum|father|dad|sister|brother|son|daughter|kid|child"
    r"|baby|grandson|granddaughter|boy|girl|twin|student|pupil|patient|client|customer|guest|tenant)",
    re.I,
)
"""Relatives and people in one's care: a message may be on their behalf."""
_THERE = r"(?:,?\s+(?:at|from|in|of|down|next)\s+(?:[\w'’]+\s+){0,2}?[\w'’]+)?,?"
"""Where somebody is who says or does something: "Debbie at the letting agents"."""
_REPORTS = re.compile(
    rf"{_THERE}"
    r"\s+(?:says?|said|tells?|told|reckons?|thinks?|thought|recommend(?:s|ed)|suggest(?:s|ed)"
    r"|mentioned|put me|gave me|showed)\b",
    re.I,
)
_DOES_SOMETHING = re.compile(
    rf"{_THERE}"
    r"\s+(?:who|said|told|thought|put|gave|had|got|knows|came|(?!is\b|was\b|has\b|this\b|as\b)[a-z]+(?<!s)s"
    r"|(?!died\b|passed\b)[a-z]+ed)\b",
    re.I,
)


_OF_SPEAKER = re.compile(
    r"\byour (?:own |full )?name\b"
    r"|\bperson who (?:books|writes|orders|pays|asks)\b"
    r"|\bname (?:for|of|on) the (?:booking|order|account)\b",
    re.I,
)
"""Words of a parameter that is the name of whoever writes."""


def _is_of_others(param: Param, text: str, group: Sequence[Token]) -> bool:
    """Whether a name is somebody's of whom the speaker tells: "my sister Carol will fetch it"."""
    own = _OF_SPEAKER.search(f"{param.description} {param.prompt}")
    return own is not None and _OTHERS.search(before(text, group[0].start)) is not None


def is_bystander(text: str, group: Sequence[Token]) -> bool:
    """Whether a name is of somebody who only says or does something: "my neighbour Ann says"."""
    kin = _OTHERS.search(before(text, group[0].start))
    if kin is None:
        return _REPORTS.match(text, group[-1].end) is not None
    does = _REPORTS if _NEAREST.fullmatch(kin["who"]) else _DOES_SOMETHING
    return does.match(text, group[-1].end) is not None


_ROLE_BEFORE = re.compile(
    r"(?P<role>[^\W\d_]+)(?:\s*[:=]|['’]?s|\s+(?:is|will be|would be|called|named))?\s+$", re.I
)
_ROLE_AFTER = re.compile(
    r"\s+(?:(?:is|will|would|can|could|shall)\s+(?:be\s+)?(?:the|my|our)?\s*)?(?P<role>[^\W\d_]+)"
)
_WHO_DOES = re.compile(r"\bwho\s+(?:(?:will|is|can|should)\s+)?(?P<does>[a-z]+)", re.I)


def _roles(param: Param) -> frozenset[str]:
    """Stems of what a person is or does by the parameter's words: "skipper", "stands in"."""
    asked = _WHO_DOES.findall(f"{param.description} {param.prompt}".lower())
    does = {stem(word) for word in asked if word not in FUNCTION_WORDS | GENERIC_NOUNS}
    return frozenset(own_stems(param) | does) - {stem(word) for word in GENERIC_NOUNS}


def _has_role(param: Param, text: str, group: Sequence[Token]) -> bool:
    """Whether a parameter's own word is beside a name: "skipper Bo Lind", "Bo covers for me"."""
    ahead = _ROLE_BEFORE.search(before(text, group[0].start))
    behind = _ROLE_AFTER.match(text, group[-1].end)
    return any(
        match is not None
        and match["role"].lower() not in FUNCTION_WORDS
        and stem(match["role"]) in _roles(param)
        for match in (ahead, behind)
    )


def _small_with_role(param: Param, text: str) -> list[Token]:
    """Two words written small beside a parameter's own word: "ann lee covers for me"."""
    words, roles = tokens(text), _roles(param)
    if not any(stem(word.low) in roles for word in words):
        return []
    for at, word in enumerate(words[:-1]):
        group = words[at : at + 2]
        opens = (
            at == 0
            or text[words[at - 1].end : word.start].strip()
            or (words[at - 1].low in FUNCTION_WORDS or stem(words[at - 1].low) in roles)
        )
        adjacent = text[word.end : group[1].start].isspace()
        if opens and adjacent and could_be_person(group) and _has_role(param, text, group):
            return group
    return []


_LONG_NAME = 6
"""Letters of a name that ends as a state does, at most: "Tully", "Ahmed"."""


def could_be_person(group: Sequence[Token]) -> bool:
    """Whether words written small, which nothing marks, are of no kind that is known."""
    return _plain(group) and not any(
        (_is_state(word.low) and (len(word.low) > _LONG_NAME or word.low in _STATES))
        or stem(word.low) in _DOES
        or stem(word.low) in WORDS
        or re.fullmatch(KIN, word.low)
        or word.low in _NO_PART
        or _THINGS.search(word.low)
        or _STREETS.fullmatch(word.low)
        for word in group
    )


_FIRM = re.compile(
    r"&|\b(?:ltd|limited|inc|llc|plc|gmbh|co|company|foods?|nurser(?:y|ies)|services|solutions"
    r"|systems|group|holdings|partners|associates|builders|motors|logistics|catering|cleaning"
    r"|plumbing|sons|bros|brothers|stores?|supermarkets?|farms?|industries|engineering|consulting"
    r"|estates|homes|brewery|bakery|cafe|academy|college|council|trust|club|properties|foundation)\b",
    re.I,
)
"""Words of the names of companies."""


def is_firm(words: Sequence[Token]) -> bool:
    """Whether a name is a company's: "Quillfield Nurseries"."""
    return len(words) > 1 and any(_FIRM.fullmatch(word.low) for word in words[1:])


def is_full_name(words: Sequence[Token]) -> bool:
    """Whether words are a name of several parts, written as one: "Farouk Benali"."""
    written = all(word.capitalised for word in words)
    return len(words) > 1 and written and could_be_person(words) and not is_firm(words)


def _is_paid(param: Param, reply: Reply, group: Sequence[Token]) -> bool:
    """Whether a person gets something here, and the parameter is whoever gets it."""
    if not own_stems(param) & _GETTERS:
        return False
    lead = before(reply.text, group[0].start)
    gift = _GIVEN_TO.search(lead)
    # What is sent to a place is a thing: where a place is looked for as well, only a sum is sent to
    # a person.
    place = any(other.type == ParamType.PLACE for other in reply.others)
    return _PAY.search(lead) is not None or (
        gift is not None and not (place and not re.search(r"\d", gift.group()))
    )


def is_person(param: Param) -> bool:
    """Whether the values of a parameter are people's names."""
    return param.type is ParamType.PERSON or (param.type is ParamType.NAME and is_of_person(param))


def is_of_person(param: Param) -> bool:
    """Whether a parameter of the open type for names is a person's name, by its own words."""
    return (
        _OF_PERSON.search(f"{param.name.replace('_', ' ')} {param.description} {param.prompt}")
        is not None
    )


def _groups(reply: Reply, masked: Sequence[tuple[int, int]]) -> list[list[Token]]:
    """The capitalised names of a reply, as words, without titles."""
    words = tokens(reply.text)
    groups: list[list[Token]] = []
    for run in runs(reply.text, words, masked):
        first = run.first
        while (
            first
            and words[first - 1].low
            in (_KIN | _PARTICLES if run.last - run.first == 1 else _PARTICLES)
            and reply.text[words[first - 1].end : words[first].start].isspace()
        ):
            first -= 1
        while (
            first
            and words[first - 1].low in _ALSO_NAMES
            and words[first - 1].capitalised
            and reply.text[words[first - 1].end] == " "
        ):
            first -= 1
        group = [
            word
            for word in words[first : run.last]
            if word.low.strip(".") not in _TITLES | UNITS.keys()
            and _LOOSE_NAME.fullmatch(word.text)
        ]
        while len(group) > 1 and group[0].low in _NAME_WORDS:
            group = group[1:]
        group = _without_kin(group)
        if not group or all(word.low in GENERIC_NOUNS for word in group):
            continue
        gap = reply.text[groups[-1][-1].end : group[0].start].strip() if groups else ""
        if gap in (",", ".") and {w.low for w in groups[-1]} < {w.low for w in group}:
            groups[-1] = group  # "Lee, Ann Lee"
        elif gap == ",":
            if len(group[0].text) == 1:
                continue
            again = groups[-1][0].low == group[0].low  # "Ann, Ann Bell"
            groups[-1] = group if again else [*groups[-1], *group]
        else:
            groups.append(group)
    return [group for group in groups if group[0].low != "the"]  # "The Old Forge, Church Row"


def _without_kin(group: list[Token]) -> list[Token]:
    """The words of a name without the word for who it is: "Neighbour Ann Lee", not "Aunt May"."""
    while len(group) > 1 and re.fullmatch(KIN, group[0].low):
        if group[0].low in _KIN and len(group) == 2:
            break
        group = group[1:]
    return group


def _small(reply: Reply, masked: Sequence[tuple[int, int]]) -> list[Token]:
    """A name written small: the whole answer, of up to three words that could be a name's."""
    words = tokens(reply.text)
    if len(words) == 1 and words[0].low in _ALSO_NAMES and words[0].capitalised:
        return words
    if (
        is_no_answer(reply.text)
        or is_remark(reply.text)
        or _REMARK.match(reply.text)
        or _GO_AHEAD.search(reply.text)
    ):
        return []
    start, end = answer_span(reply.text)
    lead = _ME_FIRST.match(reply.text)
    start = max(start, lead.end() if lead else 0)
    group = [word for word in tokens(reply.text) if word.start >= start and word.end <= end]
    group = [word for word in group if word.low.strip(".") not in _TITLES]
    while len(group) > 1 and group[-1].low in _HERE_LAST:
        group.pop()
    if not _plain(group):
        group = next(
            (
                after
                for cue in _AFTER_CUE.finditer(reply.text)
                if (after := _words_after(reply.text, cue.end()))
            ),
            _first_words(reply.text),
        )
        start, end = (group[0].start, group[-1].end) if group else (0, 0)
    if (
        len(group) == 1
        and _is_state(group[0].low)
        and re.search(r"\b(?:this|it|that|i)\b", reply.text, re.I)
    ):
        return []
    return (
        group
        if group
        and _plain(group)
        and not any(start < stop and begin < end for begin, stop in masked)
        else []
    )


def _named_small(text: str, masked: Sequence[tuple[int, int]]) -> list[Token]:
    """A name written small after words that say that it is one: "my name is ruth"."""
    for match in _NAME_IS.finditer(text):
        group = _words_after(text, match.end())
        if _plain(group) and not any(
            group[0].start < stop and begin < group[-1].end for begin, stop in masked
        ):
            return group
    return []


def _is_all(group: Sequence[Token], text: str) -> bool:
    """Whether an answer holds nothing else: "me, dean whitlock"."""
    lead = _ME_FIRST.match(text)
    return len(group) == len(tokens(text[lead.end() if lead else 0 :]))


_ME_FIRST = re.compile(
    r"\W*(?:(?:oh|yes|yeah|(?:it|that)['’]?s|this is|me|again|i['’]?m|for|and|under|put)\b\W*)*",
    re.I,
)
_HERE_LAST = word_set("here speaking again btw")
_MORE = re.compile(r"\s*(?:,|\.|;|[+\d(]|(?:on|at|born|and|my|account|phone|number|tel)\b)", re.I)


def _first_words(text: str) -> list[Token]:
    """The two or three words before another value of an answer: "kasia nowak, 07700 900123"."""
    begin = _ME_FIRST.match(text)
    group = _words_after(text, begin.end() if begin else 0)
    cut = next((at for at, word in enumerate(group) if at and _MORE.match(word.text)), len(group))
    group = group[1:] if len(group) == 3 and group[0].low == group[1].low else group[:cut]
    states = any(_is_state(word.low) or stem(word.low) in _DOES for word in group)
    more = group and _MORE.match(text, group[-1].end)
    return group if 2 <= len(group) <= 3 and more and _plain(group) and not states else []


def _plain(group: Sequence[Token]) -> bool:
    letters = sum(len(word.text) for word in group)
    return 1 <= len(group) <= 3 < letters + 2 and all(
        word.low not in _NO_NAME and _LOOSE_NAME.fullmatch(word.text) for word in group
    )


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
        return next(
            (group[at:] for at in range(1, len(group)) if group[at].low in _PARTICLES), group[-1:]
        )
    return group


def _asked_first(part: str, reply: Reply) -> bool:
    """Whether a lone name is this part of a name.

    When both parts are asked for, it is the one that the question names first.
    """
    if not any(
        other.type == ParamType.PERSON and _part(other) not in ("", part) for other in reply.others
    ):
        return True
    named = [match[1].lower() for match in _PART_NAMED.finditer(reply.prompt)]
    return ("first" if not named or named[0] in ("first", "given") else "last") == part


def _marked_small(param: Param, text: str) -> list[Token]:
    """A name written small in a message that answers nothing, after words that mark one."""
    for pattern in (_TWICE, _NAME_ALONE, _IM):
        for match in pattern.finditer(text):
            group = [
                word
                for word in _words_after(text, match.start("name"))
                if word.end <= match.end("name")
            ]
            if pattern is _NAME_ALONE and len(group) == 1 and re.search(r"\w{4}ed$", group[0].low):
                continue
            if _plain(group) and (
                pattern is not _IM or not any(_is_state(word.low) for word in group)
            ):
                return group
    for match in _KIN_SMALL.finditer(text):
        group = _words_after(text, match.end())
        ends = (
            re.match(
                r"\s*(?:$|[.,;!?]|(?:on|at|for|in|and|from|to|please|who|this|next|tomorrow"
                r"|today)\b)",
                text[group[-1].end :],
            )
            if group
            else None
        )
        if ends and not any(_is_state(word.low) or stem(word.low) in _DOES for word in group):
            return group
    for match in _PAY_SMALL.finditer(text) if own_stems(param) & _GETTERS else ():
        group = _words_after(text, match.start("name") if match["name"] else match.start("to"))[:1]
        if _plain(group) and group[0].low not in _ACCOUNTS:
            return group
    return []


def _is_state(word: str) -> bool:
    return word in _STATES or _STATE_ENDS.search(word) is not None


def _strict_fit(param: Param, reply: Reply, group: Sequence[Token], fit: int) -> int:
    """The fit of a name in a message that answers nothing: 2 when marked as a person's.

    It is 3 where a word of the parameter is beside it.
    """
    if not 0 <= fit < 2:
        return fit
    text = reply.text
    if _has_role(param, text, group):
        return 3
    marked = (
        _TITLED.search(before(text, group[0].start))
        or (_introduced(text, group) and not _is_speaker_for(param, text, group))
        or _is_kin(text, group)
        or _stands_alone(reply, group)
        or _is_paid(param, reply, group)
    )
    return 2 if marked else fit


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The names of people in a reply, or their first or last parts."""
    masked = closed_spans(param, reply)
    part, text = _part(param), reply.text
    groups = _groups(reply, masked)
    confidence = 0.75
    if not groups:
        role = _small_with_role(param, text)
        small = role or _named_small(text, masked) or _marked_small(param, text)
        small = small if small or reply.strict else _small(reply, masked)
        groups, confidence = (
            ([small], 0.6 if role or (len(small) > 1 and _is_all(small, text)) else 0.5)
            if small
            else ([], confidence)
        )
    if reply.strict:
        groups = [
            one
            for one in groups
            if not (is_bystander(text, one) or is_firm(one) or _is_of_others(param, text, one))
        ]
    candidates = []
    for group in groups:
        fit = _fit(before(text, group[0].start), part)
        fit = (
            2
            if reply.strict and confidence < 0.7
            else _strict_fit(param, reply, group, fit)
            if reply.strict
            else fit
        )
        if not reply.strict and _stands_apart(text, group):
            fit = max(fit, 2)
        words = group if fit == 3 else _chosen(group, part, reply)
        if words:
            start, end = words[0].start, words[-1].end
            if re.search(r"['’]s$", text[start:end]):
                end -= 2
            candidates.append(
                Candidate(
                    start,
                    end,
                    text[start:end],
                    min(0.9, confidence + 0.05 * max(fit, 0)),
                    fit,
                    "name of a person",
                )
            )
    kept = keep(reply, candidates, strict_fit=2)
    return kept if kept or not reply.strict else _unmarked(param, reply, groups)


def _stands_apart(text: str, group: Sequence[Token]) -> bool:
    """Whether an answer begins with a full name, or one is a sentence: "Ann Lee. don't tell Bo"."""
    lead, rest = before(text, group[0].start), text[group[-1].end :]
    opens = _ME_FIRST.fullmatch(lead) and re.match(r"\s*(?:[.,;!\n–-]|but\b|and\b)", rest)
    whole = re.search(r"[.!?\n]\s+$", lead) and re.match(r"\s*(?:$|[.!\n])", rest)
    return is_full_name(group) and (opens or whole) is not None


def _unmarked(param: Param, reply: Reply, groups: Sequence[Sequence[Token]]) -> list[Candidate]:
    """The one name that a message holds and nothing marks: it is asked about before it counts.

    One word counts within a sentence only, for any word may begin one; two may begin a message.
    """
    text = reply.text
    if _part(param) or len(groups) != 1 or any(other.type in _NAMED for other in reply.others):
        return []
    [group] = groups
    start, end = group[0].start, group[-1].end
    lead = before(text, start)
    opens = re.search(r"(?:^|[.!?\n])\W*$", lead) is not None
    placed = (
        _SOMEWHERE.search(lead)
        or re.search(r"\b(?:my|our|your)\s+$", lead, re.I)
        or _of_street(text, group)
        or _STREETS.search(text[start:end])
    )
    if (
        placed
        or len(group) > 2
        or (len(group) == 1 and re.search(r"['’]s$", text[start:end]))  # "Pam's away then"
        or (len(group) == 1 and _DID.match(text, end))  # "Petes got the day off"
        or (opens and (len(group) < 2 or not _SUBJECT_ENDS.match(text, end)))
        or not all(_is_written(word) and not _THINGS.search(word.text) for word in group)
        or any(_DEMONYM.fullmatch(word.text) for word in group)
        or any(word.low in _STATES | GENERIC_NOUNS for word in group)
    ):
        return []
    end -= 2 if re.search(r"['’]s$", text[start:end]) else 0
    return [Candidate(start, end, text[start:end], 0.45, 2, "may be the name of a person")]


_DID = re.compile(r"\s+(?:got|[a-z]{3,}(?<!e)ed)\b")
_SUBJECT_ENDS = re.compile(
    r"\s*(?:[,–—-]|(?:is|was|has|will|would|wo|ca|can|wants?|needs?)(?:n?['’]?t)?\b)", re.I
)
"""What follows two words that open a message and may be somebody."""
_NAMED = (ParamType.PERSON, ParamType.PLACE, ParamType.NAME)
"""Types of values that are written like a person's name."""
