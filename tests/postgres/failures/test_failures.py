"""Promise: what was acknowledged is stored, whatever becomes of the server; nothing appears twice
or by halves, and threads go on.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from patience import PATIENCE_S, until
from prune_reference import assert_sound

from langmem_ext import DeltaSaver, LangmemExtError
from postgres.cluster import Cluster

WORKERS = 4
ROUNDS = 2


def talk(saver: Any) -> Any:
    """A graph that answers with the number of messages."""
    builder = StateGraph(MessagesState)
    builder.add_node(
        "answer", lambda state: {"messages": [AIMessage(f"{len(state['messages'])} so far")]}
    )
    return builder.add_edge(START, "answer").compile(checkpointer=saver)


def keep_talking(saver: DeltaSaver, name: str, over: threading.Event, told: list[str]) -> None:
    """One turn after another on a thread of its own; notes the ids of what was acknowledged.

    A turn that fails is begun again.
    """
    graph, config = talk(saver), RunnableConfig(configurable={"thread_id": name})
    number = 0
    while not over.is_set():
        try:
            graph.invoke(
                {"messages": [HumanMessage(f"turn {number}", id=f"{name}-{number}")]}, config
            )
        except LangmemExtError:
            time.sleep(0.05)
            continue
        told.append(f"{name}-{number}")
        number += 1


def until_each_has_told(told: dict[str, list[str]], turns: int) -> None:
    until(
        lambda: all(len(ids) >= turns for ids in told.values()), "a worker stores nothing any more"
    )


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_a_server_that_is_restarted_under_load_has_all_that_was_acknowledged(
    cluster: Cluster, how: Literal["fast", "immediate"]
) -> None:
    url = f"{cluster.url}?schema=restarted_{how}"
    over, told = threading.Event(), {f"w{at}": list[str]() for at in range(WORKERS)}
    with DeltaSaver.open(url) as saver:
        workers = [
            threading.Thread(target=keep_talking, args=(saver, name, over, ids))
            for name, ids in told.items()
        ]
        for worker in workers:
            worker.start()
        try:
            for number in range(ROUNDS):
                until_each_has_told(told, 3 * (number + 1))
                cluster.restart(how)
            until_each_has_told(told, 3 * (ROUNDS + 1))
        finally:
            over.set()
        for worker in workers:
            worker.join(PATIENCE_S)
        for name, ids in told.items():
            state = talk(saver).get_state({"configurable": {"thread_id": name}})
            said = [
                message.id
                for message in state.values["messages"]
                if isinstance(message, HumanMessage)
            ]
            assert said[: len(ids)] == ids
            assert len(said) == len(set(said))
        assert_sound(saver)
