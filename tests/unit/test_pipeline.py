"""What is sent together, what is taken for granted, and that no answer rests on what was not compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from langmem_ext.errors import ThreadNotFound
from langmem_ext.storage.commands import Command
from langmem_ext.storage.dialect import postgres
from langmem_ext.storage.effects import (
    PAUSE,
    Batch,
    Closing,
    Foresight,
    Op,
    Operation,
    Rows,
    Statement,
    Together,
    both,
    operation,
    operation_once,
    side_by_side,
)
from langmem_ext.storage.group import Job
from langmem_ext.storage.ids import thread_number
from langmem_ext.storage.index import Indexes
from langmem_ext.storage.pipeline import (
    QUEUE_BYTES,
    ExchangeFailed,
    ExpectationFailed,
    ForesightFailed,
    Read,
    Transaction,
    Wire,
    Write,
)

READ = "SELECT next_item FROM thread WHERE id = :id"
COUNT = "SELECT count(*) FROM item"
UPDATE = "UPDATE thread SET next_item = :next WHERE id = :id"
INSERT = "INSERT INTO word (thread, number) VALUES (:thread, :number)"


@operation
def raise_counter(expected: Rows | None) -> Op[int]:
    [(number,)] = yield Statement(READ, {"id": "t"}, expected)
    yield Batch(INSERT, ({"thread": 1, "number": 1}, {"thread": 1, "number": 2}))
    yield Statement(UPDATE, {"id": "t", "next": number + 1})
    return int(number)


@operation
def count_twice(expected: Rows | None) -> Op[tuple[int, int]]:
    [(number,)] = yield Statement(READ, {"id": "t"}, expected)
    [(count,)] = yield Statement(COUNT, {})
    return number, count


@operation
def count_side_by_side() -> Op[list[tuple[int, int]]]:
    """Two that ask twice, and one that asks once."""

    def one(times: int) -> Op[tuple[int, int]]:
        [(number,)] = yield Statement(READ, {"id": "t"})
        count = 0
        for _ in range(times):
            yield PAUSE
            [(count,)] = yield Statement(COUNT, {})
        return number, count

    return (yield from side_by_side([one(1), one(0), one(1)]))


@operation
def refuse(expected: Rows | None) -> Op[None]:
    yield Statement(READ, {"id": "t"}, expected)
    raise ThreadNotFound("there is none")


@operation
def find(expected: Rows | None) -> Op[Rows]:
    return (yield Statement(READ, {"id": "t"}, expected))


def write(*, trusting: bool) -> Write:
    return Write(Indexes(0), postgres("s"), trusting=trusting)


def read(*, trusting: bool) -> Read:
    return Read(Indexes(0), postgres("s"), trusting=trusting)


def play(wire: Wire[Any], answer: Callable[[Command], Rows]) -> tuple[Any, list[list[str]]]:
    """Answer what a wire asks; its result, and the first words of what was sent in each round trip."""
    trips: list[list[str]] = []
    try:
        commands: Sequence[Command] = next(wire)
        while True:
            trips.append([" ".join(command.sql.split()[:2]) for command in commands])
            commands = wire.send([answer(command) for command in commands])
    except StopIteration as done:
        return done.value, trips


def database(command: Command) -> Rows:
    """A database whose counter is at 7 and that holds 3 items; a condition holds."""
    if command.sql.startswith("WITH found"):
        return [(1,)]
    if "count(*)" in command.sql:
        return [(3,)]
    return [(7,)] if command.sql.startswith("SELECT") else ()


def test_a_write_whose_reads_are_expected_is_one_trip_that_the_database_makes_one_transaction() -> None:
    result, trips = play(write(trusting=True).carry_out(raise_counter(((7,),))), database)

    assert result == 7
    assert trips == [["WITH found", "INSERT INTO", "INSERT INTO", 'UPDATE "s".thread']]


def test_a_write_that_must_ask_is_one_transaction_from_begin_to_commit() -> None:
    result, trips = play(write(trusting=True).carry_out(raise_counter(None)), database)

    assert result == 7
    assert trips == [["BEGIN ISOLATION", "SELECT next_item"], ["INSERT INTO", "INSERT INTO", 'UPDATE "s".thread', "COMMIT"]]


@operation
def store_much(pages: int, body: bytes) -> Op[None]:
    for page in range(pages):
        yield Batch(INSERT, [{"thread": page, "number": number, "body": body} for number in range(8)])
        yield PAUSE


def test_a_long_write_is_sent_in_pieces_of_one_transaction_and_what_waits_stays_small() -> None:
    _, trips = play(write(trusting=True).carry_out(store_much(8, b"x" * (QUEUE_BYTES // 24))), database)

    page = ["INSERT INTO"] * 8
    sent = [trip for trip in trips if trip]
    assert sent == [["BEGIN ISOLATION", *page * 3], page * 3, [*page * 2, "COMMIT"]]
    assert play(write(trusting=True).carry_out(store_much(8, b"x")), database)[1] == [*[[]] * 8, page * 8]


def test_several_rows_that_are_expected_are_asked_for() -> None:
    @operation
    def read_two() -> Op[int]:
        rows = yield Statement(READ, {"id": "t"}, ((7,), (8,)))
        yield Statement(UPDATE, {"id": "t", "next": 9})
        return len(rows)

    result, trips = play(write(trusting=True).carry_out(read_two()), database)

    assert result == 1
    assert trips == [["BEGIN ISOLATION", "SELECT next_item"], ['UPDATE "s".thread', "COMMIT"]]


def test_a_write_that_does_not_trust_asks_whatever_is_expected() -> None:
    result, trips = play(write(trusting=False).carry_out(raise_counter(((6,),))), database)

    assert result == 7
    assert len(trips) == 2


def test_a_read_that_rests_on_what_is_known_is_one_trip_with_one_snapshot() -> None:
    result, trips = play(read(trusting=True).carry_out(count_twice(((7,),))), database)

    assert result == (7, 3)
    assert trips == [["BEGIN ISOLATION", "SELECT next_item", "SELECT count(*)", "COMMIT"]]


def test_a_read_that_rests_on_what_is_no_longer_so_has_no_result() -> None:
    for op in (count_twice, find):
        with pytest.raises(ExpectationFailed):
            play(read(trusting=True).carry_out(op(((6,),))), database)


def test_a_read_of_one_statement_needs_no_transaction() -> None:
    assert play(read(trusting=True).carry_out(find(None)), database) == ([(7,)], [["SELECT next_item"]])


def test_a_read_of_several_statements_sees_one_snapshot_from_the_first_on() -> None:
    result, trips = play(read(trusting=True).carry_out(count_twice(None)), database)

    assert result == (7, 3)
    assert trips == [["SELECT next_item"], ["BEGIN ISOLATION", "SELECT next_item", "SELECT count(*)"], ["COMMIT"]]


def test_a_read_whose_first_row_changed_before_its_snapshot_has_no_result() -> None:
    counters = iter([7, 8])

    with pytest.raises(ExpectationFailed):
        play(
            read(trusting=False).carry_out(count_twice(None)),
            lambda command: [(next(counters),)] if "next_item" in command.sql else database(command),
        )


def test_what_operations_side_by_side_ask_for_at_the_same_time_is_one_trip() -> None:
    result, trips = play(read(trusting=True).carry_out(count_side_by_side()), database)

    assert result == [(7, 3), (7, 0), (7, 3)]
    assert [trip for trip in trips if trip] == [
        ["BEGIN ISOLATION", *["SELECT next_item"] * 3],
        ["SELECT count(*)"] * 2,
        ["COMMIT"],
    ]


def test_what_is_expected_after_something_was_read_is_compared_in_one_snapshot_with_it() -> None:
    @operation
    def read_on() -> Op[int]:
        yield Statement(READ, {"id": "t"})
        yield Statement(READ, {"id": "u"}, ((7,),))
        [(count,)] = yield Statement(COUNT, {})
        return int(count)

    result, trips = play(read(trusting=True).carry_out(read_on()), database)

    assert result == 3
    assert trips == [["SELECT next_item"], ["BEGIN ISOLATION", "SELECT next_item", "SELECT next_item", "SELECT count(*)", "COMMIT"]]


@operation
def look_ahead(asks: int) -> Op[list[Any]]:
    """One that says what it asks for: a row, then a count, then several at once."""
    yield Foresight((Statement(COUNT, {}),))
    found = [(yield Statement(READ, {"id": "t"})), (yield Statement(COUNT, {}))]
    yield Foresight(last=True)
    for _ in range(asks):
        found += yield from both(count(), count())
    return found


def count() -> Op[int]:
    [(number,)] = yield Statement("SELECT count(*) FROM value", {})
    return int(number)


def test_what_is_foreseen_is_asked_for_along_and_the_last_trip_ends_the_transaction() -> None:
    first = ["BEGIN ISOLATION", "SELECT next_item", "SELECT count(*)"]

    result, trips = play(read(trusting=True).carry_out(look_ahead(0)), database)
    assert result == [[(7,)], [(3,)]]
    assert trips == [[*first, "COMMIT"]]

    result, trips = play(read(trusting=True).carry_out(look_ahead(1)), database)
    assert result == [[(7,)], [(3,)], 3, 3]
    assert trips == [[*first, "COMMIT"], [*first, "SELECT count(*)", "SELECT count(*)", "COMMIT"]]


def test_a_read_that_asks_for_more_than_was_foreseen_is_run_again_and_sees_one_snapshot() -> None:
    with pytest.raises(ForesightFailed):
        play(read(trusting=True).carry_out(look_ahead(2)), database)

    patient = Read(Indexes(0), postgres("s"), trusting=False, hasty=False)
    result, trips = play(patient.carry_out(look_ahead(2)), database)

    assert result == [[(7,)], [(3,)], 3, 3, 3, 3]
    assert [trip[0] for trip in trips] == ["BEGIN ISOLATION", "SELECT count(*)", "SELECT count(*)", "COMMIT"]
    assert [trip[-1] for trip in trips] == ["SELECT count(*)", "SELECT count(*)", "SELECT count(*)", "COMMIT"]


def test_a_read_that_cannot_be_run_again_begins_its_snapshot_with_what_it_asks_first() -> None:
    @operation_once
    def once() -> Op[list[Any]]:
        return (yield from look_ahead(2))

    result, trips = play(read(trusting=False).carry_out(once()), database)

    assert result == [[(7,)], [(3,)], 3, 3, 3, 3]
    assert [len(trip) for trip in trips] == [3, 2, 2, 1]
    assert [trip[0] for trip in trips] == ["BEGIN ISOLATION", "SELECT count(*)", "SELECT count(*)", "COMMIT"]


def test_what_was_foreseen_and_has_changed_before_the_snapshot_gives_no_result() -> None:
    counts = iter([3, 4])

    with pytest.raises(ExpectationFailed):
        play(
            read(trusting=False).carry_out(look_ahead(1)),
            lambda command: [(next(counts),)] if "count(*)" in command.sql and "item" in command.sql else database(command),
        )


def test_a_patient_read_asks_for_everything_in_its_snapshot_so_that_nothing_changes_before_it() -> None:
    patient = Read(Indexes(0), postgres("s"), trusting=False, hasty=False)

    _, trips = play(patient.carry_out(look_ahead(1)), database)

    assert [trip[0] for trip in trips] == ["BEGIN ISOLATION", "SELECT count(*)", "COMMIT"]
    [beginning] = [number for number, trip in enumerate(trips) if "SELECT next_item" in trip]
    assert beginning == 0


def test_a_read_that_goes_on_behind_its_last_trip_with_what_is_expected_gives_no_result() -> None:
    @operation
    def read_on() -> Op[None]:
        yield Statement(READ, {"id": "t"}, ((7,),))
        yield Statement(COUNT, {})
        yield Statement(READ, {"id": "u"}, ((7,),))

    with pytest.raises(ForesightFailed):
        play(read(trusting=True).carry_out(read_on()), database)


def test_where_one_of_several_is_not_expected_nothing_is_taken_for_granted() -> None:
    @operation
    def read_on() -> Op[list[Any]]:
        found = yield Together((Statement(READ, {"id": "t"}, ((6,),)), Statement(COUNT, {})))
        [(count,)] = yield Statement("SELECT count(*) FROM value", {})
        return [*found, count]

    result, trips = play(read(trusting=True).carry_out(read_on()), database)

    assert result == [[(7,)], [(3,)], 3]
    assert [trip[-1] for trip in trips] == ["SELECT count(*)", "SELECT count(*)", "COMMIT"]


def test_what_a_write_has_changed_is_not_answered_from_what_came_before() -> None:
    @operation
    def count_before_and_after() -> Op[list[int]]:
        yield Foresight((Statement(COUNT, {}),))
        yield Statement(READ, {"id": "t"})
        [(before,)] = yield Statement(COUNT, {})
        yield Statement(UPDATE, {"id": "t", "next": 8})
        [(after,)] = yield Statement(COUNT, {})
        return [before, after]

    counts = iter([3, 4])

    result, trips = play(
        write(trusting=False).carry_out(count_before_and_after()),
        lambda command: [(next(counts),)] if "count(*)" in command.sql else database(command),
    )

    assert result == [3, 4]
    assert trips == [
        ["BEGIN ISOLATION", "SELECT next_item", "SELECT count(*)"],
        ['UPDATE "s".thread', "SELECT count(*)"],
        ["COMMIT"],
    ]


def test_a_row_that_a_transaction_has_locked_is_compared_once() -> None:
    @operation
    def lock(number: int) -> Op[None]:
        yield Statement(f"{READ} FOR UPDATE", {"id": "t"}, ((number,),))
        yield Statement(UPDATE, {"id": "t", "next": number + 1})

    _, trips = play(write(trusting=True).carry_out_all([Job(lock(7)), Job(lock(8))]), database)

    assert trips == [["WITH found", 'UPDATE "s".thread', 'UPDATE "s".thread']]


LOCK = "SELECT next_item, owner FROM thread WHERE [of id] FOR UPDATE"
COUNTED = "UPDATE thread SET next_item = :next, items = items + :items WHERE number = :thread"
HEADED = "UPDATE thread SET next_item = :next, items = items + :items, waiting_for = :waits WHERE number = :thread"


@operation
def add_items(known: int, items: int, *further: Statement, waits: str | None = None) -> Op[None]:
    """Lock a thread's row, add items, and count them in the row."""
    number = thread_number("t")
    yield Statement(LOCK, {"id": "t"}, ((known, None),))
    yield Batch(INSERT, tuple({"thread": number, "number": known + at} for at in range(items)))
    for statement in further:
        _ = yield statement
    params = {"thread": number, "next": known + items, "items": items}
    yield Closing(COUNTED, params, sums=("items",)) if waits is None else Closing(HEADED, params | {"waits": waits}, sums=("items",))


def updates(jobs: Sequence[Operation[None]]) -> list[tuple[int, int, Any]]:
    """Carry out operations together; of each command that changes the thread's row, where it stands and what it says."""
    sent: list[Command] = []

    def note(command: Command) -> Rows:
        sent.append(command)
        return database(command)

    play(write(trusting=True).carry_out_all([Job(job) for job in jobs]), note)
    found = [(at, command) for at, command in enumerate(sent) if 'UPDATE "s".thread' in command.sql]
    return [(at, command.params["items"], command.params.get("waits")) for at, command in found if command.params is not None]


def test_what_operations_on_one_thread_change_of_its_row_is_one_update_in_place_of_the_lock() -> None:
    assert updates([add_items(7, 2)]) == [(0, 2, None)]
    assert updates([add_items(7, 2, waits="who"), add_items(9, 1), add_items(10, 4)]) == [(0, 7, "who")]
    assert updates([add_items(7, 2, waits="who"), add_items(9, 1, waits="when")]) == [(0, 3, "when")]


def test_an_update_in_place_of_a_lock_fails_unless_the_row_is_as_the_lock_expected_it() -> None:
    [[update, *_]] = [next(write(trusting=True).carry_out(add_items(7, 2)))]

    assert list(update.expected) == [(1,)]
    assert update.params == {"id": "t", "id_number": thread_number("t"), "thread": thread_number("t"), "next": 9, "items": 2} | {
        "is0": 7,
        "is1": None,
    }
    assert update.sql == (
        'WITH found AS (UPDATE "s".thread SET next_item = %(next)s, items = items + %(items)s WHERE number = %(thread)s'
        " AND number = %(id_number)s AND id = %(id)s AND ROW(next_item, owner) IS NOT DISTINCT FROM ROW(%(is0)s, %(is1)s) RETURNING 1)"
        " SELECT 1 / count(*)::int FROM found"
    )


def test_what_comes_after_a_statement_that_uses_the_row_or_is_asked_for_is_not_done_before_it() -> None:
    for further in (Statement(UPDATE, {"id": "t", "next": 8, "items": 0}, ()), Statement(READ, {"id": "t"}, ((7,),))):
        assert updates([add_items(7, 2, further), add_items(9, 1)])[-2:] == [(4, 2, None), (6, 1, None)]
    # BEGIN and the lock are sent with the question; COMMIT ends what comes after it.
    assert updates([add_items(7, 2, Statement(COUNT, {})), add_items(9, 1)]) == [(5, 2, None), (7, 1, None)]


@pytest.mark.parametrize("begin", [read, write])
def test_an_error_that_rests_on_what_is_known_is_no_answer(begin: Callable[..., Transaction]) -> None:
    with pytest.raises(ExpectationFailed):
        play(begin(trusting=True).carry_out(refuse(((7,),))), database)
    with pytest.raises(ThreadNotFound):
        play(begin(trusting=False).carry_out(refuse(((7,),))), database)


def test_writes_that_wait_together_share_one_trip() -> None:
    jobs = [Job(raise_counter(((7,),))), Job(raise_counter(((8,),)))]

    _, trips = play(write(trusting=True).carry_out_all(jobs), database)

    assert [job.result for job in jobs] == [7, 8]
    assert [len(trip) for trip in trips] == [8]


def test_where_one_of_several_writes_fails_none_is_stored() -> None:
    sent: list[Command] = []

    def note(command: Command) -> Rows:
        sent.append(command)
        return database(command)

    with pytest.raises(ExpectationFailed):
        play(write(trusting=True).carry_out_all([Job(raise_counter(((7,),))), Job(refuse(None))]), note)

    assert "COMMIT" not in [command.sql for command in sent]


def test_a_failed_exchange_is_told_as_it_is() -> None:
    wire = write(trusting=True).carry_out(raise_counter(((7,),)))
    next(wire)

    with pytest.raises(ExchangeFailed):
        wire.throw(ExchangeFailed())
