"""Which writes share a commit: one per thread, in order of arrival, threads in one order."""

from __future__ import annotations

import threading

from patience import PATIENCE_S

from langmem_ext.storage.driver import Job
from langmem_ext.storage.operation import Op, Statement, operation
from langmem_ext.storage.postgres.queue import TOGETHER, Busy, Lineup
from langmem_ext.types import ThreadKey


@operation
def touch(key: ThreadKey) -> Op[None]:
    yield Statement("UPDATE thread SET status = 'active' WHERE id = :id", {"id": key.id})


@operation
def touch_all() -> Op[None]:
    yield Statement("UPDATE thread SET status = 'active'", {})


def job(thread: str) -> Job[None]:
    return Job(touch(ThreadKey(thread, None)))


def nothing() -> None:
    """Who is called back has nothing to do."""


def line(*jobs: Job[None], busy: Busy | None = None) -> Lineup:
    lineup = Lineup(busy or Busy())
    for one in jobs:
        lineup.add(one)
    return lineup


def test_what_waits_goes_together_sorted_by_thread_and_within_one_by_arrival() -> None:
    b1, a, b2 = job("b"), job("a"), job("b")

    assert line(b1, a, b2).take_or_call(nothing) == [a, b1, b2]


def test_a_thread_that_is_being_written_waits_and_so_does_all_that_came_later_for_it() -> None:
    busy = Busy()
    first, second, third, other = job("a"), job("a"), job("a"), job("b")
    lineup = line(first, busy=busy)
    taken = lineup.take_or_call(nothing)
    for one in (second, other, third):
        lineup.add(one)

    assert lineup.take_or_call(nothing) == [other]
    busy.give_back(taken)
    assert lineup.take_or_call(nothing) == [second, third]


def test_what_is_of_many_threads_goes_alone() -> None:
    before, every, after = job("a"), Job(touch_all()), job("b")
    lineup = line(before, every, after)

    assert lineup.take_or_call(nothing) == [before, after]
    assert lineup.take_or_call(nothing) == [every]


def test_so_many_go_together_at_most() -> None:
    lineup = line(*(job(f"t{at}") for at in range(TOGETHER + 1)))

    assert len(lineup.take_or_call(nothing)) == TOGETHER
    assert len(lineup.take_or_call(nothing)) == 1


def test_who_takes_its_own_alone_leaves_the_others() -> None:
    own, other = job("b"), job("a")
    lineup = line(other, own)

    assert lineup.take_or_wait(own, own, deadline=PATIENCE_S) == [own]
    assert lineup.take_or_call(nothing) == [other]


def test_a_caller_waits_until_its_thread_is_given_back() -> None:
    busy = Busy()
    lineup = line(job("a"), busy=busy)
    taken = lineup.take_or_call(nothing)
    own = job("a")
    lineup.add(own)
    found: list[list[Job[None]]] = []
    waiting = threading.Thread(
        target=lambda: found.append(lineup.take_or_wait(own, deadline=PATIENCE_S))
    )
    waiting.start()
    waiting.join(0.05)
    assert not found

    busy.give_back(taken)
    waiting.join(PATIENCE_S)

    assert found == [[own]]


def test_who_cannot_take_anything_is_called_once_something_is_given_back() -> None:
    busy = Busy()
    lineup = line(job("a"), busy=busy)
    taken = lineup.take_or_call(nothing)
    lineup.add(job("a"))
    called: list[bool] = []

    assert lineup.take_or_call(lambda: called.append(True)) == []
    assert not called
    busy.give_back(taken)
    assert called == [True]
