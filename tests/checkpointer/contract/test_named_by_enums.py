"""Promise: an application may call its threads, nodes and channels by members of an enum: they are
called by their texts.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from prune_reference import assert_sound
from savers import Backend, Calls, Mode, brief_saver

from langmem_ext import DeltaSaver, Threads


class Plain(StrEnum):
    ASK = "ask"
    TELL = "tell"


class Mixed(str, Enum):  # noqa: UP042 (str() of a member is not its text, which is what older programs have)
    ASK = "ask"
    TELL = "tell"


class Field(StrEnum):
    ANSWER = "answer"
    COUNT = "count"


class State(TypedDict, total=False):
    answer: str
    count: int


def graph_of(names: type[Plain] | type[Mixed], saver: Any) -> Any:
    """Asks the user, then counts; its nodes, and what they write, are called by members of
    enums.
    """
    builder = StateGraph(State)
    builder.add_node(names.ASK, lambda _: {Field.ANSWER: interrupt("what?")})
    builder.add_node(names.TELL, lambda state: {Field.COUNT: len(state["answer"])})
    builder.add_edge(START, names.ASK)
    builder.add_edge(names.ASK, names.TELL)
    builder.add_edge(names.TELL, END)
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("names", [Plain, Mixed])
async def test_a_graph_whose_nodes_and_writes_are_named_by_enums_goes_on(
    backend: Backend, folder: Path, mode: Mode, names: type[Plain] | type[Mixed]
) -> None:
    calls, config = Calls(mode), {"configurable": {"thread_id": Plain.ASK}}
    told: list[Any] = []
    with brief_saver(backend, folder) as saver:
        for one in (saver, InMemorySaver()):
            graph = graph_of(names, one)
            asked = await calls.call(graph, "invoke", {"count": 0}, config)
            if isinstance(one, DeltaSaver):
                one.log.caches.forget()
            done = await calls.call(graph, "invoke", Command(resume="yes"), config)
            await calls.call(graph, "update_state", config, {Field.COUNT: 9}, as_node=names.ASK)
            state = await calls.call(graph, "get_state", config)
            told.append(
                (
                    asked["__interrupt__"][0].value,
                    done,
                    state.values,
                    [str.__str__(name) for name in state.next],
                )
            )
        assert told[0] == told[1]
        assert told[0][2:] == ({"answer": "yes", "count": 9}, ["tell"])
        assert [thread.id for thread in Threads(saver).list()] == ["ask"]
        assert_sound(saver)


async def test_a_thread_an_owner_and_a_run_are_the_texts_of_their_members(
    backend: Backend, folder: Path, mode: Mode
) -> None:
    calls = Calls(mode)
    with brief_saver(backend, folder) as saver:
        for thread in (Mixed.ASK, "tell"):
            config = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
            await calls.call(
                saver.for_owner(Mixed.TELL),
                "put",
                config,
                empty_checkpoint(),
                {"run_id": "ask"},
                {},
            )
        assert await calls.call(
            saver.for_owner("tell"), "get_tuple", {"configurable": {"thread_id": "ask"}}
        )
        await calls.call(saver, "delete_for_runs", [Mixed.ASK])
        assert await calls.collect(saver, "list", None) == []
        await calls.call(saver, "delete_thread", Mixed.TELL)
        assert [thread.id for thread in Threads(saver).list()] == ["ask"]
