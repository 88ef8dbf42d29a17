"""`langmem-ext import-checkpoints`, as a user runs it: as a process, in a pipe and at a terminal,
killed and run again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pexpect
import pytest
from commands import run as carry_out
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from move_checks import assert_moved, rows, sqlite_saver
from patience import PATIENCE_S
from repository import ROOT

from langmem_ext import DeltaSaver, Threads, stats

COMMAND = [sys.executable, "-m", "langmem_ext.cli", "import-checkpoints"]


def answer(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage(f"answer {len(state['messages'])} " * 9)]}


def ask(state: MessagesState) -> dict[str, Any]:
    return {"messages": [HumanMessage(interrupt("more?"))]} if len(state["messages"]) > 40 else {}


builder = (
    StateGraph(MessagesState)
    .add_node("answer", answer)
    .add_node("ask", ask)
    .add_edge(START, "answer")
    .add_edge("answer", "ask")
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two threads of some length, one of which waits; only to be read."""
    path = tmp_path_factory.mktemp("sources") / "old.sqlite"
    with sqlite_saver(path) as saver:
        graph = builder.compile(checkpointer=saver)
        for turn in range(25):
            for thread in ("order-1", "order-2") if turn < 15 else ("order-1",):
                graph.invoke(
                    {"messages": [("user", f"question {turn}")]},
                    {"configurable": {"thread_id": thread}},
                )
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "new.db"


def run(*args: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    return carry_out("import-checkpoints", *args, code=code)


def assert_imported(source: Path, target: Path | str) -> None:
    with sqlite_saver(source) as old, DeltaSaver.open(str(target)) as new:
        assert_moved(old, new)


def test_it_says_what_it_did(source: Path, place: str) -> None:
    count = rows(source, "SELECT count(*) FROM checkpoints")[0][0]
    done = run(source, place, "--verify")
    said = {line.split()[0]: line.split(maxsplit=1)[1] for line in done.stdout.splitlines()}
    if "://" in place:
        assert said["into"].startswith("postgresql://")
        assert re.search(r":[^*/]+@", said["into"]) is None, "a password is not shown"
    else:
        assert said["into"] == place
    assert said["threads"] == "2 imported, 0 there already, 2 in all"
    assert said["checkpoints"] == f"{count} imported, 0 there already, {count} in all"
    assert said["verified"] == f"{count} checkpoints are identical in both"
    assert said["before"] == f"{source.stat().st_size / 1e6:,.1f} MB"
    # Tables on PostgreSQL begin with more than so small a file has, and keep what earlier tests
    # have made them to be.
    assert re.search(r"\d [kM]B" if "://" in place else r"kB \(1/", said["after"])
    assert f"gone through {count} of {count} checkpoints" in done.stderr.splitlines()
    assert_imported(source, place)
    again = run(source, place)
    assert "threads      0 imported, 2 there already, 2 in all" in again.stdout
    assert f"checkpoints  0 imported, {count} there already, {count} in all" in again.stdout


def test_what_is_imported_added_and_left_out_adds_up(
    source: Path, target: Path, tmp_path: Path
) -> None:
    grown = tmp_path / "grown.sqlite"
    shutil.copy(source, grown)
    count = rows(grown, "SELECT count(*) FROM checkpoints")[0][0]
    run(grown, target)
    with sqlite_saver(grown) as saver:
        graph = builder.compile(checkpointer=saver)
        for thread in ("order-2", "order-3", "order-4"):
            graph.invoke(
                {"messages": [("user", "one more")]}, {"configurable": {"thread_id": thread}}
            )
    with closing(sqlite3.connect(grown)) as other:
        damaged = other.execute(
            "UPDATE checkpoints SET checkpoint = x'c1' WHERE thread_id = 'order-4'"
        ).rowcount
        other.commit()
    total = rows(grown, "SELECT count(*) FROM checkpoints")[0][0]
    refused = run(grown, tmp_path / "refused.db", "-q", code=1)
    assert "of thread 'order-4' does not decode" in refused.stderr
    assert "--skip-damaged" in refused.stderr
    done = run(grown, target, "--skip-damaged")
    assert done.stderr.count("skipped: checkpoint ") == damaged
    assert (
        "threads      1 imported, 1 added to, 1 there already, 1 left out, 4 in all" in done.stdout
    )
    said = (
        f"{total - count - damaged} imported, {count} there already, {damaged} left out, {total}"
        " in all"
    )
    assert f"checkpoints  {said}" in done.stdout
    report = json.loads(run(grown, target, "--skip-damaged", "--json").stdout)
    assert (
        report["threads"],
        report["threads_new"],
        report["threads_extended"],
        report["threads_there"],
    ) == (4, 0, 0, 3)
    assert (report["total"], report["checkpoints"], report["skipped"]) == (
        total,
        0,
        total - damaged,
    )


def test_where_it_writes_is_said_first_when_no_target_is_named(
    source: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, told in (("memory.db", "its default"), ("other.db", "from LANGMEM_EXT_DB")):
        done = run(source)
        first = f"importing into {folder / name} (the setting storage_path, {told})"
        assert done.stderr.splitlines()[0] == first
        assert f"into         {folder / name}" in done.stdout
        assert_imported(source, folder / name)
        assert first not in run(source, folder / name).stderr
        assert run(source, "-q").stderr == ""
        monkeypatch.setenv("LANGMEM_EXT_DB", "other.db")


def test_what_it_stores_is_compressed_when_asked(
    source: Path, target: Path, tmp_path: Path
) -> None:
    run(source, target, "--compress", "--verify")
    run(source, tmp_path / "plain.db")
    assert_imported(source, target)
    compressed, plain = (
        rows(path, "SELECT count(*) FROM item WHERE typeof(text) = 'blob'")[0][0]
        for path in (target, tmp_path / "plain.db")
    )
    assert compressed > 0
    assert plain == 0


@pytest.mark.process
def test_without_zstd_to_compress_is_one_line_and_no_database_is_made(
    source: Path, target: Path
) -> None:
    blocked = (
        "import sys; sys.modules |= dict.fromkeys(('zstandard', 'compression.zstd',"
        " 'backports.zstd'))"
    )
    command = [sys.executable, "-c", f"{blocked}; from langmem_ext.cli import main; main()"]
    done = subprocess.run(
        [*command, "import-checkpoints", str(source), str(target), "--compress"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert "pip install 'langmem-ext[zstd]'" in line
    assert not target.exists()


def test_json_is_one_line_and_quiet_is_silent(source: Path, place: str) -> None:
    done = run(source, place, "--json", "--thread", "order-2")
    report = json.loads(done.stdout)
    assert (report["threads"], report["skipped"], report["damaged"]) == (1, 0, [])
    assert report["bytes_before"] == source.stat().st_size
    assert report["bytes_after"] == (
        stats(place).file_bytes if "://" in place else Path(place).stat().st_size
    )
    with DeltaSaver.open(place) as saver:
        assert [thread.id for thread in Threads(saver).list()] == ["order-2"]
    quiet = run(source, place, "-q")
    assert (quiet.stdout, quiet.stderr) == ("", "")
    assert_imported(source, place)


@pytest.mark.process
def test_at_a_terminal_there_is_a_bar(
    source: Path, target: Path, terminal: Callable[..., pexpect.spawn]
) -> None:
    child = terminal("import-checkpoints", str(source), str(target))
    child.expect("importing")
    child.expect("imported, 0 there already")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert_imported(source, target)


# An import stores one checkpoint at a time, and takes long enough to be stopped.
SLOWLY = """
import time

from langmem_ext.maintenance import moving

store = moving.Moving._store


def store_slowly(self, *args):
    store(self, *args)
    time.sleep(0.1)


moving.BATCH, moving.Moving._store = 1, store_slowly
"""


@pytest.mark.process
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, signal.SIGINT], ids=["killed", "stopped with Ctrl-C"]
)
def test_stopped_anywhere_it_goes_on_when_it_is_run_again(
    how: signal.Signals, source: Path, place: str, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOWLY)
    slowly = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])}
    process = subprocess.Popen(
        [*COMMAND, str(source), place],
        env=slowly,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("gone through")
    process.send_signal(how)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode != 0
    assert "Traceback" not in said
    stored = stats(place).checkpoints
    done = run(source, place, "--verify", "--json")
    report = json.loads(done.stdout)
    assert report["skipped"] >= stored > 0
    assert report["verified"] == report["skipped"] + report["checkpoints"]
    assert_imported(source, place)
