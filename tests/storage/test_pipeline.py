"""Promise: an operation takes few trips; a write is one transaction, a read one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from langmem_ext.storage.driver import Job
from langmem_ext.storage.operation import ANY, ONE, Op, Operation, Rows, Stale, Statement, Together
from langmem_ext.storage.postgres.wire.commands import Command
from langmem_ext.storage.postgres.wire.pipeline import (
    ExchangeFailed,
    GroupFailed,
    Read,
    Wire,
    Write,
)
from langmem_ext.storage.schema.dialect import POSTGRES

READ = "SELECT n FROM counter WHERE name = :name"
ADD = "UPDATE counter SET n = ?1 WHERE n = ?2"
NOTE = "INSERT INTO note (n) VALUES (?1)"


def add(known: int) -> Op[int]:
    """Rests on what is known: nothing is asked."""
    yield [(ADD, (known + 1, known), ONE), (NOTE, (known,), ANY)]
    yield [(NOTE, (known + 1,), ANY), (NOTE, (known + 2,), ANY)]
    return known + 1


def read_and_add() -> Op[int]:
    [(known,)] = yield Statement(READ, {"name": "a"})
    return (yield from add(known))


def read_twice() -> Op[list[Any]]:
    first = yield Statement(READ, {"name": "a"})
    return [*first, *(yield Statement(READ, {"name": "b"}))]


def read_together() -> Op[list[Rows]]:
    found: list[Rows] = yield Together(
        [Statement(READ, {"name": "a"}), Statement(READ, {"name": "b"})]
    )
    return found


def refuse() -> Op[None]:
    yield [(NOTE, (1,), ANY)]
    raise LookupError


def play(wire: Wire[Any], answer: Callable[[Command], Rows]) -> tuple[Any, list[list[str]]]:
    """What an operation returns, and what it sends in each trip."""
    trips: list[list[str]] = []
    try:
        commands = next(wire)
        while True:
            trips.append([command.sql for command in commands])
            commands = wire.send([answer(command) for command in commands])
    except StopIteration as done:
        return done.value, trips


def database(command: Command) -> Rows:
    return [(7,)] if command.sql.startswith("SELECT n") else ()


def kinds(trip: Sequence[str]) -> list[str]:
    return [sql.split()[0] for sql in trip]


def test_a_write_that_reads_nothing_is_one_trip_and_one_transaction() -> None:
    result, [trip] = play(Write(POSTGRES).run(Operation(add, 7)), database)
    assert result == 8
    assert kinds(trip) == ["WITH", "INSERT", "INSERT", "INSERT"]
    assert (
        trip[0] == "WITH done AS (UPDATE counter SET n = $1 WHERE n = $2 RETURNING 1) SELECT 1 /"
        " count(*)::int FROM done"
    )


def test_a_write_that_must_ask_is_one_transaction_from_begin_to_commit() -> None:
    result, trips = play(Write(POSTGRES).run(Operation(read_and_add)), database)
    assert result == 8
    assert [kinds(trip) for trip in trips] == [
        ["BEGIN", "SELECT"],
        ["WITH", "INSERT", "INSERT", "INSERT", "COMMIT"],
    ]


def test_writes_that_wait_together_share_one_trip() -> None:
    jobs = [Job(Operation(add, known)) for known in (1, 2)]
    _, [trip] = play(Write(POSTGRES).run_all(jobs), database)
    assert kinds(trip) == 2 * ["WITH", "INSERT", "INSERT", "INSERT"]
    assert [job.result for job in jobs] == [2, 3]


def test_where_one_of_several_writes_fails_none_is_stored_and_alone_it_says_why() -> None:
    with pytest.raises(GroupFailed):
        play(
            Write(POSTGRES).run_all([Job(Operation(add, 1)), Job(Operation(refuse))]),
            database,
        )
    with pytest.raises(LookupError):
        play(Write(POSTGRES).run_all([Job(Operation(refuse))]), database)


def test_a_read_that_asks_once_is_one_trip_and_several_statements_see_one_snapshot() -> None:
    assert play(Read(POSTGRES).run(Operation(read_together)), database)[1] == [
        [
            "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
            *2 * ["SELECT n FROM counter WHERE name = %(name)s"],
            "COMMIT",
        ]
    ]


def test_a_read_that_goes_on_sees_one_snapshot_from_its_first_rows_on() -> None:
    result, trips = play(Read(POSTGRES).run(Operation(read_twice)), database)
    assert result == [(7,), (7,)]
    assert [kinds(trip) for trip in trips] == [["SELECT"], ["BEGIN", "SELECT", "SELECT", "COMMIT"]]
    _, trips = play(Read(POSTGRES, hasty=False).run(Operation(read_twice)), database)
    assert [kinds(trip) for trip in trips] == [["BEGIN", "SELECT"], ["SELECT"], ["COMMIT"]]


def test_a_read_whose_first_rows_changed_before_its_snapshot_has_no_result() -> None:
    answers = iter([[(7,)], (), [(8,)], [(8,)], ()])
    with pytest.raises(Stale):
        play(Read(POSTGRES).run(Operation(read_twice)), lambda _: next(answers))


def test_a_failed_exchange_is_told_as_it_is() -> None:
    wire = Write(POSTGRES).run(Operation(add, 7))
    next(wire)
    with pytest.raises(ExchangeFailed):
        wire.throw(ExchangeFailed())
