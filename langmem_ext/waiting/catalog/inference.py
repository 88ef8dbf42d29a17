"""The type and role of a parameter, from its name, its description and its possible values."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langmem_ext.waiting.catalog.param import ParamType, Role
from langmem_ext.waiting.extract.english.vocabulary import split_name

_TRUTH = frozenset(("true", "false", "yes", "no", "0", "1", "y", "n"))
_RULES: tuple[tuple[ParamType, str, str], ...] = (
    # type, words of the name, words of the description; the first rule that holds decides, names
    # before descriptions
    (ParamType.EMAIL, r"e ?mail", r"e-?mail address"),
    (
        ParamType.URL,
        r"ur[li]|link|web ?(?:site|page|address)|home ?page",
        r"\burl\b|web address|link to",
    ),
    (
        ParamType.DATETIME,
        r"date ?time|timestamp|date (?:and )?time",
        r"date and time|(?:day|date) and hour",
    ),
    (
        ParamType.PHONE,
        r"(?:(?:tele)?phone|mobile|fax|tel|cell)(?: number| no| nr)?",
        r"(?:tele)?phone number",
    ),
    (
        ParamType.IDENTIFIER,
        r"ids?|identifier|code|uuid|sku|(?:order|confirmation|reservation|booking|tracking|account"
        r"|invoice|ticket|flight|customer|serial"
        r"|reference|case|policy|card|member)"
        r" (?:number|no|nr|ref|reference)|username|reference|pnr",
        (
            r"identifier|(?:confirmation|tracking|reference|order|account|serial|invoice)"
            r" (?:number|code)|\bid of\b|\bid\b"
        ),
    ),
    (
        ParamType.ADDRESS,
        r"address|street",
        r"(?:street|postal|delivery|shipping|billing|home) address",
    ),
    (
        ParamType.DATE,
        r"dates?|day|birthday|dob|deadline|when",
        r"date (?:of|for|when|on)|\bdate\b|which day",
    ),
    (ParamType.TIME, r"times?|hour|clock", r"\btime (?:of|for|to|when)|time of day|what time"),
    (
        ParamType.MONEY,
        r"amount|price|cost|fare|budget|balance|payment|fee|rent|salary|income|money|total",
        r"amount of money|price in|cost of|in (?:dollars|euros|usd)",
    ),
    (
        ParamType.INTEGER,
        r"number(?: of)?|num|count|quantity|qty|how"
        r" many|people|persons?|guests?|passengers?|riders?|travell?ers|seats|tickets|adults"
        r"|children|nights|days|rooms|beds|bedrooms|bathrooms"
        r"|party size|group size|size|length|duration|age|rating|stars|year|limit|stay length",
        (
            r"^(?:the )?(?:number|count|quantity) of|how many|size of the (?:party|group)|in"
            r" (?:days|nights|minutes|hours|weeks)|number of"
        ),
    ),
    (
        ParamType.BOOLEAN,
        r"(?:is|has|should|wants?|needs?|with|include|allow|confirm|free) \w+.*|flag",
        r"^(?:boolean|whether|if )|boolean flag|true if|yes or no",
    ),
    (
        ParamType.PERSON,
        r"(?:first|last|full|family|given|person|recipient|customer|contact|guest|passenger|patient"
        r"|employee|user|sender|receiver|holder"
        r"|owner|doctor|therapist|stylist|dentist|sur|nick"
        r"|actor|actress|director|starring|artist|author|cast|singer)"
        r" ?names?|surname|recipient|contact|actor|actress|director"
        r"|directed by|starring|cast|artist|author|assignee|receiver|attendee",
        r"name of (?:the |a"
        r" )?(?:person|recipient|customer|patient|guest|passenger|actor|director|artist|contact"
        r"|receiver)|person's"
        r" name"
        r"|(?:first|last|full) name",
    ),
    (
        ParamType.PLACE,
        r"city|town|area|location|place|country|state|region|district|neighbou?rhood|destination"
        r"|origin|from|to|departure|arrival|where"
        r"|station|airport|venue location|pickup|dropoff"
        r"|from station|to station|from city|to city",
        r"\b(?:city|town|area|location|airport|station|country|destination|place)"
        r" (?:of|where|in|from|to|for)|name of the (?:city|town"
        r"|airport|station)",
    ),
    (
        ParamType.NAME,
        r"names?|title|restaurant|hotel|movie|film|song|track|album|event|venue|attraction|show"
        r"|book|product|item|team|company|brand",
        r"\b(?:name|title) of",
    ),
    (
        ParamType.NUMBER,
        r"weight|height|width|distance|percent(?:age)?|ratio|rate|temperature|score|latitude"
        r"|longitude",
        r"percentage|in (?:kg|km|miles|degrees|metres|meters)",
    ),
)
_FREE = re.compile(
    r"\b(?:type|kind|category|genre|cuisine|range|reason|comment|message|note|notes|description"
    r"|food|style|class|subject|topic|feedback"
    r"|details)\b",
    re.I,
)
_FROM = re.compile(
    r"\b(?:from|first|earliest|origin\w*|source|start\w*|begin\w*|depart\w*|leav\w+|pick"
    r" ?-?up|pickup|check ?-?in|outbound|sender|board\w*|gets? on"
    r"|since)\b",
    re.I,
)
_TO = re.compile(
    r"\b(?:to location|to|last|latest|destination|end\w*|return\w*|drop ?-?off|dropoff|check"
    r" ?-?out|inbound|arriv\w+|until|until|going)\b",
    re.I,
)


def infer_type(name: str, description: str = "", values: Sequence[str] = ()) -> ParamType:
    """The type a parameter most likely has.

    Args:
        name: Its name, in any usual spelling (`order_id`, `orderId`).
        description: A sentence about it.
        values: The only values it may have; empty when it is open.

    Returns:
        Boolean for truth values, integer for whole numbers, enum for other given values; else what
        name and description say; text at last.
    """
    if values:
        low = {str(value).strip().lower() for value in values}
        if low <= _TRUTH and low & {"true", "false", "yes", "no"}:
            return ParamType.BOOLEAN
        return (
            ParamType.INTEGER
            if all(re.fullmatch(r"-?\d+", value) for value in low)
            else ParamType.ENUM
        )
    words = re.sub(r"(?<=\w) (?:of|for)\b.*", "", " ".join(split_name(name)))
    if re.search(r"^(?:boolean|whether)\b|boolean flag|\btrue if\b", description, re.I):
        return ParamType.BOOLEAN
    if _FREE.search(words) and not re.search(r"\b(?:id|date|time|number|code)\b", words):
        return ParamType.TEXT
    return _by_name(words) or _by_description(description) or ParamType.TEXT


def _by_name(words: str) -> ParamType | None:
    """The type by the last words of a name: `arrival_time` is a time, `time_zone` is not."""
    for kind, pattern, _ in _RULES:
        if re.search(rf"(?:^|\s)(?:{pattern})$", words):
            return kind
    for kind, pattern, _ in _RULES:
        if kind in (
            ParamType.INTEGER,
            ParamType.BOOLEAN,
            ParamType.PLACE,
            ParamType.PERSON,
        ) and re.match(rf"(?:{pattern})\b", words):
            return kind
    return None


def _by_description(description: str) -> ParamType | None:
    low = description.lower()
    if _FREE.search(low.split(" of ")[0]):
        return None
    return next((kind for kind, _, pattern in _RULES if pattern and re.search(pattern, low)), None)


def infer_role(name: str, description: str = "") -> Role | None:
    """The half of a pair that the parameter is: `from` or `to`; None when it is neither.

    `from` is where or when something begins, `to` where or when it ends.

    Args:
        name: Its name; decides when it says.
        description: Asked when the name says nothing.
    """
    words = " ".join(split_name(name))
    if _ANOTHER.search(f"{words}. {description}"):
        return None  # it is moved *to* the new day, whatever that begins
    if re.search(r"\b(?:day|date|night)\b", f"{words} {description}") and (
        stay := _STAY.search(words)
    ):
        return "from" if stay["from"] else "to"
    if re.search(r"\b(?:pick|drop)\b", words) and (guest := _GUEST.search(description)):
        return "from" if guest["from"] else "to"
    for text in (words, description):
        begins, ends = (
            _FROM.search(text),
            _TO.search(text) if text is words else _TO_DESCRIBED.search(text),
        )
        if begins and not ends:
            return "from"
        if ends and not begins:
            return "to"
        if begins and ends:
            return "from" if begins.start() < ends.start() else "to"
    return None


_ANOTHER = re.compile(r"\bnew (?:day|date|time|hour|slot|place|address)\b", re.I)
_STAY = re.compile(r"\b(?:(?P<from>arriv\w+)|(?P<to>leav\w+))\b", re.I)
"""Whoever arrives on a day begins a stay, and ends it when he leaves; of a trip's times it is the
other way round."""

_GUEST = re.compile(
    r"\b(?:(?P<from>arriv\w+|brought|brings?|comes?)"
    r"|(?P<to>fetch\w*|leav\w+|taken home|goes home))\b(?! back)",
    re.I,
)
"""Who is dropped off begins a stay, and ends it when picked up; of a thing that is hired it is the
other way round."""

_TO_DESCRIBED = re.compile(
    r"\b(?:destination|end of|ends|return\w*|drop ?-?off|check ?-?out|arriv\w+|going to|until)\b",
    re.I,
)
