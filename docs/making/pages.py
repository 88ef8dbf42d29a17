"""The parts of the documentation that are made from the code: `make fix` writes them anew.

`reference/cli.md` is generated from the commands; `reference/settings.md` and `guide/waiting.md`
hold tables between marks. Tests compare the pages with what is made here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from typer.main import get_command

from langmem_ext.cli.app import app
from langmem_ext.cli.chat.commands import COMMANDS, TAKES
from langmem_ext.cli.examples import COMMANDS as SHOWN
from langmem_ext.cli.examples import examples
from langmem_ext.settings.descriptions import descriptions
from langmem_ext.settings.field import about, written
from langmem_ext.settings.model import Settings
from langmem_ext.waiting.catalog.intent import CatalogFields, Intent, Replies
from langmem_ext.waiting.catalog.param import Param, ParamType, doubtful_below

DOCS: Final = Path(__file__).parents[1]


# -- the command line --------------------------------------------------------------------------

_BEFORE_COMMANDS: Final = """\
# The command line

<!-- This page is made from the commands by `make fix`. -->

`pip install 'langmem-ext[cli]'` installs `langmem-ext`. `langmem-ext COMMAND --help` shows the same
texts. Data goes to stdout, notes go to stderr. In a pipe, commands print one line for each thread
or message; with `--json`, they print JSON.

Identify a thread by its id, any unique prefix of its id, or its title. A database is a path or a
URL; without `--db` it is the setting `storage_path` ([settings.md](settings.md)).

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | refused by the database, the thread, the graph or the user |
| 2 | an argument or a setting is invalid, or an extra is missing |
| 130 | stopped by Ctrl-C |
| 141 | the output pipe was closed |
"""

_IN_THE_CHAT: Final = """\
### Chat commands

The Up key recalls earlier messages of the thread; Tab completes commands, threads and paths. To
send a message that starts with a slash, type two. In a pipe, each line of stdin is a message and
each line of stdout its reply; the first line that is refused ends the chat, so that no later line
goes to the wrong conversation.

| command | |
|---|---|
"""


def command_line() -> str:
    """`reference/cli.md`: every command with its help, its arguments and options, and examples."""
    group: Any = get_command(app)
    return "\n".join([_BEFORE_COMMANDS, *_sections(group, "langmem-ext")]).rstrip() + "\n"


def _sections(group: Any, name: str) -> Iterator[str]:
    context = group.context_class(group, info_name=name)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        if command.hidden:
            continue
        called = f"{name} {word}"
        yield f"## {called}\n"
        yield _prose(command.help or "")
        if hasattr(command, "commands"):
            yield from _sections(command, called)
            continue
        context = command.make_context(word, [], resilient_parsing=True)
        usage = " ".join(piece.strip("{}") for piece in command.collect_usage_pieces(context))
        yield f"```\n{called} {usage}\n```\n"
        if rows := [_option(option) for option in command.params if option.name != "help"]:
            yield "\n".join(["| argument or option | |", "|---|---|", *rows, ""])
        shown = (
            [line for line in examples(word) if line.startswith(called)] if word in SHOWN else []
        )
        if shown:
            yield "\n".join(["```sh", *shown, "```", ""])
        if called == "langmem-ext chat":
            typed = [
                f"| `{f'{slash} {TAKES.get(slash, str())}'.rstrip()}` | {use} |"
                for slash, use in COMMANDS.items()
            ]
            yield _IN_THE_CHAT + "\n".join([*typed, ""])


def _prose(text: str) -> str:
    """A command's help as Markdown."""
    return inspect.cleandoc(text.replace("\b", "").split("\f")[0]) + "\n"


def _option(option: Any) -> str:
    """A row of a table: how the argument or option is written, and what it does."""
    if option.param_type_name == "argument":
        return f"| `{(option.metavar or option.name.upper())}` | {_cell(option.help)} |"
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    takes = "" if option.is_flag else f" {_cell(option.metavar or option.type.name.upper())}"
    return f"| {names}{takes} | {_cell(option.help)} |"


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


# -- the settings ------------------------------------------------------------------------------

_TABLE: Final = "<!-- The table is made from the model's own descriptions by `make fix`. -->"
_TABLE_END: Final = "<!-- The end of the table. -->"


def with_settings(page: str) -> str:
    """`reference/settings.md` with the table of settings as it is now."""
    head = ["| setting | default | values | off | meaning |", "|---|---|---|---|---|"]
    return _between(page, _TABLE, "\n".join([*head, *_settings()]), _TABLE_END)


def _settings() -> Iterator[str]:
    for name, field in Settings.model_fields.items():
        special = about(field)
        default = f"`{written(field.default)}`" if field.default != "" else "empty"
        off = "" if special.off is None else f"`{special.off}`"
        yield f"| `{name}` | {default} | {_takes(field)} | {off} | {descriptions()[name]} |"


def _takes(field: FieldInfo) -> str:
    """The kind of value, in a word or two."""
    if get_origin(field.annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(field.annotation))
    special = about(field)
    if special.is_path:
        return "path or URL" if special.variable else "path"
    return special.unit or ("`true`, `false`" if field.annotation is bool else "text")


# -- the catalog -------------------------------------------------------------------------------

DECLARATIONS: Final[dict[str, type[BaseModel]]] = {
    "catalog": CatalogFields,
    "intents": Intent,
    "params": Param,
    "replies": Replies,
}
"""The sections of a catalog to the declarations that they hold."""


def with_catalog(page: str) -> str:
    """`guide/waiting.md` with the tables of catalog keys as they are now."""
    tables = {name: _keys(model) for name, model in DECLARATIONS.items()} | {"types": _types()}
    for name, rows in tables.items():
        begin, end = f"<!-- {name}: made by `make fix` -->", f"<!-- end of {name} -->"
        page = _between(page, begin, "\n".join(rows), end)
    return page


def _types() -> Iterator[str]:
    yield from ("| type | its values | doubtful below |", "|---|---|---|")
    meanings = _meanings(ParamType)
    for kind in ParamType:
        below = doubtful_below(Param(name="x", type=kind)) or ""
        yield f"| `{kind}` | {meanings[kind.name]} | {below} |"


def _meanings(model: type[object]) -> dict[str, str]:
    """What the docstring says of each attribute."""
    _, _, attributes = inspect.cleandoc(model.__doc__ or "").partition("Attributes:\n")
    told = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in told}


def _keys(model: type[BaseModel]) -> Iterator[str]:
    yield from ("| key | default | meaning |", "|---|---|---|")
    meanings = _meanings(model)
    for name, field in model.model_fields.items():
        default = "" if field.is_required() or field.default_factory else field.default
        shown = f"`{default}`" if default not in ("", None, ()) else ""
        yield f"| `{name}` | {shown.replace('|', ' ')} | {meanings[name].replace('|', ' or ')} |"


def _between(page: str, begin: str, text: str, end: str) -> str:
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n{text}\n\n{end}{after}"


def write() -> None:
    """Write all of it anew."""
    (DOCS / "reference" / "cli.md").write_text(command_line(), encoding="utf-8")
    for name, made in (
        ("reference/settings.md", with_settings),
        ("guide/waiting.md", with_catalog),
    ):
        page = DOCS / name
        page.write_text(made(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write()
