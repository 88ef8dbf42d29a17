"""Which write operations go together: no thread twice at a time, what came first first, threads in one order."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from patience import PATIENCE_S

from langmem_ext.storage.effects import Op, Statement, operation, operation_followed
from langmem_ext.storage.group import Job
from langmem_ext.storage.lineup import TOGETHER, Busy, Lineup
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


def test_what_waits_goes_together_sorted_by_thread_and_of_one_thread_in_the_order_in_which_it_came() -> None:
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
    waiting = threading.Thread(target=lambda: found.append(lineup.take_or_wait(own, deadline=PATIENCE_S)))
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


# -- what another mostly follows -----------------------------------------------------------------------------------------------------------


@operation_followed
def lead(key: ThreadKey) -> Op[None]:
    yield Statement("UPDATE thread SET status = 'active' WHERE id = :id", {"id": key.id})


def leading(thread: str) -> Job[None]:
    return Job(lead(ThreadKey(thread, None)))


class Caller(threading.Thread):
    """Somebody who has an operation carried out, alone or with others."""

    def __init__(self, lineup: Lineup, own: Job[None]) -> None:
        super().__init__()
        self.lineup, self.own = lineup, own
        self.found: list[Job[None]] | None = None
        lineup.add(own)
        self.start()

    def run(self) -> None:
        self.found = self.lineup.take_or_wait(self.own, deadline=PATIENCE_S)


def give_back(busy: Busy, jobs: list[Job[None]]) -> None:
    """Have carried out what was taken."""
    for one in jobs:
        one.done = True
    busy.give_back(jobs)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows has all the time there is."""
    monkeypatch.setattr("langmem_ext.storage.lineup.FOLLOWED_S", PATIENCE_S)


@pytest.mark.usefixtures("patient")
def test_what_another_follows_goes_together_with_it() -> None:
    busy = Busy()
    lineup = Lineup(busy)
    first = Caller(lineup, leading("a"))
    first.join(0.05)
    assert first.found is None
    second = Caller(lineup, job("a"))
    second.join(PATIENCE_S)
    assert second.found == [first.own, second.own]

    give_back(busy, second.found)
    first.join(PATIENCE_S)
    assert first.found == []


def test_what_nothing_follows_goes_alone_after_a_moment_whatever_happens_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langmem_ext.storage.lineup.FOLLOWED_S", 0.1)
    busy = Busy()
    first = Caller(Lineup(busy), leading("a"))
    until = time.monotonic() + PATIENCE_S
    while first.is_alive() and time.monotonic() < until:
        busy.give_back([])  # which wakes all who wait
        time.sleep(0.005)
    assert first.found == [first.own]


@pytest.mark.usefixtures("patient")
def test_what_waits_for_its_thread_waits_for_what_follows_it_then() -> None:
    busy = Busy()
    lineup = Lineup(busy)
    first = Caller(lineup, leading("a"))
    taken = lineup.take_or_call(nothing)  # by an event loop, say
    second = Caller(lineup, leading("a"))
    other = Caller(lineup, job("b"))
    other.join(PATIENCE_S)
    assert taken == [first.own]
    assert other.found == [other.own]

    give_back(busy, taken)
    second.join(0.05)
    assert second.found is None, "nothing has followed it yet"
    third = Caller(lineup, job("a"))
    third.join(PATIENCE_S)
    assert third.found == [second.own, third.own]
    give_back(busy, third.found)
    second.join(PATIENCE_S)


@pytest.mark.usefixtures("patient")
def test_who_takes_its_own_alone_does_not_wait_for_the_patience_of_what_came_before_it() -> None:
    busy = Busy()
    lineup = Lineup(busy)
    first = Caller(lineup, leading("a"))
    first.join(0.05)
    own = job("a")
    lineup.add(own)
    carrying_out = threading.Timer(0.05, finish_what(first, busy))
    carrying_out.start()
    assert lineup.take_or_wait(own, own, deadline=PATIENCE_S) == []
    assert own.done


def finish_what(caller: Caller, busy: Busy) -> Callable[[], None]:
    """Carries out what a caller has taken."""

    def carry_out() -> None:
        caller.join(PATIENCE_S)
        assert caller.found is not None
        give_back(busy, caller.found)

    return carry_out


def test_an_event_loop_goes_at_once_where_what_follows_has_come_or_others_wait() -> None:
    assert not Lineup(Busy()).is_complete
    assert not line(leading("a")).is_complete
    assert line(leading("a"), job("a")).is_complete
    assert line(job("a"), leading("a")).is_complete
    assert not line(job("a"), job("b")).is_complete, "more of them may come"
