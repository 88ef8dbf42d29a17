"""Countries, by their English names in whatever letters: "a visa for india"."""

from __future__ import annotations

import re
from functools import cache

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate

_COUNTRY = re.compile(r"\bcountr(?:y|ies)\b", re.I)


def is_country(param: Param) -> bool:
    """Whether the values of a parameter are countries."""
    return _COUNTRY.search(f"{param.name} {param.description} {param.prompt}") is not None


def countries(text: str) -> list[Candidate]:
    """The countries that a text names, in its order."""
    return [
        Candidate(match.start(), match.end(), match.group(), 0.9, 3, "name of a country")
        for match in _named().finditer(text)
    ]


@cache
def _named() -> re.Pattern[str]:
    """A pattern for the names that phonenumbers knows; they are loaded where they are needed."""
    from phonenumbers.geodata.locale import LOCALE_DATA  # noqa: PLC0415

    names = {"UK", "USA", "England", "Scotland", "Wales", "Northern Ireland"}
    for by_language in LOCALE_DATA.values():
        name = by_language["en"]
        names.add(by_language[name[1:]] if name.startswith("*") else name)
    written = sorted((re.escape(name) for name in names if len(name) > 1), key=len, reverse=True)
    return re.compile(rf"(?<![\w-])(?:{'|'.join(written)})(?![\w-])", re.I)
