"""Promise: a checkpoint and the writes to it may be stored in any order, as with other savers."""

from __future__ import annotations

from functools import partial
from itertools import permutations
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from savers import Calls

from langmem_ext import DeltaSaver, ThreadDeleted, Threads


def config(checkpoint: str | None = None, *below: str, thread: str = "t") -> Any:
    """Where a checkpoint is; below another one: in a namespace, of that checkpoint."""
    named = {} if checkpoint is None else {"checkpoint_id": checkpoint}
    above = {"checkpoint_map": {"": below[1]}} if below else {}
    place = {"thread_id": thread, "checkpoint_ns": below[0] if below else ""}
    return {"configurable": {**place, **named, **above}}


INPUT: Any = {"source": "input", "step": -1}


async def test_in_a_new_thread_writes_may_come_first(saver: DeltaSaver, calls: Calls) -> None:
    for number, order in enumerate(permutations(range(5))):
        thread = f"t{number}"
        root, child = empty_checkpoint(), empty_checkpoint()
        outer = config(root["id"], thread=thread)
        inner = config(None, "sub:1", root["id"], thread=thread)
        inside = config(child["id"], "sub:1", root["id"], thread=thread)
        steps: list[tuple[Any, ...]] = [
            ("put", config(thread=thread), root, INPUT, {}),
            ("put_writes", outer, [("a", AIMessage("hi"))], "one"),
            ("put_writes", outer, [("b", 2)], "other"),
            ("put", inner, child, INPUT, {}),
            ("put_writes", inside, [("c", 3)], "third"),
        ]
        for step in order:
            await calls.call(saver, *steps[step])
        found, below = saver.get_tuple(outer), saver.get_tuple(inside)
        assert found is not None, order
        writes = {(task, channel) for task, channel, _ in found.pending_writes or ()}
        assert writes == {("one", "a"), ("other", "b")}, order
        assert below is not None, order
        assert [write[1:] for write in below.pending_writes or ()] == [("c", 3)], order


async def test_a_checkpoint_may_be_older_than_its_thread_or_have_a_parent_that_is_not_there(
    saver: DeltaSaver, calls: Calls
) -> None:
    """What is brought in from elsewhere may have any ids."""
    call, old, parent = partial(calls.call, saver), str(uuid6()), str(uuid6())
    await call("put", config(), empty_checkpoint(), INPUT, {})
    await call("put_writes", config(old), [("a", 1)], "task")
    await call("put", config(), {**empty_checkpoint(), "id": old}, INPUT, {})
    found = saver.get_tuple(config(old))
    assert found is not None
    assert [write[1:] for write in found.pending_writes or ()] == [("a", 1)]
    placed = await call(
        "put", config(parent, thread="new"), empty_checkpoint(), {"source": "loop"}, {}
    )
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
