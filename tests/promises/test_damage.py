"""Promise: a damaged database gives what is right or an error that says so, and nothing else.

No other exception, no hang, no other thread's words; what is whole stays readable, and the doctor
says that something is wrong.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command
from psycopg import sql
from small_graphs import asking_for, chain, config, saying

from langmem_ext import DeltaSaver, LangmemExtError, ThreadChatMessageHistory, examine

SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
FLIPS = 500 if SOAK else 20
NAMES = ("alpha", "beta", "gamma")


def make(url: str) -> dict[str, Any]:
    """Three threads that each say their own name in every word, and wait; what is read of them."""
    with DeltaSaver.open(url) as saver:
        for name in NAMES:
            blocks: Any = [{"type": "text", "text": f"{name} says " * 20}]
            work = saying(AIMessage(blocks, response_metadata={"of": name}))
            graph = chain(work, asking_for(f"{name}, is it?", f"{name} {{}}"), saver=saver)
            for turn in range(3):
                graph.invoke({"messages": [HumanMessage(f"{name} asks {turn}")]}, config(name))
                if turn < 2:
                    graph.invoke(Command(resume="yes"), config(name))
    return dict(looks(url))


def looks(url: str) -> Iterator[tuple[str, Any]]:
    """All that can be read of each thread; an error of this package where it cannot be."""

    saver = attempt(DeltaSaver.open, url)
    if isinstance(saver, LangmemExtError):
        yield "open", saver
        return
    with saver:
        for name in NAMES:
            yield f"{name} get", attempt(saver.get_tuple, config(name))
            yield f"{name} list", attempt(lambda *given: list(saver.list(*given)), config(name))
            history = ThreadChatMessageHistory(name, saver)
            yield f"{name} history", attempt(getattr, history, "messages")


def attempt(read: Any, *given: Any) -> Any:
    """What is read, or the error of this package."""
    try:
        found = read(*given)
        return found if isinstance(found, DeltaSaver) else repr(found)
    except LangmemExtError as error:
        return error


def differences(url: str, expected: dict[str, Any]) -> list[str]:
    """What is read that is neither right nor an error."""
    wrong = []
    for what, found in looks(url):
        if not isinstance(found, LangmemExtError) and found != expected[what]:
            wrong.append(what)
            others = [name for name in NAMES if name in found and name not in what]
            assert not others, f"{what} shows words of {others}"
    return wrong


def is_noticed(url: str) -> bool:
    """Whether the doctor says that something is wrong."""
    try:
        return any(finding.severity != "note" for finding in examine(url).findings)
    except LangmemExtError:
        return True


def test_a_flipped_bit_of_a_file_is_an_error_or_changes_nothing(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.db", tmp_path / "memory.db"
    expected = make(str(whole))
    data, chance = whole.read_bytes(), random.Random(None if SOAK else 5)
    for _ in range(FLIPS):
        place, bit = chance.randrange(len(data)), 1 << chance.randrange(8)
        path.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
        wrong = differences(str(path), expected)
        # A row whose key was hit may be missing: no check of what is read can tell.
        assert not wrong or is_noticed(str(path)), (wrong, place, bit)
        for beside in tmp_path.glob("memory.db*"):
            beside.unlink()


def test_a_file_that_was_cut_off_is_an_error_or_what_is_left(tmp_path: Path) -> None:
    whole, path = tmp_path / "whole.db", tmp_path / "memory.db"
    expected, refused = make(str(whole)), 0
    data = whole.read_bytes()
    for length in (1, 15, 99, 100, 511, 4095, *range(8192, len(data), 8192), len(data) - 1):
        path.write_bytes(data[:length])
        found = dict(looks(str(path)))
        wrong = [what for what, it in found.items() if isinstance(it, str) and it != expected[what]]
        assert wrong == [], length
        refused += any(isinstance(it, LangmemExtError) for it in found.values())
        for beside in tmp_path.glob("memory.db*"):
            beside.unlink()
    assert refused > len(data) // 8192


@pytest.mark.parametrize("durable", ["postgres"], indirect=True)
def test_a_flipped_bit_of_a_servers_row_is_an_error_or_changes_nothing(url: str) -> None:
    expected, chance = make(url), random.Random(None if SOAK else 5)
    base, _, schema = url.partition("?schema=")
    with psycopg.connect(base, autocommit=True) as server:
        server.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
        columns = server.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = %s AND data_type = 'bytea' ORDER BY 1, 2",
            [schema],
        ).fetchall()
        assert len(columns) > 5
        for _ in range(FLIPS):
            table, column = map(sql.Identifier, chance.choice(columns))
            rows = server.execute(
                sql.SQL("SELECT ctid::text, {} FROM {} WHERE length({}) > 0 ORDER BY {}").format(
                    column, table, column, column
                )
            ).fetchall()
            if not rows:
                continue
            _, body = chance.choice(rows)
            at = chance.randrange(len(body))
            hit = body[:at] + bytes([body[at] ^ 1 << chance.randrange(8)]) + body[at + 1 :]
            change = sql.SQL("UPDATE {} SET {} = %s WHERE {} = %s").format(table, column, column)
            try:
                server.execute(change, [hit, body])
            except psycopg.errors.IntegrityError:
                continue
            wrong = differences(url, expected)
            assert not wrong or is_noticed(url), (wrong, str(table), str(column), at)
            server.execute(change, [body, hit])
        assert differences(url, expected) == []


def test_of_a_damaged_thread_the_others_stay_readable(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    expected = make(str(path))
    data = path.read_bytes()
    for at in [at for at in range(len(data)) if data.startswith(b"beta says ", at)]:
        data = data[:at] + b"zeta" + data[at + 4 :]
    path.write_bytes(data)
    found = dict(looks(str(path)))
    assert isinstance(found["beta get"], LangmemExtError)
    for name in ("alpha", "gamma"):
        assert found[f"{name} get"] == expected[f"{name} get"]
    [*damaged] = [one for one in examine(str(path)).findings if one.severity == "damaged"]
    assert {one.thread for one in damaged} == {"beta"}
