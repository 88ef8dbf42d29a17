"""Promise: a command imports what it needs and no more: help and completion only the parser, a
listing neither LangGraph nor LangChain.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from patience import PATIENCE_S

from langmem_ext import DeltaSaver, ThreadChatMessageHistory

pytestmark = [pytest.mark.process, pytest.mark.smoke]  # a second each, on a machine that rests

ENGINE = {"langchain", "langchain_core", "langgraph", "langsmith", "requests", "httpx"}
EXTRACTORS = {
    "email_validator",
    "jsonschema",
    "phonenumbers",
    "rapidfuzz",
    "referencing",
    "tiktoken",
}
SETTINGS = {"platformdirs", "pydantic_settings", "yaml"}
EDITOR = {"prompt_toolkit"}

LIST = ENGINE | EXTRACTORS | EDITOR
"""What no command needs that shows only what stands in the rows of threads."""

HELP = LIST | SETTINGS | {"ormsgpack", "rich", "sqlite3"}
"""What help, completion and the version do not need."""

PROGRAM = """
import atexit, sys
atexit.register(lambda: print("imported", *sys.modules, file=sys.stderr))
sys.argv[0] = "langmem-ext"
from langmem_ext.cli import main
main()
"""


def imported(*words: str, **environment: str) -> set[str]:
    """The packages that a command has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    names = done.stderr.splitlines()[-1].removeprefix("imported ").split()
    return {name.split(".")[0] for name in names}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("first") / "memory.db")
    with DeltaSaver.open(path) as saver:
        for thread in ("order-17", "order-18"):
            ThreadChatMessageHistory(thread, saver).add_user_message("Where is my order?")
    return path


@pytest.mark.parametrize(
    ("line", "unneeded"),
    [
        ("--version", HELP | {"pydantic"}),
        ("--help", HELP | {"pydantic"}),
        ("version", HELP),
        ("chat --help", HELP),
        ("threads list --help", HELP),
        ("threads list --since yesterday --title order --json", LIST),
        ("threads stats", LIST),
        ("threads show order-17", LIST),
        ("threads tag order-17 urgent", LIST),
        ("threads delete order-18 --yes --json", LIST),
        ("config show", LIST | {"sqlite3"}),
    ],
)
def test_a_command_imports_what_it_needs_and_no_more(
    line: str, unneeded: set[str], db: str
) -> None:
    assert imported(*line.split(), LANGMEM_EXT_DB=db) & unneeded == set()


def test_completion_in_a_shell_needs_no_database() -> None:
    environment = {
        "_LANGMEM_EXT_COMPLETE": "complete_bash",
        "COMP_WORDS": "langmem-ext threads list --",
        "COMP_CWORD": "3",
    }
    assert imported(**environment) & HELP == set()
