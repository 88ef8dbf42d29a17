"""A YAML file as plain data with line numbers.

Only data is read: mappings, lists, text, whole numbers, booleans and null. Text stays as it is
written (`11:30`, `no` and `2024-05-01` are not turned into numbers, booleans and dates), because
examples and synonyms are what users type; a reader that needs a number or a date parses the text.
Anchors and aliases work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

DataPath: TypeAlias = tuple[str | int, ...]
"""Where in the file: keys and list positions from its top."""

MAX_VALUES = 100_000
"""Values read from one file at most: aliases can name each other until a few lines hold
billions."""

MAX_DEPTH = 50
"""Levels of nesting read at most; a file that somebody wrote has a few."""

_SCALARS: Mapping[str, Callable[[str], object]] = {
    "tag:yaml.org,2002:str": str,
    "tag:yaml.org,2002:null": lambda _: None,
    "tag:yaml.org,2002:bool": lambda text: text.lower() == "true",
    "tag:yaml.org,2002:int": int,
}


class _Loader(yaml.SafeLoader):
    """Resolves null, `true`, `false` and plain whole numbers; anything else is text."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


for _tag, _pattern, _first in (
    ("null", r"(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"(?:true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"(?:0|-?[1-9][0-9]{0,17})$", list("-0123456789")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), _first)


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: where it is and what is wrong."""

    path: DataPath
    message: str
    line: int | None = None


@dataclass(slots=True)
class Document:
    """The content of a file.

    Attributes:
        data: Its content; None when it could not be read at all.
        lines: The line (from 1) of every key and list item.
        problems: What is wrong with it as YAML.
    """

    data: object = None
    lines: dict[DataPath, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def read_document(path: Path) -> Document:
    """The content of the file at `path`; never raises.

    If the file is missing, unreadable or no UTF-8 text, that is its only problem.
    """
    try:
        return parse_document(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        return Document(problems=[Problem((), "it is not UTF-8 text")])
    except (OSError, ValueError) as exc:  # ValueError: a NUL in the path
        return Document(
            problems=[Problem((), f"it cannot be read: {getattr(exc, 'strerror', None) or exc}")]
        )


def parse_document(text: str) -> Document:
    """The content of YAML `text`. Never raises: what is wrong with it is in `problems`."""
    document = Document()
    try:
        node = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        what = ", ".join(part for part in (exc.context, exc.problem) if part)
        document.problems.append(
            Problem((), f"not valid YAML: {what}", mark.line + 1 if mark else None)
        )
    except yaml.YAMLError as exc:  # characters that YAML does not allow
        document.problems.append(
            Problem((), f"not valid YAML: {getattr(exc, 'reason', 'unreadable')}")
        )
    except RecursionError:
        document.problems.append(Problem((), "nested too deeply", 1))
    else:
        if node is not None:
            document.data = _Reader(document).read(node, ())
    return document


class _Reader:
    """Turns composed nodes into plain data, noting lines and problems in the document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._open: set[int] = set()
        self._values = 0

    def read(self, node: Node, path: DataPath) -> object:
        """The value of `node`; None if it is refused."""
        self._document.lines.setdefault(path, _line(node))
        self._values += 1
        if self._values > MAX_VALUES:
            if self._values == MAX_VALUES + 1:
                self._refuse(node, path, f"more than {MAX_VALUES} values: aliases multiply them")
            return None
        if id(node) in self._open or len(path) > MAX_DEPTH:
            self._refuse(
                node,
                path,
                "an alias that contains itself" if id(node) in self._open else "nested too deeply",
            )
            return None
        self._open.add(id(node))
        try:
            return self._value(node, path)
        finally:
            self._open.remove(id(node))

    def _value(self, node: Node, path: DataPath) -> object:
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _scalar(self, node: Node, path: DataPath) -> object:
        construct = _SCALARS.get(node.tag)
        if construct is None or not isinstance(node, ScalarNode):
            self._refuse(
                node, path, f"the tag {node.tag} is not supported: write the value without it"
            )
            return None
        try:
            return construct(node.value)
        except ValueError:
            self._refuse(node, path, "not a whole number")
            return None

    def _mapping(self, node: MappingNode, path: DataPath) -> dict[str, object]:
        values: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._refuse(key_node, path, "a key must be text")
                continue
            key = str(key_node.value)
            place = (*path, key)
            if key in values:
                self._refuse(
                    key_node, place, f"duplicate key (first in line {self._document.lines[place]})"
                )
                continue
            self._document.lines[place] = _line(key_node)
            values[key] = self.read(value_node, place)
        return values

    def _refuse(self, node: Node, path: DataPath, message: str) -> None:
        self._document.problems.append(Problem(path, message, _line(node)))


def _line(node: Node) -> int:
    line: int = node.start_mark.line
    return line + 1


def line_of(path: DataPath, lines: Mapping[DataPath, int]) -> int | None:
    """The line of `path`, or of the nearest thing around it that has one."""
    for length in range(len(path), -1, -1):
        if (line := lines.get(path[:length])) is not None:
            return line
    return None


def named_lines(
    lines: Mapping[DataPath, int], places: Mapping[DataPath, DataPath]
) -> dict[DataPath, int]:
    """The lines of list items under the paths that name them; `places` says where each name is."""
    names = {place: name for name, place in places.items()}
    return {names[path[:2]] + path[2:]: line for path, line in lines.items() if path[:2] in names}


def render(problems: Iterable[Problem], lines: Mapping[DataPath, int]) -> list[str]:
    """The problems in file order, each as `line N: place: what is wrong`, one for each place.

    Without lines they stay in the given order.
    """
    first: dict[DataPath, Problem] = {}
    for problem in problems:
        first.setdefault(problem.path, problem)
    placed = [(problem.line or line_of(problem.path, lines), problem) for problem in first.values()]
    placed.sort(key=lambda item: item[0] or 0)
    return [_sentence(line, problem) for line, problem in placed]


def _sentence(line: int | None, problem: Problem) -> str:
    label = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step}" for step in problem.path
    ).lstrip(".")
    return ": ".join(
        part for part in (f"line {line}" if line else "", label, problem.message) if part
    )
