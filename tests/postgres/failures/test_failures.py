"""Promise: what was acknowledged is stored, whatever becomes of the server; nothing appears twice
or by halves, and threads go on.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from typing import Any, Literal

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from patience import PATIENCE_S, until
from prune_reference import assert_sound
from repository import ROOT

from langmem_ext import DeltaSaver, LangmemExtError
from postgres.cluster import Cluster
from postgres.server import SHARED, Database

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
KILLS = 50 if os.environ.get("LANGMEM_EXT_SOAK") == "1" else 3
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


CHILD = """
import sys
from langchain_core.messages import HumanMessage
from langmem_ext import DeltaSaver
from postgres.failures.test_failures import talk

graph = talk(DeltaSaver.open(sys.argv[1]))
for number in range(int(sys.argv[2]), 1_000_000):
    said = [HumanMessage(f"turn {number}", id=f"h{number}")]
    graph.invoke({"messages": said}, {"configurable": {"thread_id": "t"}})
    print(number, flush=True)
"""


def test_a_client_that_is_killed_anywhere_has_lost_nothing_that_was_acknowledged(
    database: Database,
) -> None:
    url, chance, acknowledged = f"{database.url}?schema={SHARED.new_schema()}", random.Random(7), -1
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*sys.path, str(ROOT / "tests")]),
    }
    for _ in range(KILLS):
        command = [sys.executable, "-c", CHILD, url, str(acknowledged + 1)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
            assert child.stdout is not None
            first = child.stdout.readline()
            time.sleep(chance.random() / 5)
            child.kill()
            acknowledged = int([first, *child.stdout.read().splitlines(keepends=True)][-1])
    with DeltaSaver.open(url) as saver:
        graph = talk(saver)
        said = [
            one.id
            for one in graph.get_state(CONFIG).values["messages"]
            if isinstance(one, HumanMessage)
        ]
        assert said[: acknowledged + 1] == [f"h{number}" for number in range(acknowledged + 1)]
        assert len(said) == len(set(said)) <= acknowledged + 2
        graph.invoke({"messages": [HumanMessage("and now?")]}, CONFIG)
        assert_sound(saver)


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
