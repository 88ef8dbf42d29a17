"""Settings at the command line, as a user has them: shown with where each comes from, and heeded by
the commands.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pexpect
import pytest
from commands import call as carry_out
from langgraph.checkpoint.sqlite import SqliteSaver
from patience import PATIENCE_S
from repository import ROOT
from typer.testing import CliRunner, Result

from langmem_ext import DeltaSaver, Settings
from langmem_ext.cli.app import app

COMMAND = [sys.executable, "-m", "langmem_ext.cli"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder; nothing is set on this computer."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith("LANGMEM_EXT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("LANGMEM_EXT_SHOP_DB", str(tmp_path / "shop.db"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return folder


def user_file(project: Path) -> Path:
    path = project.parent / "config" / "langmem-ext" / "langmem.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def call(*words: str, said: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    return carry_out(list(words), environment=os.environ | variables, folder=Path.cwd(), given=said)


def call_here(*words: str, said: str = "", **variables: str) -> Result:
    """The same in this process, which has what it imports already."""
    return CliRunner().invoke(app, words, input=said, env=variables)


def rows(done: subprocess.CompletedProcess[str]) -> dict[str, list[str]]:
    assert (done.returncode, done.stderr) == (0, "")
    return {name: cells for name, *cells in (line.split("\t") for line in done.stdout.splitlines())}


def said_in(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return [
            text
            for (text,) in connection.execute("SELECT text FROM conversation WHERE role = 'human'")
        ]


# -- shown -----------------------------------------------------------------------------------------


def test_every_setting_is_shown_with_where_it_comes_from(project: Path) -> None:
    (project / "langmem.yaml").write_text("# Ours\nttl_hours: 0.5\nmax_turns: 7\n")
    user_file(project).write_text("max_turns: 8\nowner: ann\n")
    shown = rows(call("config", "show", "--set", "strategy=hybrid", LANGMEM_EXT_TITLE_LENGTH="60"))
    assert list(shown) == list(Settings.model_fields)
    assert shown["strategy"] == ["hybrid", "argument"]
    assert shown["title_length"] == ["60", "LANGMEM_EXT_TITLE_LENGTH"]
    assert shown["ttl_hours"] == ["0.5", f"{project}/langmem.yaml:2"]
    assert shown["max_turns"] == ["7", f"{project}/langmem.yaml:3"]
    assert shown["owner"] == ["ann", f"{user_file(project)}:2"]
    assert shown["storage_path"] == ["memory.db", "default"]


def test_json_says_the_same(project: Path) -> None:
    (project / "langmem.yaml").write_text("memory:\n  strategy: hybrid\n")
    done = call("config", "show", "--json", LANGMEM_EXT_DB="postgresql://ann:SECRET@host/db")
    shown = json.loads(done.stdout)
    assert set(shown) == set(Settings.model_fields)
    place = {"from": "project file", "name": f"{project}/langmem.yaml", "line": 2}
    said = shown["strategy"]
    assert {name: said[name] for name in ("value", "unit", *place)} == {
        "value": "hybrid",
        "unit": None,
        **place,
    }
    assert (shown["storage_path"]["value"], shown["storage_path"]["name"]) == (
        "postgresql://ann:***@host/db",
        "LANGMEM_EXT_DB",
    )
    said = shown["ttl_hours"]
    assert (said["value"], said["unit"], said["off"], said["from"], said["line"]) == (
        3,
        "hours",
        0,
        "default",
        None,
    )
    assert said["takes"] == "a number of hours, 0 to 876,000; 0 turns it off"
    assert all(setting["takes"] and setting["governs"] for setting in shown.values())
    assert (
        "SECRET"
        not in call("config", "show", LANGMEM_EXT_DB="postgresql://ann:SECRET@host/db").stdout
    )


def test_a_value_is_one_line_that_cannot_steer_the_terminal(project: Path) -> None:
    shown = rows(call("config", "show", "--set", "owner=a\x1b[2Jb\tc\nd"))
    assert shown["owner"] == [r"'a\x1b[2Jb\tc\nd'", "argument"]


@pytest.mark.process
def test_a_person_sees_a_table(project: Path) -> None:
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "LANGMEM_EXT_TTL_HOURS": "7"}
    shown = pexpect.run(
        " ".join([*COMMAND, "config", "show"]),
        timeout=PATIENCE_S,
        encoding="utf-8",
        env=environment,
    )
    [line] = [line for line in shown.splitlines() if "ttl_hours" in line]
    assert "7" in line
    assert "LANGMEM_EXT_TTL_HOURS" in line


def test_the_files_are_named_whether_they_are_there_or_not(project: Path) -> None:
    user_file(project).write_text("not: [closed\n")
    done = call("config", "path")
    assert done.stdout.splitlines() == [
        f"project file\t{project}/langmem.yaml\tnot found",
        f"user file\t{user_file(project)}",
    ]
    assert json.loads(call("config", "path", "--json").stdout) == [
        {"layer": "project file", "path": f"{project}/langmem.yaml", "exists": False},
        {"layer": "user file", "path": str(user_file(project)), "exists": True},
    ]


# -- heeded ----------------------------------------------------------------------------------------


def test_every_command_uses_the_database_of_the_project(project: Path) -> None:
    (project / "chats").mkdir()
    (project / "langmem.yaml").write_text("storage_path: chats/ours.db\n")
    done = call("chat", said="I want a refund\n")
    assert (done.returncode, done.stdout) == (0, "What's your order ID?\n")
    assert said_in(project / "chats" / "ours.db") == ["I want a refund"]
    assert call("doctor").stdout == "1 threads, 3 checkpoints, 2 messages: all is well\n"
    assert json.loads(call("stats", "--json").stdout)["messages"] == 2
    assert not (project / "memory.db").exists()


def test_an_import_goes_to_the_database_of_the_project(project: Path) -> None:
    with closing(sqlite3.connect("old.sqlite")) as connection:
        SqliteSaver(connection).setup()
    (project / "langmem.yaml").write_text("storage_path: ours.db\n")
    done = call("import-checkpoints", "old.sqlite", "--json")
    assert (done.returncode, json.loads(done.stdout)["threads"]) == (0, 0), done.stderr
    assert (project / "ours.db").is_file()


def test_what_a_command_is_told_counts_for_more(project: Path) -> None:
    (project / "langmem.yaml").write_text("storage_path: ours.db\n")
    call("chat", "--db", "mine.db", said="I want a refund\n", LANGMEM_EXT_DB="older.db")
    call("chat", said="where is my order?\n", LANGMEM_EXT_DB="older.db")
    assert said_in(project / "mine.db") == ["I want a refund"]
    assert said_in(project / "older.db") == ["where is my order?"]
    assert not (project / "ours.db").exists()
    assert (
        json.loads(call("stats", "mine.db", "--json", LANGMEM_EXT_DB="nowhere.db").stdout)[
            "messages"
        ]
        == 2
    )


def test_a_chat_that_is_not_to_be_kept_is_not(project: Path) -> None:
    (project / "langmem.yaml").write_text("enabled: no\n")
    done = call("chat", said="I want a refund\nO-12345\n/history\n")
    assert "you: I want a refund" in done.stdout
    assert "is not stored" in done.stderr
    assert sorted(path.name for path in project.iterdir()) == ["langmem.yaml"]
    call("chat", "--db", "asked.db", said="I want a refund\n")
    assert said_in(project / "asked.db") == ["I want a refund"]


def test_a_chat_belongs_to_the_owner_that_is_set(project: Path) -> None:
    (project / "langmem.yaml").write_text("owner: ann\n")
    call("chat", "--thread", "t", said="I want a refund\n")
    with DeltaSaver.open("memory.db") as saver:
        config = {"configurable": {"thread_id": "t"}}
        assert saver.for_owner("ann").get_tuple(config) is not None  # type: ignore[arg-type]  # a config
        assert saver.for_owner("bob").get_tuple(config) is None  # type: ignore[arg-type]  # a config
    refused = call("chat", "--thread", "t", said="hello\n", LANGMEM_EXT_OWNER="bob")
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr


def test_what_is_written_is_compressed_where_that_is_set(project: Path) -> None:
    (project / "langmem.yaml").write_text("compress: true\nsynchronous: normal\n")
    long = "I want a refund, " * 200
    call("chat", said=f"{long}\n")
    call("chat", "--no-compress", "--db", "plain.db", said=f"{long}\n")
    assert long.encode() not in Path("memory.db").read_bytes()
    assert long.strip().encode() in Path("plain.db").read_bytes()


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("chat",),
        ("doctor",),
        ("stats",),
        ("import-checkpoints", "old.sqlite"),
        ("config", "show"),
        ("config", "show", "--json"),
    ],
)
def test_mistakes_are_named_and_nothing_is_changed(project: Path, words: tuple[str, ...]) -> None:
    (project / "langmem.yaml").write_text(
        "storage_path: ours.db\nmax_turn: SECRET\nttl_hours: soon\n"
    )
    done = call_here(*words, said="hello\n", LANGMEM_EXT_STORAGE="x.db")
    assert (done.exit_code, done.stdout) == (2, "")
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


def test_what_needs_no_settings_does_not_mind_them(project: Path) -> None:
    DeltaSaver.open("memory.db").close()
    (project / "langmem.yaml").write_text("- no mapping\n")
    for words in (
        ("--help",),
        ("chat", "--help"),
        ("version",),
        ("config", "path"),
        ("doctor", "memory.db"),
        ("stats", "memory.db"),
    ):
        assert call_here(*words).exit_code == 0


@pytest.mark.parametrize(
    ("assigned", "message"),
    [
        ("ttl_hours", "is invalid: write"),
        ("_env_file=x", "is invalid: write"),
        ("ttl=1", "did you mean ttl_hours?"),
        ("=1", "not a setting"),
    ],
)
def test_what_cannot_be_set_is_said(project: Path, assigned: str, message: str) -> None:
    done = call_here("config", "show", "--set", assigned)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.process
def test_help_loads_no_settings(project: Path) -> None:
    for words in (("chat", "--help"), ("config", "--help"), ("config", "show", "--help")):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", *COMMAND[1:], *words],
            check=True,
            capture_output=True,
            text=True,
        )
        loaded = {line.rsplit("|")[-1].strip().split(".")[0] for line in done.stderr.splitlines()}
        assert "typer" in loaded
        assert loaded.isdisjoint(
            {"langgraph", "pydantic_settings", "platformdirs", "yaml", "rapidfuzz", "rich"}
        )
