"""Promise: Python's garbage collector, which rests while much is read, is afterwards as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from prune_reference import change

from langmem_ext import DamagedRow, DeltaSaver, ThreadChatMessageHistory, Threads


@pytest.fixture(autouse=True)
def running() -> Iterator[None]:
    """The collector runs before a test, and after it."""
    gc.enable()
    yield
    gc.enable()


@pytest.mark.parametrize("runs", [True, False])
def test_it_is_as_it_was_after_reading_and_after_an_error(runs: bool, tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    with DeltaSaver.open(path) as saver:
        ThreadChatMessageHistory("t", saver).add_messages(
            [HumanMessage(f"message {number}") for number in range(200)]
        )
    if not runs:
        gc.disable()
    with DeltaSaver.open(path) as saver:
        assert len(Threads(saver).messages("t")) == 200
    assert gc.isenabled() is runs
    change(path, "UPDATE item SET text = 'changed' WHERE text = 'message 100'")
    with DeltaSaver.open(path) as saver, pytest.raises(DamagedRow):
        Threads(saver).messages("t")
    assert gc.isenabled() is runs
