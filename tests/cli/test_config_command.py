"""Settings at the command line, as a user has them: shown with where each comes from, and heeded by
the commands.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pexpect
import pytest
from commands import data, run
from langgraph.checkpoint.sqlite import SqliteSaver

from langmem_ext import DeltaSaver, Settings


@pytest.fixture
def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; nothing is set on this computer."""
    (folder / "project").mkdir()
    monkeypatch.chdir(folder / "project")
    return folder / "project"


def user_file(project: Path) -> Path:
    path = project.parent / "config" / "langmem-ext" / "langmem.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def rows(done: subprocess.CompletedProcess[str]) -> dict[str, list[str]]:
    assert done.stderr == ""
    return {name: cells for name, *cells in (line.split("\t") for line in done.stdout.splitlines())}


def said_in(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute("SELECT text FROM conversation WHERE role = 'human'")
        return [text for (text,) in found]


# -- shown -----------------------------------------------------------------------------------------


def test_every_setting_is_shown_with_where_it_comes_from(project: Path) -> None:
    (project / "langmem.yaml").write_text("# Ours\nttl_hours: 0.5\nmax_turns: 7\n")
    user_file(project).write_text("max_turns: 8\nowner: ann\n")
    url = "postgresql://ann:SECRET@host/db"
    variables = {"LANGMEM_EXT_TITLE_LENGTH": "60", "LANGMEM_EXT_DB": url}
    own = ["--set", "model=a\x1b[2Jb\tc\nd"]
    shown = rows(run("config", "show", *own, **variables))
    assert list(shown) == list(Settings.model_fields)
    for name, value, origin in (
        ("model", r"'a\x1b[2Jb\tc\nd'", "argument"),
        ("title_length", "60", "LANGMEM_EXT_TITLE_LENGTH"),
        ("storage_path", "postgresql://ann:***@host/db", "LANGMEM_EXT_DB"),
        ("ttl_hours", "0.5", f"{project}/langmem.yaml:2"),
        ("max_turns", "7", f"{project}/langmem.yaml:3"),
        ("owner", "ann", f"{user_file(project)}:2"),
        ("list_limit", str(Settings.model_fields["list_limit"].default), "default"),
    ):
        assert shown[name] == [value, origin]
    (project / "langmem.yaml").write_text("memory:\n  ttl_hours: 0.5\n")
    [settings] = data("config", "show", **variables)
    assert settings.keys() == shown.keys()
    assert all(setting["takes"] and setting["governs"] for setting in settings.values())
    assert (
        settings["ttl_hours"]
        | {
            "value": 0.5,
            "unit": "hours",
            "off": 0,
            "from": "project file",
            "name": f"{project}/langmem.yaml",
            "line": 2,
            "takes": "a number of hours, 0 to 876,000; 0 turns it off",
        }
        == settings["ttl_hours"]
    )
    assert "SECRET" not in json.dumps(settings)


@pytest.mark.process
def test_a_person_sees_a_table(project: Path, terminal: Callable[..., pexpect.spawn]) -> None:
    shown = terminal("config", "show", LANGMEM_EXT_TTL_HOURS="7").read()
    [line] = [line for line in shown.splitlines() if "ttl_hours" in line]
    assert "7" in line
    assert "LANGMEM_EXT_TTL_HOURS" in line


def test_the_files_are_named_whether_they_are_there_or_not(project: Path) -> None:
    user_file(project).write_text("not: [closed\n")
    assert run("config", "path").stdout.splitlines() == [
        f"project file\t{project}/langmem.yaml\tnot found",
        f"user file\t{user_file(project)}",
    ]
    assert data("config", "path") == [
        [
            {"layer": "project file", "path": f"{project}/langmem.yaml", "exists": False},
            {"layer": "user file", "path": str(user_file(project)), "exists": True},
        ]
    ]


# -- heeded ----------------------------------------------------------------------------------------


def test_every_command_uses_the_database_of_the_project_unless_it_is_told_of_another(
    project: Path,
) -> None:
    (project / "chats").mkdir()
    (project / "langmem.yaml").write_text("storage_path: chats/ours.db\n")
    with closing(sqlite3.connect("old.sqlite")) as connection:
        SqliteSaver(connection).setup()
    older = {"LANGMEM_EXT_DB": "older.db"}
    assert run("chat", given="I want a refund\n").stdout == "What's your order ID?\n"
    assert run("doctor").stdout == "1 threads, 3 checkpoints, 2 messages: all is well\n"
    assert data("stats")[0]["messages"] == 2
    assert data("import-checkpoints", "old.sqlite")[0]["threads"] == 0
    run("chat", given="where is my order?\n", **older)
    run("chat", "--db", "mine.db", given="hello\n", **older)
    assert data("stats", "mine.db", LANGMEM_EXT_DB="nowhere.db")[0]["messages"] == 2
    assert said_in(project / "chats" / "ours.db") == ["I want a refund"]
    assert said_in(project / "older.db") == ["where is my order?"]
    assert said_in(project / "mine.db") == ["hello"]
    assert not (project / "memory.db").exists()


def test_a_chat_that_is_not_to_be_kept_is_not(project: Path) -> None:
    (project / "langmem.yaml").write_text("enabled: no\n")
    done = run("chat", given="I want a refund\nO-12345\n/history\n")
    assert "you: I want a refund" in done.stdout
    assert "is not stored" in done.stderr
    assert sorted(path.name for path in project.iterdir()) == ["langmem.yaml"]
    run("chat", "--db", "asked.db", given="I want a refund\n")
    assert said_in(project / "asked.db") == ["I want a refund"]


def test_a_chat_belongs_to_the_owner_that_is_set(project: Path) -> None:
    (project / "langmem.yaml").write_text("owner: ann\n")
    run("chat", "--thread", "t", given="I want a refund\n")
    with DeltaSaver.open("memory.db") as saver:
        for owner, there in (("ann", True), ("bob", False)):
            found = saver.for_owner(owner).get_tuple({"configurable": {"thread_id": "t"}})
            assert (found is not None) == there
    run("chat", "--thread", "t", given="hello\n", code=1, LANGMEM_EXT_OWNER="bob")


def test_what_is_written_is_compressed_where_that_is_set_or_said(project: Path) -> None:
    long = "I want a refund, please, " * 120
    run("chat", "--compress", "--db", "said.db", given=f"{long}\n")
    (project / "langmem.yaml").write_text("compress: true\nsynchronous: normal\n")
    run("chat", given=f"{long}\n")
    run("chat", "--no-compress", "--db", "plain.db", given=f"{long}\n")
    for name, compressed in (("said.db", True), ("memory.db", True), ("plain.db", False)):
        assert (long.strip().encode() in Path(name).read_bytes()) != compressed, name
    history = run("chat", "--db", "said.db", given="/history\n").stdout
    assert f"you: {long.strip()}" in history, "it is read without being asked to"


# -- mistakes --------------------------------------------------------------------------------------


def test_mistakes_are_named_and_nothing_is_changed(project: Path) -> None:
    (project / "langmem.yaml").write_text(
        "storage_path: ours.db\nmax_turn: SECRET\nttl_hours: soon\n"
    )
    for line in ("chat", "doctor", "stats", "import-checkpoints old.sqlite", "config show"):
        done = run(*line.split(), given="hello\n", code=2, LANGMEM_EXT_STORAGE="x.db")
        assert done.stdout == ""
        assert done.stderr.splitlines() == [
            "langmem-ext: the settings have 3 mistakes:",
            "  LANGMEM_EXT_STORAGE is not a setting; did you mean LANGMEM_EXT_STORAGE_PATH?",
            f"  {project}/langmem.yaml:2: max_turn is not a setting; did you mean max_turns?",
            (
                f"  {project}/langmem.yaml:3: ttl_hours cannot be 'soon'; a number of hours, 0 to"
                " 876,000; 0 turns it off"
            ),
        ]
    assert sorted(path.name for path in project.iterdir()) == ["langmem.yaml"]
    DeltaSaver.open("memory.db").close()
    for line in ("--help", "chat --help", "version", "config path", "doctor memory.db"):
        run(*line.split())
