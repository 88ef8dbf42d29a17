"""What an inspector asks of the database: the tree of a thread's checkpoints, what each step wrote,
and which threads are the largest.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from itertools import product, takewhile
from operator import eq
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.graph import START, MessagesState, StateGraph
from savers import Calls, Mode

from langmem_ext import DeltaSaver, InvalidInput, ThreadChatMessageHistory, Threads
from langmem_ext.storage.threads import outline as outline_ops
from langmem_ext.types import PackedValue, ThreadKey


class State(MessagesState):
    total: Annotated[int, operator.add]


@pytest.fixture
def saver(url: str) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(url, synchronous="normal") as saver:
        yield saver


def counting(saver: DeltaSaver) -> Any:
    builder = StateGraph(State)
    builder.add_node(
        "say", lambda state: {"messages": [AIMessage("said", id=f"said-{len(state['messages'])}")]}
    )
    builder.add_node("add", lambda state: {"total": 1})
    builder.add_edge(START, "say")
    builder.add_edge("say", "add")
    return builder.compile(checkpointer=saver)


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def test_the_outline_is_the_tree_that_the_saver_lists(saver: DeltaSaver) -> None:
    graph = counting(saver)
    for text in ("one", "two"):
        graph.invoke({"messages": [("user", text)]}, config("t"))
    earlier = [*graph.get_state_history(config("t"))][3]
    graph.update_state(earlier.config, {"total": 5}, as_node="add")
    tools: Any = {"caches": saver.log.caches, "codec": saver.codec}
    outline = saver.log.run(outline_ops.read_outline(ThreadKey("t"), "", **tools), write=False)
    listed = [*saver.list(config("t"))]
    assert [(name, parent, step) for name, parent, step, _ in outline] == [
        (
            found.config["configurable"]["checkpoint_id"],
            found.parent_config and found.parent_config["configurable"]["checkpoint_id"],
            found.metadata["step"],
        )
        for found in listed
    ]
    steps = saver.log.run(
        outline_ops.read_steps(ThreadKey("t"), "", [row[0] for row in outline], **tools),
        write=False,
    )
    for found in listed:
        step = steps[found.config["configurable"]["checkpoint_id"]]
        assert step.versions == found.checkpoint["channel_versions"]
        assert step.seen == found.checkpoint["versions_seen"]
        assert [(one.task, one.channel) for one in step.written] == [
            (task, channel) for task, channel, _ in found.pending_writes or ()
        ]
    assert {one.path for step in steps.values() for one in step.written} >= {
        "~__pregel_pull, say",
        "~__pregel_pull, add",
    }


def test_one_channel_is_read_without_the_others(saver: DeltaSaver) -> None:
    graph = counting(saver)
    graph.invoke({"messages": [("user", "one")]}, config("t"))
    head = saver.get_tuple(config("t"))
    assert head is not None
    tools: Any = {"caches": saver.log.caches, "codec": saver.codec}
    read = outline_ops.read_channel(ThreadKey("t"), "", head.checkpoint["id"], "messages", **tools)
    packed = saver.log.run(read, write=False)
    assert packed is not None
    assert saver.codec.load_value(packed) == head.checkpoint["channel_values"]["messages"]
    nothing = outline_ops.read_channel(
        ThreadKey("t"), "", head.checkpoint["id"], "nothing", **tools
    )
    assert saver.log.run(nothing, write=False) is None


def test_a_message_is_known_by_its_number_from_where_it_came_in(saver: DeltaSaver) -> None:
    graph = counting(saver)
    for text in ("one", "two"):
        graph.invoke({"messages": [("user", text)]}, config("t"))
    tools: Any = {"caches": saver.log.caches, "codec": saver.codec}
    outline = saver.log.run(outline_ops.read_outline(ThreadKey("t"), "", **tools), write=False)
    steps = saver.log.run(
        outline_ops.read_steps(ThreadKey("t"), "", [row[0] for row in outline], **tools),
        write=False,
    )
    number = outline_ops.number_of(steps[outline[0][0]].refs["messages"], 2)
    has = [
        outline_ops.names_message(steps[name].refs.get("messages"), number) for name, *_ in outline
    ]
    assert has == sorted(has, reverse=True)
    assert 0 < sum(has) < len(has)


def test_a_message_is_found_and_lists_compared_without_being_read(saver: DeltaSaver) -> None:
    graph = counting(saver)
    for text in ("one", "two", "three"):
        graph.invoke({"messages": [("user", text)]}, config("t"))
    graph.update_state(config("t"), {"messages": [RemoveMessage(id="said-3")]}, as_node="add")
    graph.update_state(config("t"), {"messages": [AIMessage("other", id="said-1")]}, as_node="add")
    tools: Any = {"caches": saver.log.caches, "codec": saver.codec}
    lists = {
        found.checkpoint["id"]: found.checkpoint["channel_values"].get("messages")
        for found in saver.list(config("t"))
    }
    ids = [one.id for messages in lists.values() for one in messages or ()]
    for checkpoint, messages in lists.items():
        for name in {*ids, "nobody", "\udcff"}:
            found = outline_ops.find_place(
                ThreadKey("t"), "", checkpoint, "messages", name, **tools
            )
            places = [at for at, one in enumerate(messages or ()) if one.id == name]
            assert saver.log.run(found, write=False) == max(places, default=None)
    refs = {
        name: step.refs["messages"]
        for name, step in saver.log.run(
            outline_ops.read_steps(ThreadKey("t"), "", [*lists], **tools), write=False
        ).items()
        if "messages" in step.refs
    }
    for one, other in product(refs, refs):
        alike = outline_ops.common_length(refs[one], refs[other])
        same = takewhile(bool, map(eq, lists[one], lists[other]))
        assert alike == len([*same])


async def test_largest_threads_come_first_and_pages_lose_none(
    saver: DeltaSaver, mode: Mode
) -> None:
    def largest(by: str, **wanted: Any) -> Any:
        return Calls(mode).call(Threads(saver), "largest", by, **wanted)

    for name, count in (("a", 1), ("b", 3), ("c", 2), ("d", 3)):
        messages = [("word " * 50 if name == "a" else "word") + str(at) for at in range(count)]
        await ThreadChatMessageHistory(name, saver).aadd_messages(
            [HumanMessage(text) for text in messages]
        )
    first = await largest("stored_messages", limit=2)
    second = await largest("stored_messages", limit=2, after=first[-1])
    assert {thread.id for thread in first} == {"b", "d"}
    assert [thread.id for thread in second] == ["c", "a"]
    assert (await largest("tokens", limit=1))[0].id == "a"
    assert [thread.id for thread in await largest("tokens", begins="c")] == ["c"]
    with pytest.raises(InvalidInput):
        await largest("weight")


def test_a_thread_that_is_not_there_has_no_outline(saver: DeltaSaver) -> None:
    tools: Any = {"caches": saver.log.caches, "codec": saver.codec}
    assert saver.log.run(outline_ops.read_outline(ThreadKey("t"), "", **tools), write=False) == []
    assert saver.log.run(outline_ops.list_namespaces(ThreadKey("t"), **tools), write=False) == []


def test_a_part_of_a_conversation_is_read_at_any_checkpoint(saver: DeltaSaver) -> None:
    graph = counting(saver)
    for text in ("one", "two", "three"):
        graph.invoke({"messages": [("user", text)]}, config("t"))
    tools: Any = {"caches": saver.log.caches, "codec": saver.codec}
    for found in saver.list(config("t")):
        whole = found.checkpoint["channel_values"].get("messages", [])
        for first, limit in ((0, 2), (1, 3), (-2, 2), (0, 99)):
            read = outline_ops.read_list(
                ThreadKey("t"), "", found.checkpoint["id"], first, limit, **tools
            )
            part = saver.log.run(read, write=False)
            if "messages" not in found.checkpoint["channel_values"]:
                assert part is None
                continue
            assert part is not None
            start = max(len(whole) + first, 0) if first < 0 else min(first, len(whole))
            assert (
                saver.codec.load_value(PackedValue(messages=part.messages))
                == whole[start : start + limit]
            )
            assert (part.channel, part.first, part.total) == ("messages", start, len(whole))
            assert len(part.seconds) == len(part.messages)
