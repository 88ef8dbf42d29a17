"""Promise: what interrupts an operation is raised as it is, is never taken for damage, and holds
nobody up; what a decoder raises is damage.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from patience import PATIENCE_S
from pydantic import BaseModel

from langmem_ext import DamagedRow, DeltaSaver, examine

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


class TimeIsUp(Exception):
    """A time limit's own error, as task queues raise it from a signal's handler."""


def on_signal(number: int, frame: Any) -> None:
    raise TimeIsUp


during: list[Callable[[], None]] = []
"""What happens the next time that a value is read."""


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


def fail(error: BaseException) -> None:
    raise error


@pytest.fixture(autouse=True)
def handled() -> Iterator[None]:
    before = signal.signal(signal.SIGUSR1, on_signal)
    yield
    signal.signal(signal.SIGUSR1, before)
    during.clear()


def stored(url: str, serde: Any) -> DeltaSaver:
    """A saver that remembers nothing of the thread that is stored."""
    values = {"order": Order(number=1), "messages": [HumanMessage("hello", id="1")]}
    checkpoint: Any = empty_checkpoint() | {
        "channel_values": values,
        "channel_versions": dict.fromkeys(values, 1),
    }
    with DeltaSaver.open(url, serde=serde) as saver:
        saver.put(CONFIG, checkpoint, {}, dict.fromkeys(values, 1))
    return DeltaSaver.open(url, serde=serde)


@pytest.mark.parametrize("serde", [None, Interrupted()], ids=["native", "foreign"])
def test_what_interrupts_the_reading_of_a_row_is_raised_as_it_is(serde: Any, url: str) -> None:
    with stored(url, serde) as saver:
        for error in (TimeIsUp, MemoryError, RecursionError, KeyboardInterrupt):
            with DeltaSaver.open(url, serde=serde) as cold:
                during.append(
                    partial(signal.raise_signal, signal.SIGUSR1)
                    if error is TimeIsUp
                    else partial(fail, error())
                )
                with pytest.raises(error):
                    cold.get_tuple(CONFIG)
                assert not during
        found = saver.get_tuple(CONFIG)
        assert found is not None
        assert found.checkpoint["channel_values"]["order"] == Order(number=1)


def test_an_examination_that_is_interrupted_ends_and_finds_no_damage(url: str) -> None:
    with stored(url, Interrupted()) as saver:
        during.append(partial(signal.raise_signal, signal.SIGUSR1))
        with pytest.raises(TimeIsUp):
            examine(saver)
        assert not examine(saver).findings


@pytest.mark.parametrize("error", [ValueError("cut"), TimeIsUp()], ids=repr)
def test_what_a_serializer_raises_is_a_damaged_row_whatever_it_is(
    error: Exception, url: str
) -> None:
    with stored(url, Interrupted()) as saver:
        during.append(partial(fail, error))
        with pytest.raises(DamagedRow) as damaged:
            saver.get_tuple(CONFIG)
        assert damaged.value.__cause__ is error


STOPPED = """
import random, signal, sys
from langmem_ext import DeltaSaver, ThreadChatMessageHistory

class TimeIsUp(Exception):
    pass

def on_signal(number, frame):
    raise TimeIsUp

signal.signal(signal.SIGALRM, on_signal)
chance, said = random.Random(5), 0
with DeltaSaver.open(sys.argv[1], synchronous="normal") as saver:
    history = ThreadChatMessageHistory("t", saver)
    for number in range(40):
        signal.setitimer(signal.ITIMER_REAL, 0.0002 + chance.random() / 100)
        try:
            for _ in range(100):  # what is raised where Python ignores it stops nobody
                history.add_user_message(str(number))
                said += 1
        except TimeIsUp:
            pass
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    history.add_user_message("last")
    print(said, len(history.messages), history.messages[-1].text)
"""


@pytest.mark.process
def test_whoever_is_stopped_anywhere_holds_nobody_up(url: str) -> None:
    """In a process of its own: Python itself does not withstand exceptions at any place."""
    command = [sys.executable, "-c", STOPPED, url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    said, stored_, last = done.stdout.split()
    assert int(said) < int(stored_) <= int(said) + 41, "what was under way may be stored"
    assert last == "last"
    assert examine(url).ok
