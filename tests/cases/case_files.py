"""Files of cases: what people say, and what it means.

A file groups its cases under headings. A case is one line: a mapping, or `[text, value]`, or only
a text. A line without a text, such as `{param: size, asks: Which size?}`, holds for the cases after
it, until the next one or the next heading.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """All is text but null, `true`, `false` and plain numbers: `no`, 19:30 and dates, too."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


for _tag, _pattern, _first in (
    ("null", r"(?:null|)$", ["n", ""]),
    ("bool", r"(?:true|false)$", ["t", "f"]),
    ("int", r"(?:0|-?[1-9][0-9]*)$", [*"-0123456789"]),
    ("float", r"-?[0-9]+\.[0-9]+$", [*"-0123456789"]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


class CaseFile:
    """A file of cases, and what it declares at its top."""

    def __init__(self, name: str, said: str = "text") -> None:
        """Read `name`.yaml; every case has the key `said`."""
        self.path = HERE / f"{name}.yaml"
        self.data: dict[str, Any] = yaml.load(self.path.read_text("utf-8"), _Loader)
        self._said = said

    def __iter__(self) -> Iterator[tuple[tuple[str, int], dict[str, Any]]]:
        """Each case with its heading and its place there, and with what holds for it."""
        for heading, lines in self.data["cases"].items():
            given: Mapping[str, Any] = {}
            for place, line in enumerate(lines):
                case = line if isinstance(line, dict) else self._pair(line)
                if self._said in case:
                    yield (heading, place), {**given, **case}
                else:
                    given = case

    def _pair(self, line: Any) -> dict[str, Any]:
        text, *value = line if isinstance(line, list) else [line]
        return {self._said: text, **({"value": value[0]} if value else {})}

    def wrong(self, found: Callable[[dict[str, Any]], Mapping[str, Any]]) -> str:
        """What is found where another thing is expected, a line each; empty if all is right.

        Args:
            found: For a case, what is found for each key that it expects.
        """
        wrong = []
        for where, case in self:
            try:
                seen = found(case)
            except Exception as error:
                seen = {"": repr(error)}
            for key, value in seen.items():
                expected = case.get(key)
                if (value, type(value)) != (expected, type(expected)):
                    said = case[self._said]
                    wrong.append(
                        f"{self.path.name}:{self._line(*where)}: {said!r} ({where[0]}):"
                        f" {key} is {value!r}, not {expected!r}"
                    )
        return "\n".join(wrong)

    def _line(self, heading: str, place: int) -> int:
        root = yaml.compose(self.path.read_text("utf-8"), _Loader)
        [cases] = [value for key, value in root.value if key.value == "cases"]
        [lines] = [value for key, value in cases.value if key.value == heading]
        line: int = lines.value[place].start_mark.line
        return line + 1
