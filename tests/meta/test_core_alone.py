"""Promise: the core works without any extra, and what needs an extra names it.

The core: the saver, histories, threads, search, context governance and the import.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from patience import PATIENCE_S
from repository import ROOT

import langmem_ext
from langmem_ext._internal.extras import NEEDED

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

pytestmark = pytest.mark.process

OF_THE_WAITING_GRAPH = {
    name for name, home in langmem_ext._HOMES.items() if home.startswith("waiting.")
}


def brought(requirements: list[str]) -> set[str]:
    """The distributions that these requirements bring, with all that those need; extras of this
    package are followed.
    """
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name == PROJECT["name"]:
            waiting += [
                Requirement(text)
                for extra in one.extras
                for text in PROJECT["optional-dependencies"][extra]
            ]
        elif name not in found:
            found.add(name)
            try:
                needed = map(Requirement, distribution(name).requires or ())
            except PackageNotFoundError:  # for another Python or system
                continue
            waiting += [
                need
                for need in needed
                if need.marker is None or need.marker.evaluate({"extra": ""})
            ]
    return found


def modules_of_extras_alone() -> list[str]:
    """The modules that only extras bring."""
    core = brought(PROJECT["dependencies"])
    extras = brought([f"{PROJECT['name']}[all]"]) - core
    return sorted(
        module
        for module, homes in packages_distributions().items()
        if {canonicalize_name(home) for home in homes} <= extras
    )


def run(program: str, *arguments: str, hidden: list[str]) -> subprocess.CompletedProcess[str]:
    hide = f"import sys\nsys.modules |= dict.fromkeys({hidden!r})\n"
    return subprocess.run(
        [sys.executable, "-c", hide + program, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )


@pytest.mark.smoke
def test_the_core_brings_no_more_than_langgraphs_own_sqlite_saver_brings() -> None:
    core = brought(PROJECT["dependencies"])
    assert {"langgraph", "langchain-core"} <= core
    assert core <= brought(["langgraph", "langgraph-checkpoint-sqlite"])


def test_an_extra_brings_every_module_that_its_part_asks_for() -> None:
    homes = packages_distributions()
    for extra, modules in NEEDED.items():
        there = brought([f"{PROJECT['name']}[{extra}]"])
        for module in modules:
            assert {canonicalize_name(home) for home in homes[module]} & there, (extra, module)


def test_the_extra_all_has_every_other_but_what_needs_newer_packages_than_the_rest() -> None:
    [everything] = map(Requirement, PROJECT["optional-dependencies"]["all"])
    assert everything.extras == PROJECT["optional-dependencies"].keys() - {"all", "mcp"}


def test_the_agent_server_installs_what_its_graph_needs() -> None:
    named = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))["dependencies"]
    extras = PROJECT["optional-dependencies"]
    needed = [*extras["waiting"], *extras["agents"], *extras["server"]]
    assert named == [
        ".",
        *(one for one in needed if not one.startswith("langmem-ext[")),
    ]  # it takes a folder and packages, and no extras of a folder


USES = """
import asyncio
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langmem_ext import (
    ContextGovernor, ConversationMemory, DeltaSaver, ThreadChatMessageHistory, Threads,
    counter_for, examine, govern, import_checkpoints, stats,
)

old, new = sys.argv[1:]

def answer(state):
    return {"messages": [AIMessage("It is on its way.")]}

builder = StateGraph(MessagesState)
builder.add_node(answer)
builder.add_edge(START, "answer")

async def talk():
    async with DeltaSaver.open(new) as saver:
        graph = builder.compile(checkpointer=saver)
        asked = {"messages": [HumanMessage("Where is it?")]}
        return await graph.ainvoke(asked, {"configurable": {"thread_id": "t"}})

with DeltaSaver.open(new) as saver:
    graph = builder.compile(checkpointer=saver)
    asked = {"messages": [HumanMessage("Where is my order?")]}
    graph.invoke(asked, {"configurable": {"thread_id": "t"}})
assert len(asyncio.run(talk())["messages"]) == 4

report = import_checkpoints(old, new, verify=True)
assert report.threads == 1, report

with DeltaSaver.open(new) as log:
    ThreadChatMessageHistory("h", log).add_user_message("a broken lamp")
    threads = Threads(log)
    assert {thread.id for thread in threads.list()} == {"h", "old", "t"}
    assert [hit.thread_id for hit in threads.search("lamp")] == ["h"]
    assert len(threads.messages("old")) == 2
    governed = govern(threads.messages("t"), budget=1000)
    assert governed.messages
assert examine(new).ok
assert stats(new).threads == 3
print("all of it works")
"""


@pytest.fixture
def old(tmp_path: Path) -> str:
    """A database of LangGraph's own saver."""
    path = str(tmp_path / "old.sqlite")
    builder = StateGraph(MessagesState)
    builder.add_node("answer", lambda state: {"messages": [("ai", "Yes.")]})
    builder.add_edge(START, "answer")
    with SqliteSaver.from_conn_string(path) as saver:
        builder.compile(checkpointer=saver).invoke(
            {"messages": [("human", "Is it?")]}, {"configurable": {"thread_id": "old"}}
        )
    return path


@pytest.mark.smoke
def test_what_the_core_is_for_works_without_any_extra(old: str, tmp_path: Path) -> None:
    hidden = modules_of_extras_alone()
    assert {
        "phonenumbers",
        "jsonschema",
        "rapidfuzz",
        "tiktoken",
        "langchain",
        "typer",
        "pydantic_settings",
    } <= set(hidden)
    done = run(USES, old, str(tmp_path / "new.db"), hidden=hidden)
    assert done.stdout.strip() == "all of it works", done.stderr


NAMES = """
import langmem_ext
for name in langmem_ext.__all__:
    try:
        getattr(langmem_ext, name)
    except langmem_ext.MissingExtra as error:
        print(name, error, sep=": ")
"""


def test_without_one_package_of_the_waiting_graph_its_names_say_which_extra_brings_it() -> None:
    needs = "the waiting graph needs an extra: pip install 'langmem-ext[waiting]'"
    for missing in {*NEEDED["waiting"]} - {"yaml"}:
        done = run(NAMES, hidden=[missing])
        assert done.returncode == 0, done.stderr
        told = dict(line.split(": ", 1) for line in done.stdout.splitlines())
        assert told == dict.fromkeys(OF_THE_WAITING_GRAPH, needs)


def test_what_needs_an_extra_says_so_where_it_is_imported() -> None:
    for statement, hidden, extra in (
        ("from langmem_ext import build_waiting_graph", "phonenumbers", "waiting"),
        ("from langmem_ext import ContextMiddleware", "langchain", "agents"),
        ("from langmem_ext import Settings", "platformdirs", "settings"),
        ("from langmem_ext import Settings", "pydantic_settings", "settings"),
        ("import langmem_ext.server", "fastapi", "server"),
        ("import langmem_ext.inspector", "fastapi", "server"),
    ):
        done = run(statement, hidden=[hidden])
        assert done.stderr.splitlines()[-1].endswith(f"pip install 'langmem-ext[{extra}]'")
        assert done.returncode == 1


@pytest.mark.smoke
def test_without_any_extra_every_other_name_can_be_imported() -> None:
    done = run(NAMES, hidden=modules_of_extras_alone())
    assert done.returncode == 0, done.stderr
    told = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert told.keys() == OF_THE_WAITING_GRAPH | {
        "ContextMiddleware",
        "MemoryPromptMiddleware",
        "Settings",
        "Origin",
    }


COMMAND = "from langmem_ext.cli import main\nmain()"


def test_the_commands_on_threads_work_without_what_the_waiting_graph_needs(
    old: str, tmp_path: Path
) -> None:
    new = str(tmp_path / "new.db")
    hidden = [*{*NEEDED["waiting"]} - {"yaml"}, "tiktoken"]
    words = ("list", "show old", "history old", "search is", "stats", "fork old", "export --all")
    for line in (f"import-checkpoints {old} {new} --verify", *(f"threads {one}" for one in words)):
        database = ["--db", new] if line.startswith("threads") else []
        done = run(COMMAND, *line.split(), *database, hidden=hidden)
        assert done.returncode == 0, done.stderr
        assert done.stdout


@pytest.mark.smoke
def test_a_chat_without_what_it_needs_is_one_line(tmp_path: Path) -> None:
    done = run(COMMAND, "chat", "--db", str(tmp_path / "new.db"), hidden=["phonenumbers"])
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "langmem-ext: the waiting graph needs an extra: pip install 'langmem-ext[waiting]'\n"
    )
