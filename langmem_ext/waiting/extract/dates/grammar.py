"""How dates are written: the patterns, and what makes a day of each."""

from __future__ import annotations

import re
from typing import Final

from langmem_ext.waiting.extract.dates import days
from langmem_ext.waiting.extract.numbers.numerals import WORDS

MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)

_WORD_DAY = "|".join(sorted(days.ORDINAL_DAYS, key=len, reverse=True))

_DAY = (
    rf"(?P<day>\d{{1,2}}(?=\s*(?:st|nd|rd|th)\b)|\d{{1,2}}(?![\d:.]\d|,\d(?!\d{{3}}\b)|\s*[ap]\.?m"
    rf"|\d)"
    rf"|{_WORD_DAY})(?:\s*(?:st|nd|rd|th)\b)?"
)

_NTH = rf"(?P<day>\d{{1,2}}(?=\s?(?:st|nd|rd|th)\b)|(?:{_WORD_DAY}))(?:\s?(?:st|nd|rd|th)\b)?"

_NUMBER = rf"(?P<day>\d{{1,2}}|{_WORD_DAY})(?:\s?(?:st|nd|rd|th)\b)?"

UNTIL = r"(?:[-–—]|\b(?:to|till?|until|through|thru)\b|(?<=(?:st|nd|rd|th)\s)and\b)"
"""What stands between the two ends of a range: "16-20 march"."""

_YEAR = (
    r"(?:,?\s*(?:of\s+)?(?P<year>(?:19|20)\d{2}\b(?!\s*[:.]\d)|['’]?(?:3[2-9]|[4-9]\d)(?=\s*(?:$"
    r"|[.,;!?\n]))))?"
)

_WEEKDAY = (
    r"(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs?(?:day)?)?|fri(?:day)?"
    r"|sat(?:urday)?|sun(?:day)?)\b\.?"
)

LONG_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"

_SHORT_WEEKDAY = r"(?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)"

_LEAD = rf"(?:(?P<named>{LONG_WEEKDAY}|{_SHORT_WEEKDAY}\b)\.?,?\s+(?:the\s+)?)?"

_NOT_A_DAY = (
    r"(?!\s*(?:one|option|time|floor|choice|class|person|result|suggestion|street|st\b|avenue|ave\b"
    r"|road|rd\b|blvd|name|row|flight|thing"
    r"|place|restaurant|hotel|movie|event|half|quarter|party|week|of\b"
    r"|in\b(?!(?<=\d(?:st|nd|rd|th) in) the (?:morning|afternoon|evening))|"
    rf"{LONG_WEEKDAY})\b)"
)

GRAMMAR: tuple[tuple[re.Pattern[str], days.Maker, float, str], ...] = tuple(
    (re.compile(source, re.I), maker, confidence, reason)
    for source, maker, confidence, reason in (
        (
            r"(?<!\d)(?P<year>(?:19|20)\d{2})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)",
            days.year_first,
            0.98,
            "date, year first",
        ),
        (rf"\b{_LEAD}{MONTH},?\s*(?:the\s+)?{_DAY}{_YEAR}", days.explicit, 0.97, "month and day"),
        (
            rf"(?<![\d:.,#$£€])\b{_LEAD}{_DAY}\s*(?:day\s+)?(?:of\s+|(?<=(?:st|nd|rd|th) )in\s+)?"
            rf"{MONTH}{_YEAR}",
            days.explicit,
            0.97,
            "day and month",
        ),
        (
            rf"(?<![\d:.,/#$£€-])\b{_LEAD}{_NUMBER}(?=\s*{UNTIL}\s*"
            rf"(?:(?:{LONG_WEEKDAY}|{_SHORT_WEEKDAY})\s+)?(?:the\s+)?(?P<last>\d{{1,2}})"
            rf"(?:\s?(?:st|nd|rd|th))?\s*(?:of\s+)?{MONTH}{_YEAR})",
            days.explicit,
            0.97,
            "day and month",
        ),
        (
            rf"(?<![\d/.:-]){_LEAD}(?P<a>\d{{1,2}})(?P<sep>[-/.])(?P<b>\d{{1,2}})(?P=sep)"
            rf"(?P<year>\d{{4}}|\d{{2}})(?![\d/]|[-.:]\d)",
            days.numeric,
            0.8,
            "numeric date",
        ),
        (
            r"(?<![\d/.:-])(?<!\bat )(?<!\babout )(?<!\baround )"  # "at 8.30." is a time
            r"(?P<a>\d{1,2})(?P<sep>\.)(?P<b>0?[1-9]|1[0-2])\.(?P<year>)(?!\d)",
            days.numeric,
            0.6,
            "date without a year",
        ),
        (
            r"(?<![\d/.:-])(?P<a>\d{1,2})(?P<sep>/)(?P<b>\d{1,2})(?P<year>)(?![\d/]|[.:]\d)",
            days.numeric,
            0.6,
            "date without a year",
        ),
        (
            (
                rf"\b{_LEAD}{_NTH}\s+(?:day\s+)?of\s+(?P<which>this|next|the next|the"
                r" following|the)\s+month\b"
            ),
            days.of_month,
            0.95,
            "day of a month",
        ),
        (
            rf"\b(?P<named>{LONG_WEEKDAY}|{_SHORT_WEEKDAY})\b\.?,?\s+(?:the\s+)?{_NTH}(?!\w)"
            + _NOT_A_DAY.replace("half|quarter|", ""),
            days.nth,
            0.9,
            "weekday and day of the month",
        ),
        (
            rf"\b(?P<named>{LONG_WEEKDAY}|{_SHORT_WEEKDAY})\b\.?,?\s+(?P<day>1[3-9]|2\d|3[01])"
            r"(?=\s*(?:$|[.,;!?](?!\d)))",
            days.nth,
            0.85,
            "weekday and day of the month",
        ),
        (rf"(?<=\bthe\s){_NTH}(?!\w){_NOT_A_DAY}", days.nth, 0.9, "day of the month"),
        (
            r"(?<![\w#-])(?P<day>\d{1,2})(?:st|nd|rd|th)(?!\w)" + _NOT_A_DAY,
            days.nth,
            0.85,
            days.NTH,
        ),
        (
            rf"\b(?P<nth>first|second|third|fourth|last|1st|2nd|3rd"
            rf"|4th)\s+(?P<weekday>{LONG_WEEKDAY})\s+(?:of|in)\s+(?:{MONTH}"
            rf"|(?P<which>this|next"
            rf"|the)\s+month)",
            days.nth_weekday,
            0.9,
            "weekday of a month",
        ),
        (
            rf"\b(?:the\s+)?last day\s+(?:of|in)\s+(?:{MONTH}|(?P<which>this|next|the)\s+month\b)",
            days.month_end,
            0.95,
            "last day of a month",
        ),
        (
            rf"\b(?:the\s+)?end\s+of\s+(?:{MONTH}|(?P<which>this|next|the)\s+month\b)",
            days.month_end,
            0.6,
            "end of a month",
        ),
        (
            r"\b(?:the\s+)?day after tomorrow\b|\b(?:tomorrow|today|tonight|yesterday|last night)\b"
            r"|\bthis (?:morning|afternoon|evening)\b",
            days.relative,
            0.95,
            "relative day",
        ),
        (
            (
                rf"\bin\s+(?P<count>\d{{1,3}}|an?|{WORDS})\s+(?:more\s+)?(?P<unit>days?|weeks?"
                rf"|months?|fortnights?)(?:'?s?"
                r" time)?\b"
            ),
            days.ahead,
            0.9,
            "days ahead",
        ),
        (
            rf"\b(?P<count>\d{{1,3}}|an?|{WORDS})\s+(?P<unit>days?|weeks?|months?"
            rf"|fortnights?)\s+from\s+(?P<base>now|today|tomorrow)\b",
            days.ahead,
            0.9,
            "days ahead",
        ),
        (
            rf"\b(?P<count>\d{{1,3}}|a\s+couple\s+of|an?|{WORDS})\s+(?P<unit>days?|weeks?|months?"
            r"|fortnights?)\s+ago\b",
            days.ago,
            0.9,
            "days ago",
        ),
        (
            rf"\b(?:(?P<weekday>{LONG_WEEKDAY})|tomorrow|(?P<today>today))\s+(?:week(?!\w|\s+day)"
            rf"|(?P<fortnight>fortnight)"
            r"|in\s+(?P<count>two|three|\d)\s+weeks?)\b",
            days.weekday_week,
            0.95,
            "weeks after a day",
        ),
        (
            rf"\b(?:last|this past)\s+(?P<weekday>{LONG_WEEKDAY})\b(?!\s+(?:of|in)\b)",
            days.last_weekday,
            0.9,
            "weekday that has passed",
        ),
        (
            r"\b(?:new year['’]?s?(?:\s+(?:eve|day))?|(?:christmas|xmas)(?:\s+(?:eve|day))?|boxing"
            r" day|valentine['’]?s(?:\s+day)?"
            r"|st\.?\s+patrick['’]?s\s+day|halloween|independence day|(?:easter|whit)\s*"
            r"(?:sunday|monday)|easter\s+(?:saturday|day)|good\s+friday|maundy\s+thursday|palm\s+sunday"
            r"|ash\s+wednesday|shrove\s+tuesday|pancake\s+day)(?!\w|\s+(?:party|dinner|menu|tree|cards?|market|presents?|gifts?))",
            days.feast,
            0.9,
            "feast",
        ),
        (
            rf"\b(?P<lead>(?:next|last) week(?:'s)?\s+(?:on\s+)?)?(?:(?P<which>this"
            rf" coming|this|next|coming|the following|the next|the coming)\s+)?"
            rf"(?P<weekday>{LONG_WEEKDAY})s?\b(?P<after>\s+(?:of\s+)?(?:the\s+)?(?:next"
            r" week|last week|following week|this week|after next))?",
            days.weekday,
            0.88,
            "weekday",
        ),
        (
            r"(?:(?<=\bon )|(?<=\bby )|(?<=\bfor"
            rf" )|^\s*)(?:(?P<which>this|next)\s+)?{_WEEKDAY}(?=\s*(?:$|[.,!?]|at\b|please|next))"
            rf"(?P<after>\s+next"
            rf" week)?|\b(?P<which2>this|next)\s+(?P<weekday2>mon|tues?|wed|thurs?|thu|fri)\b",
            days.short_weekday,
            0.8,
            "short weekday",
        ),
        (
            r"(?<!\bthe )\b(?:(?P<which>this"
            r" coming|coming|this|next)\s+)?(?P<weekday>tues?|thurs?|thu|fri"
            r"|(?:mon|wed|sat|sun)(?=,?\s+(?:at|the|\d|noon|night|evening|morning|afternoon)\b"
            r"|,?\s+\d)"
            r"|(?:mon|wed|sat|sun)(?=\s+(?:or|and|next|is|would|works|better|best|please"
            r"|instead)\b)|(?<=\bor"
            r" )(?:mon"
            r"|wed|sat|sun)|(?<=coming )(?:mon|wed|sat|sun))\b(?!['’]\w)"
            r"(?P<after>\s+(?:of\s+)?next week)?",
            days.weekday,
            0.8,
            "short weekday",
        ),
    )
)

HINT = re.compile(
    r"\d|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|to|yest"
    r"|this|days?|weeks?|months?|first"
    r"|second|third|last|fortnight|easter|whit|pancake|new"
    r" year|xmas|christmas|boxing|halloween|valentine|st\b|independence|\w+th)",
    re.I,
)
"""What every date begins with or contains; without it the grammar need not be tried."""


BARE_WEEKDAY: Final = re.compile(rf"{LONG_WEEKDAY}|{_SHORT_WEEKDAY}", re.I)
"""A weekday with nothing beside it."""
