"""Promise: a listed checkpoint is a full `CheckpointTuple` whose state is built on access."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint

from langmem_ext import DeltaSaver

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@pytest.fixture
def saver() -> Any:
    with DeltaSaver.from_conn_string(":memory:") as saver:
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": [HumanMessage("hello", id="1")]}
        checkpoint["channel_versions"] = {"messages": "1"}
        stored = saver.put(CONFIG, checkpoint, {"source": "input", "step": -1}, {"messages": "1"})
        saver.put_writes(stored, [("messages", HumanMessage("there", id="2"))], "task")
        yield saver


def test_it_is_the_tuple_in_every_way_of_looking_at_it(saver: DeltaSaver) -> None:
    whole = saver.get_tuple(CONFIG)
    assert whole is not None

    def listed() -> CheckpointTuple:
        [found] = saver.list(CONFIG)
        return found

    assert listed() == whole
    assert whole == listed()
    assert (listed() != whole) is False
    config, checkpoint, metadata, parent, writes = listed()
    assert (config, checkpoint, metadata, parent, writes) == tuple(whole) == tuple(listed())
    assert listed()[1] == whole.checkpoint
    assert listed()[-1] == whole.pending_writes
    assert listed()._asdict() == whole._asdict()
    assert listed()._replace(parent_config=None) == whole
    assert repr(listed()) == repr(whole)
    assert (
        copy.copy(listed())
        == copy.deepcopy(listed())
        == pickle.loads(pickle.dumps(listed()))
        == CheckpointTuple(*listed())
        == whole
    )
    assert type(copy.copy(listed())) is CheckpointTuple
    assert isinstance(listed(), CheckpointTuple)
    assert len(listed()) == 5


def test_what_one_reader_changes_no_other_sees(saver: DeltaSaver) -> None:
    first, second = next(saver.list(CONFIG)), next(saver.list(CONFIG))
    assert first.checkpoint is first.checkpoint
    first.checkpoint["channel_values"]["messages"][0].content = "changed"
    first.checkpoint["channel_values"]["messages"].clear()
    assert second.checkpoint["channel_values"]["messages"] == [HumanMessage("hello", id="1")]
