"""Promise: an operation that is run again, and may have been stored, is known again by what it has
left, and by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from savers import Backend

from langmem_ext import DeltaSaver, InvalidInput, ThreadChatMessageHistory, Threads
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.postgres.driver import recalled
from langmem_ext.storage.prune.prune import drop_thread
from langmem_ext.storage.threads.copy import Copy, copy_thread
from langmem_ext.threads.history import adding
from langmem_ext.types import ThreadKey

AHEAD = "ffffffff-ffff-6fff-bfff-000000000000"
"""A checkpoint's id by a clock that is far ahead."""


@pytest.fixture
def saver(backend: Backend, tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(backend.new_url(tmp_path)) as saver:
        yield saver


def texts(saver: DeltaSaver, name: str = "t") -> list[str]:
    return [message.text for message in ThreadChatMessageHistory(name, saver).messages]


def checkpoints(saver: DeltaSaver) -> int:
    return len(list(saver.list(None)))


def add(saver: DeltaSaver, text: str) -> Operation[None]:
    return adding(ThreadChatMessageHistory("t", saver)._view, ThreadKey("t"), [HumanMessage(text)])


def run(saver: DeltaSaver, op: Operation[Any]) -> Any:
    return saver.log.run(op, write=True)


def test_what_was_stored_is_told_and_changes_nothing_whatever_has_come_since(
    saver: DeltaSaver,
) -> None:
    op = add(saver, "one")
    run(saver, op)
    run(saver, add(saver, "two"))
    Threads(saver).clear("t")
    before = checkpoints(saver)
    assert run(saver, recalled(op, [None])) is None
    assert (texts(saver), checkpoints(saver)) == ([], before)


def test_an_edit_is_known_again_where_another_machines_clock_is_ahead(saver: DeltaSaver) -> None:
    saver.put(
        {"configurable": {"thread_id": "t", "checkpoint_ns": ""}},
        {**empty_checkpoint(), "id": AHEAD},
        {},
        {},
    )
    op, other = add(saver, "one"), add(saver, "two")
    for one in (op, other):
        run(saver, one)
    run(saver, recalled(op, [None]))
    run(saver, recalled(other, [None]))
    assert (texts(saver), checkpoints(saver)) == (["one", "two"], 3)
    run(saver, recalled(add(saver, "three"), [None]))
    assert texts(saver) == ["one", "two", "three"]


@pytest.mark.parametrize("known", [True, False])
def test_what_was_not_stored_is_carried_out(saver: DeltaSaver, known: bool) -> None:
    if known:
        run(saver, add(saver, "zero"))
    run(saver, recalled(add(saver, "one"), [None]))
    assert texts(saver) == ["zero", "one"][not known :]
    assert (
        run(
            saver,
            recalled(drop_thread(ThreadKey("t"), caches=saver.log.caches, dry_run=False), [None]),
        ).threads
        == 1
    )
    assert Threads(saver).count() == 0


def test_a_thread_that_nobody_makes_is_not_made_to_look_for_what_was_left(
    saver: DeltaSaver,
) -> None:
    history = ThreadChatMessageHistory("t", saver)
    run(saver, recalled(history._clear(), [None]))
    assert Threads(saver).count() == 0


def test_a_deletion_tells_what_its_earlier_run_was_about_to_tell(saver: DeltaSaver) -> None:
    run(saver, add(saver, "one"))
    op = drop_thread(ThreadKey("t"), caches=saver.log.caches, dry_run=False)
    told = run(saver, op)
    assert told.threads == 1
    assert run(saver, recalled(op, [told])) == told


def test_a_copy_is_known_again_when_it_was_written_to_and_no_other_is_taken_for_it(
    saver: DeltaSaver,
) -> None:
    run(saver, add(saver, "one"))
    copy = Copy("copy", 7)
    op = copy_thread(ThreadKey("t"), copy, now=1, caches=saver.log.caches)
    assert run(saver, op)
    ThreadChatMessageHistory("copy", saver).add_messages([HumanMessage("two")])
    Threads(saver).delete("t")
    assert run(saver, recalled(op, [True]))
    assert texts(saver, "copy") == ["one", "two"]
    run(saver, add(saver, "one"))
    another = copy_thread(
        ThreadKey("t"), replace(copy, generation=5000), now=1, caches=saver.log.caches
    )
    with pytest.raises(InvalidInput, match="already"):
        run(saver, recalled(another, [True]))


def test_what_leaves_nothing_of_its_own_is_run_again(saver: DeltaSaver) -> None:
    run(saver, add(saver, "one"))
    op = ThreadChatMessageHistory("t", saver)._read()
    assert recalled(op, [[]]) is op
    assert recalled(add(saver, "two"), []).trace is not None
