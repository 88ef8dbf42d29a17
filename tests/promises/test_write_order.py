"""Promise: a checkpoint and the writes to it may be stored in any order, as with other savers."""

from __future__ import annotations

from functools import partial
from itertools import permutations
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from savers import Calls, Mode

from langmem_ext import DeltaSaver, ThreadDeleted, Threads


def config(
    checkpoint: str | None = None, namespace: str = "", root: str = "", thread: str = "t"
) -> Any:
    named = {} if checkpoint is None else {"checkpoint_id": checkpoint}
    above = {"checkpoint_map": {"": root}} if root else {}
    place = {"thread_id": thread, "checkpoint_ns": namespace}
    return {"configurable": {**place, **named, **above}}


INPUT: Any = {"source": "input", "step": -1}


async def test_in_a_new_thread_writes_may_come_first(url: str, mode: Mode) -> None:
    with DeltaSaver.open(url) as saver:
        for number, order in enumerate(permutations(range(5))):
            thread = f"t{number}"
            root, child = empty_checkpoint(), empty_checkpoint()
            outer = config(root["id"], thread=thread)
            inner = config(None, "sub:1", root["id"], thread)
            inside = config(child["id"], "sub:1", root["id"], thread)
            steps: list[tuple[Any, ...]] = [
                ("put", config(thread=thread), root, INPUT, {}),
                ("put_writes", outer, [("a", AIMessage("hi"))], "one"),
                ("put_writes", outer, [("b", 2)], "other"),
                ("put", inner, child, INPUT, {}),
                ("put_writes", inside, [("c", 3)], "third"),
            ]
            for step in order:
                await Calls(mode).call(saver, *steps[step])
            found, below = saver.get_tuple(outer), saver.get_tuple(inside)
            assert found is not None, order
            writes = {(task, channel) for task, channel, _ in found.pending_writes or ()}
            assert writes == {("one", "a"), ("other", "b")}, order
            assert below is not None, order
            assert [write[1:] for write in below.pending_writes or ()] == [("c", 3)], order


async def test_writes_to_a_checkpoint_older_than_its_thread_are_stored(
    url: str, mode: Mode
) -> None:
    """What is brought in from elsewhere may have any ids."""
    with DeltaSaver.open(url) as saver:
        call = partial(Calls(mode).call, saver)
        old, newer = str(uuid6()), empty_checkpoint()
        await call("put", config(), newer, INPUT, {})
        await call("put_writes", config(old), [("a", 1)], "task")
        checkpoint = {**empty_checkpoint(), "id": old}
        await call("put", config(), checkpoint, INPUT, {})
        found = saver.get_tuple(config(old))
        assert found is not None
        assert [write[1:] for write in found.pending_writes or ()] == [("a", 1)]


async def test_a_checkpoint_may_name_a_parent_that_was_never_stored(url: str, mode: Mode) -> None:
    with DeltaSaver.open(url) as saver:
        call = partial(Calls(mode).call, saver)
        parent = str(uuid6())
        placed = await call("put", config(parent), empty_checkpoint(), {"source": "loop"}, {})
        found = saver.get_tuple(placed)
        assert found is not None
        assert found.parent_config is not None
        assert found.parent_config["configurable"]["checkpoint_id"] == parent


def test_after_a_deletion_the_same_is_refused_and_a_new_conversation_is_not(url: str) -> None:
    with DeltaSaver.open(url) as saver, DeltaSaver.open(url) as other:
        old = empty_checkpoint()
        saver.put(config(), old, INPUT, {})
        saver.delete_thread("t")
        for late in (saver, other):  # the other has never heard of it
            with pytest.raises(ThreadDeleted):
                late.put_writes(config(old["id"]), [("a", 1)], "task")
            with pytest.raises(ThreadDeleted):
                late.put(config(old["id"]), empty_checkpoint(), {"source": "loop"}, {})
        assert Threads(saver).list() == []
        new = empty_checkpoint()
        other.put(config(), new, INPUT, {})
        other.put_writes(config(new["id"]), [("a", 1)], "task")
        assert [thread.id for thread in Threads(saver).list()] == ["t"]
