"""Promise: what interrupts the reading of a row is raised as it is, and never taken for damage;
what a decoder raises is damage.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import BaseModel
from savers import Backend

from langmem_ext import DamagedRow, DeltaSaver, LangmemExtError, examine

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


class TimeIsUp(Exception):
    """A time limit's own error, as task queues raise it from a signal's handler."""


class NotMine(Exception):
    """What a serializer raises of its own."""


def on_signal(number: int, frame: Any) -> None:
    raise TimeIsUp


class Limit:
    def ring(self, number: int, frame: Any) -> None:
        raise TimeIsUp

    def __call__(self, number: int, frame: Any) -> None:
        raise TimeIsUp


during: list[Callable[[], None]] = []
"""What happens the next time that a value or a message is read."""


class Order(BaseModel):
    number: int

    def __init__(self, **fields: Any) -> None:
        if during:
            during.pop()()
        super().__init__(**fields)


class Interrupted(JsonPlusSerializer):
    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        if during:
            during.pop()()
        return super().loads_typed(data)


def signalled() -> None:
    signal.raise_signal(signal.SIGUSR1)


def fail(error: BaseException) -> None:
    raise error


@pytest.fixture
def handled() -> Iterator[Callable[[Any], None]]:
    before = signal.getsignal(signal.SIGUSR1)

    def handle(handler: Any) -> None:
        signal.signal(signal.SIGUSR1, handler)

    yield handle
    signal.signal(signal.SIGUSR1, before)
    during.clear()


Opened = Callable[[Any], DeltaSaver]


@pytest.fixture
def opened(backend: Backend, tmp_path: Path) -> Iterator[Opened]:
    """Opens a saver with a serializer, or with its own."""
    with ExitStack() as closing:
        yield lambda serde: closing.enter_context(
            DeltaSaver.open(backend.new_url(tmp_path), serde=serde)
        )


def stored(saver: DeltaSaver) -> Any:
    values = {"order": Order(number=1), "messages": [HumanMessage("hello", id="1")]}
    checkpoint: Any = empty_checkpoint() | {
        "channel_values": values,
        "channel_versions": dict.fromkeys(values, 1),
    }
    return saver.put(CONFIG, checkpoint, {}, dict.fromkeys(values, 1))


@pytest.mark.parametrize("serde", [None, Interrupted()], ids=["native", "foreign"])
@pytest.mark.parametrize(
    "handler",
    [on_signal, partial(on_signal), Limit().ring, Limit()],
    ids=["function", "partial", "method", "object"],
)
def test_what_a_signals_handler_raises_is_raised_as_it_is(
    handler: Any, serde: Any, handled: Any, opened: Opened
) -> None:
    handled(handler)
    saver = opened(serde)
    stored(saver)
    saver.log.caches.forget()
    during.append(signalled)
    with pytest.raises(TimeIsUp):
        saver.get_tuple(CONFIG)
    assert not during
    found = saver.get_tuple(CONFIG)
    assert found is not None
    assert found.checkpoint["channel_values"] == {
        "order": Order(number=1),
        "messages": [HumanMessage("hello", id="1")],
    }


@pytest.mark.parametrize("serde", [None, Interrupted()], ids=["native", "foreign"])
@pytest.mark.parametrize("error", [MemoryError(), RecursionError(), KeyboardInterrupt()], ids=repr)
def test_an_interruption_and_memory_and_stack_that_ran_out_are_no_damage(
    error: BaseException, serde: Any, handled: Any, opened: Opened
) -> None:
    saver = opened(serde)
    stored(saver)
    saver.log.caches.forget()
    during.append(partial(fail, error))
    with pytest.raises(type(error)):
        saver.get_tuple(CONFIG)
    assert saver.get_tuple(CONFIG) is not None


def test_an_examination_that_is_interrupted_ends_and_finds_no_damage(
    handled: Any, opened: Opened
) -> None:
    handled(on_signal)
    saver = opened(Interrupted())
    stored(saver)
    during.append(signalled)
    with pytest.raises(TimeIsUp):
        examine(saver)
    assert not during
    assert not examine(saver).findings


@pytest.mark.parametrize("error", [NotMine("another key"), ValueError("cut"), TimeIsUp()], ids=repr)
def test_what_a_serializer_raises_is_a_damaged_row_whatever_it_is(
    error: Exception, handled: Any, opened: Opened
) -> None:
    handled(on_signal)
    saver = opened(Interrupted())
    stored(saver)
    saver.log.caches.forget()
    during.append(partial(fail, error))
    with pytest.raises(DamagedRow) as damaged:
        saver.get_tuple(CONFIG)
    assert isinstance(damaged.value, LangmemExtError)
    assert damaged.value.__cause__ is error
