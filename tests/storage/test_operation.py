"""Promise: an operation can be begun any number of times, alone or as a part of another one."""

from __future__ import annotations

from langmem_ext.storage.operation import Op, Operation, Statement, fetch, operation, operation_once
from langmem_ext.types import ThreadKey


@operation
def count(key: ThreadKey, *, of: str) -> Op[int]:
    [(found,)] = yield from fetch(f"SELECT count(*) FROM {of} WHERE id = :id", id=key.id)
    return int(found)


@operation
def twice(one: Operation[int]) -> Op[int]:
    return (yield from one) + (yield from one)


@operation_once
def told() -> Op[None]:
    yield from ()


def result(op: Operation[int], *answers: int) -> int:
    steps = iter(op)
    try:
        effect = next(steps)
        for answer in answers:
            assert effect == Statement("SELECT count(*) FROM item WHERE id = :id", {"id": "t"})
            effect = steps.send([(answer,)])
    except StopIteration as done:
        found: int = done.value
        return found
    raise AssertionError("it asks for more")


def test_each_iteration_begins_it_anew() -> None:
    op = count(ThreadKey("t"), of="item")
    half_way = iter(op)
    next(half_way)
    assert result(op, 3) == result(op, 3) == 3
    assert result(twice(op), 3, 4) == result(twice(op), 3, 4) == 7


def test_it_names_its_thread() -> None:
    assert count(ThreadKey("t", "owner"), of="item").thread == "t"
    assert twice(count(ThreadKey("t"), of="item")).thread == "t"
    assert told().thread is None


def test_one_that_tells_what_it_reads_says_that_it_must_not_be_run_again() -> None:
    assert count(ThreadKey("t"), of="item").repeatable
    assert not told().repeatable
