"""The documents are right: their code runs, commands and links exist, pictures show the graph."""

from __future__ import annotations

import re
import shlex
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from repository import ROOT
from typer.main import get_command

from docs.making.pages import command_line
from graphs.support import graph
from langmem_ext.cli.app import app
from langmem_ext.cli.chat.commands import COMMANDS

README = (ROOT / "README.md").read_text(encoding="utf-8")
MANUAL = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
CLIENTS = (ROOT / "docs" / "guide" / "human-in-the-loop.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def tree_of(commands: dict[str, Any], above: str = "") -> dict[str, Any]:
    """The commands by all the words that call them: `version`, `config show`."""
    found = {}
    for name, command in commands.items():
        inner = getattr(command, "commands", None)
        found |= {f"{above}{name}": command} if inner is None else tree_of(inner, f"{above}{name} ")
    return found


COMMAND_TREE = tree_of(get_command(app).commands)  # type: ignore[attr-defined]  # a group


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, and its text."""

    language: str
    text: str


def code_pages() -> list[object]:
    """The pages with code to run; those of `make test` tell what is new to most readers."""
    own_test = {"server.md", "settings.md"}
    pages = [page for page in DOCUMENTS[2:] if page.name not in own_test]
    # Clients of others are in beta, and call what is deprecated.
    others = {"human-in-the-loop.md": [pytest.mark.filterwarnings("ignore"), pytest.mark.interop]}
    slow = [pytest.mark.slow]
    return [
        pytest.param(
            page, marks=others.get(page.name, []) + ([] if page.parent.name == "guide" else slow)
        )
        for page in pages
        if blocks(page.read_text(encoding="utf-8"), "python")
    ]


def blocks(text: str, language: str) -> list[Block]:
    found = [
        Block(*match.groups())
        for match in re.finditer(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]
    return [block for block in found if block.language == language]


def expected_output(code: str) -> list[str]:
    """What the comments after calls of `print` say is printed."""
    return re.findall(r"^\s*print\(.*\)  # (.+)$", code, re.MULTILINE)


def shell_lines(program: str) -> list[list[str]]:
    """The commands of the pages' shell blocks that call `program`, as words."""
    pages = README + MANUAL + CLIENTS
    lines = [line for block in blocks(pages, "sh") for line in block.text.splitlines()]
    commands = [
        part.strip() for line in lines for part in re.split(r"\s\|\s", line.split("  #")[0])
    ]
    return [
        words for command in commands if (words := shlex.split(command)) and words[0] == program
    ]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the README was followed from top to bottom."""
    folder = tmp_path_factory.mktemp("reader")
    shutil.copy(ROOT / "README.md", folder)
    for block in blocks(README, "yaml"):
        name = block.text.splitlines()[0].removeprefix("# ")
        (folder / name).write_text(block.text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        printed: list[str] = []
        known: dict[str, Any] = {"print": lambda *words: printed.append(" ".join(map(str, words)))}
        code = "".join(block.text for block in blocks(README, "python"))
        exec(compile(code, "<README>", "exec"), known)
    assert printed == expected_output(code)
    assert len(printed) >= 4
    return folder


def test_the_code_of_the_readme_prints_what_it_says(played: Path) -> None:
    assert (played / "memory.db").is_file()


@pytest.mark.parametrize("page", code_pages(), ids=lambda page: page.stem)
def test_the_code_of_a_page_prints_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    printed: list[str] = []
    code = "".join(block.text for block in blocks(page.read_text(encoding="utf-8"), "python"))
    exec(
        compile(code, f"<{page.name}>", "exec"),
        {"__name__": "page", "print": lambda *words: printed.append(" ".join(map(str, words)))},
    )
    assert printed == expected_output(code)


def test_the_one_line_swap_is_all_that_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    [swap] = blocks(README, "diff")
    builder = (
        StateGraph(MessagesState)
        .add_node("answer", lambda state: {"messages": ["hello"]})
        .add_edge(START, "answer")
    )
    for sign in "-+":
        known: dict[str, Any] = {"builder": builder}
        exec("\n".join(line[1:] for line in swap.text.splitlines() if line.startswith(sign)), known)
        answer = known["graph"].invoke({"messages": ["hi"]}, {"configurable": {"thread_id": "t"}})
        assert [message.text for message in answer["messages"]] == ["hi", "hello"]
    known["graph"].checkpointer.close()


def test_the_database_is_read_as_the_readme_says(played: Path) -> None:
    commands = shell_lines("sqlite3")
    assert commands
    for _, database, statement in commands:
        with closing(sqlite3.connect(played / database)) as connection:
            assert connection.execute(statement).fetchall()


def test_commands_in_the_readme_and_the_manual_parse() -> None:
    commands = shell_lines("langmem-ext")
    assert len(commands) >= 4
    for words in commands:
        name = next(name for name in (" ".join(words[1:3]), words[1]) if name in COMMAND_TREE)
        COMMAND_TREE[name].make_context(name, words[1 + len(name.split()) :])


def test_every_command_has_help_and_is_in_the_manual() -> None:
    for name, command in COMMAND_TREE.items():
        assert command.help, name
        assert f"## langmem-ext {name}\n" in MANUAL
        for parameter in command.params:
            assert parameter.help, f"{name}: {parameter.name} has no help"
            assert all(option in MANUAL for option in parameter.opts if option.startswith("-"))


def test_the_manual_is_up_to_date() -> None:
    assert command_line() == MANUAL, "make fix writes it anew"
    assert [command for command in COMMANDS if f"| `{command}" not in MANUAL] == []


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 200


def test_every_make_target_in_the_documents_is_there() -> None:
    targets = set(
        re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    named = set(re.findall(r"\bmake ([a-z]+)(?=`|   )", README))
    assert {"demo", "chat", "test", "check", "fix", "bench", "soak"} <= named
    assert named <= targets


def anchors_of(page: Path) -> set[str]:
    """What links may name of a page: its headings, as GitHub and the site make anchors of them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [re.sub(r"[`*]|\]\([^)]*\)|\[", "", title).lower() for title in titles]
    return {re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-") for title in plain}


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        links = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
        for link in (link or source for link, source in links if "://" not in link + source):
            path, _, anchor = link.partition("#")
            page = document.parent / path if path else document
            assert page.exists(), f"{document}: {link}"
            if anchor and page.suffix == ".md":
                assert anchor in anchors_of(page), f"{document}: {link}"


# -- pictures --------------------------------------------------------------------------------------


def test_the_picture_and_the_diagram_show_the_graph() -> None:
    edges = {(edge.source, edge.target) for edge in graph.get_graph().edges}
    drawn = ElementTree.parse(ROOT / "docs" / "pictures" / "waiting-graph.svg").getroot().iter()
    found = [
        tuple(element.attrib["data-edge"].split())
        for element in drawn
        if "data-edge" in element.attrib
    ]
    assert sorted(found) == sorted(edges)
    page = (ROOT / "docs" / "guide" / "waiting.md").read_text(encoding="utf-8")
    [diagram] = blocks(page, "mermaid")
    arrows = re.findall(r"^\s*(\w+) -->(?:\|[^|]+\|)? (\w+)$", diagram.text, re.MULTILINE)
    assert {*arrows} == edges


# -- the architecture ------------------------------------------------------------------------------

PACKAGE = ROOT / "langmem_ext"
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = re.compile(
    r"`(?P<module>[a-z_]+(?:/[a-z_]+)+/?)(?:\.py)?(?:\.(?!html)(?P<member>\w+))?(?:\.(?!html)\w+)?`"
    r"(?: \(`(?P<inside>\w+)`)?"
)
"""A module, or a package, and what it holds: `` `extract/dates/time` (`_candidate`) ``."""


def sources_of(module: str) -> list[str]:
    """The texts of the modules whose path ends so, or that are in a package whose path does."""
    paths = [path for path in PACKAGE.rglob("*") if path.is_dir() or path.suffix == ".py"]
    ends = f"/{module.rstrip('/')}"
    return [
        "\n".join(
            file.read_text(encoding="utf-8")
            for file in ([path] if path.is_file() else path.glob("*.py"))
        )
        for path in paths
        if f"/{path.relative_to(PACKAGE).with_suffix('').as_posix()}".endswith(ends)
    ]


def is_outside(path: str) -> bool:
    return (ROOT / path).exists() or (ROOT / f"{path}.py").exists()


def test_what_the_architecture_names_is_there() -> None:
    named = [match for match in NAMED.finditer(ARCHITECTURE) if not is_outside(match["module"])]
    assert len(named) > 100
    for match in named:
        found = sources_of(match["module"])
        assert found, f"{match['module']} is no module"
        for name in filter(None, (match["member"], match["inside"])):
            defined = re.compile(
                rf"^\s*(?:(?:async )?def {name}\b|class {name}\b|{name}\b.*=)", re.M
            )
            assert any(defined.search(text) for text in found), f"{match.group()}: no {name}"
