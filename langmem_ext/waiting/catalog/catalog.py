"""The intent catalog: what users can ask for, the parameters of that, and the questions for them.

A catalog is read once and never changes. `from_yaml` reports every mistake of the file at once;
`with_tools` binds it to the tools.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Self

from langchain_core.tools import BaseTool
from pydantic import PrivateAttr

from langmem_ext._internal.names import instead_of
from langmem_ext._internal.yaml import (
    DataPath,
    Document,
    Problem,
    named_lines,
    read_document,
    render,
)
from langmem_ext.errors import CatalogError, InvalidInput
from langmem_ext.waiting.catalog.check import check_parts, check_tools
from langmem_ext.waiting.catalog.intent import (
    TEMPLATE_FIELD,
    CatalogFields,
    Intent,
    Redaction,
    Replies,
    template_fields,
)
from langmem_ext.waiting.catalog.param import NONE, Extensions, Param
from langmem_ext.waiting.catalog.parse import parse_catalog
from langmem_ext.waiting.catalog.tool_params import params_with_tools, with_tool_params
from langmem_ext.waiting.catalog.tool_schema import field_error, step_arguments, tool_arguments

__all__ = [
    "TEMPLATE_FIELD",
    "Intent",
    "IntentCatalog",
    "Redaction",
    "Replies",
    "field_error",
    "step_arguments",
    "template_fields",
    "tool_arguments",
]


class IntentCatalog(CatalogFields):
    """What users can ask for, with the parameters and the graph's replies.

    `from_yaml` or `from_dict` reads a catalog; `with_tools` binds it to its tools.

    Attributes:
        intents: What users can ask for, in file order.
        params: The parameters, by name.
        replies: The graph's own replies.
        escalate_to: Id of the intent that takes over when a question is answered wrongly too often.
        redaction: What is kept out of logs.
        timeout: Seconds after which an unanswered question has expired.
    """

    _source: str = PrivateAttr(default="the catalog")
    _lines: dict[DataPath, int] = PrivateAttr(default_factory=dict)
    _declared_keys: dict[str, frozenset[str]] = PrivateAttr(default_factory=dict)

    @classmethod
    def from_yaml(cls, path: str | Path) -> Self:
        """Read a catalog from the YAML file at `path`.

        Raises:
            CatalogError: The file cannot be read, or has mistakes: all of them, each with its line.
        """
        return cls._read(read_document(Path(path)), str(path))

    @classmethod
    def from_dict(cls, data: Mapping[str, object], *, source: str = "the catalog") -> Self:
        """Read a catalog from a dict, in the same form as a file.

        Args:
            data: The content of the file.
            source: What to call it in errors.

        Raises:
            CatalogError: It has mistakes: all of them, each with its place.
        """
        return cls._read(Document(data), source)

    @classmethod
    def _read(cls, document: Document, source: str) -> Self:
        if document.data is None and document.problems:
            raise CatalogError(source, render(document.problems, document.lines))
        parsed = parse_catalog(document.data)
        lines = document.lines | named_lines(document.lines, parsed.places)
        problems = check_parts(parsed.fields, parsed.param_names, parsed.intent_ids, complete=False)
        _refuse(source, lines, [*document.problems, *parsed.problems, *problems])
        catalog = cls(**dict(parsed.fields))
        catalog._source, catalog._lines, catalog._declared_keys = (
            source,
            lines,
            parsed.declared_keys,
        )
        return catalog

    def with_tools(self, tools: Iterable[BaseTool], extensions: Extensions = NONE) -> Self:
        """The catalog, completed for `tools`: what it omits comes from the schemas of the tools.

        An intent that names no parameters takes its tool's arguments; a parameter that is not
        declared is made from the argument it fills; a declared one keeps what its declaration says
        and takes the rest (type, values, pattern, description) from the argument.

        Args:
            tools: The tools that the intents name; more may be there.
            extensions: Functions of the application that the parameters name.

        Raises:
            CatalogError: Catalog, tools and functions do not fit: every mistake at once.
            InvalidInput: Something in `tools` is not a tool.
        """
        by_name = _tools_by_name(tools)
        arguments = {name: tool_arguments(tool) for name, tool in by_name.items()}
        intents = tuple(with_tool_params(intent, arguments) for intent in self.intents)
        made = params_with_tools(intents, self.params, self._declared_keys, arguments)
        params = {name: param.with_extensions(extensions) for name, param in made.items()}
        catalog = self.model_copy(update={"intents": intents, "params": params})
        ids = [intent.id for intent in intents]
        problems = check_parts(catalog, [*params], ids, complete=True, extensions=extensions)
        _refuse(self._source, self._lines, [*problems, *check_tools(catalog, by_name, arguments)])
        return catalog

    def intent(self, intent_id: str) -> Intent:
        """The intent called `intent_id`.

        Raises:
            InvalidInput: It is unknown; the message names the nearest one.
        """
        for intent in self.intents:
            if intent.id == intent_id:
                return intent
        raise InvalidInput(
            f"unknown intent {intent_id!r};"
            f" {instead_of(intent_id, [intent.id for intent in self.intents])}"
        )

    def param(self, name: str) -> Param:
        """The parameter called `name`.

        Raises:
            InvalidInput: It is unknown; the message names the nearest one.
        """
        try:
            return self.params[name]
        except KeyError:
            raise InvalidInput(
                f"unknown parameter {name!r}; {instead_of(name, self.params)}"
            ) from None

    def is_sensitive(self, name: str) -> bool:
        """Whether the parameter is declared sensitive or redacted by name.

        Its values never leave the thread.
        """
        param = self.params.get(name)
        return name in self.redaction.params or (param is not None and param.sensitive)

    def confirm_question(self, intent: Intent) -> str | None:
        """The template of the intent's confirmation question; None when it wants none.

        The question is asked before the intent's first tool runs.
        """
        if isinstance(intent.confirm, str):
            return intent.confirm or None
        return self.replies.confirm if intent.confirm else None


def _refuse(source: str, lines: Mapping[DataPath, int], problems: list[Problem]) -> None:
    if problems:
        raise CatalogError(source, render(problems, lines))


def _tools_by_name(tools: Iterable[BaseTool]) -> dict[str, BaseTool]:
    by_name: dict[str, BaseTool] = {}
    for tool in tools:
        if not isinstance(tool, BaseTool):
            raise InvalidInput(f"{tool!r} is not a tool: create one with langchain_core.tools.tool")
        if tool.name in by_name:
            raise InvalidInput(f"two tools are named {tool.name!r}: rename one")
        by_name[tool.name] = tool
    return by_name
