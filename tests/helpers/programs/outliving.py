"""A process whose runs go on after their threads were deleted. Usage: outliving.py URL SEED COUNT

For each of `t0`, `t1` … it has one turn stored and begins a second one, in several steps, fan-out
and a subgraph. It says in a line when that has begun and in another how it ended, and goes on with
the next when a line tells it to.
"""

from __future__ import annotations

import asyncio
import operator
import random
import sys
import time
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, StateGraph, add_messages
from langgraph.types import Send

from langmem_ext import DeltaSaver, ThreadDeleted

OLD = "canary of a deleted conversation"


class State(TypedDict):
    messages: Annotated[list[Any], add_messages]
    log: Annotated[list[str], operator.add]


def graph(saver: Any, chance: random.Random, secret: str) -> Any:
    """A graph that says the secret in every step, and in its second turn that this has begun."""

    def begin(state: Any) -> Any:
        if len(state["messages"]) > 1:
            print("begun", flush=True)
        return say(state)

    def say(state: Any) -> Any:
        time.sleep(chance.random() * 0.002)
        return {"messages": [AIMessage(secret)], "log": [secret]}

    child = (
        StateGraph(State)
        .add_node("inner", say)
        .add_node("then", say)
        .add_edge(START, "inner")
        .add_edge("inner", "then")
        .compile()
    )
    builder = (
        StateGraph(State)
        .add_node("first", begin)
        .add_node("child", child)
        .add_node("worker", say)
        .add_node("last", say)
    )
    builder.add_edge(START, "first").add_edge("first", "child").add_edge("worker", "last")
    builder.add_conditional_edges(
        "child", lambda state: [Send("worker", state), Send("worker", state)], ["worker"]
    )
    return builder.compile(checkpointer=saver)


def main(url: str, seed: int, count: int) -> None:
    """Run them."""
    chance = random.Random(seed)
    with DeltaSaver.open(url, synchronous="normal") as saver:
        for number in range(count):
            secret = f"{OLD} {number}"
            app, thread = (
                graph(saver, chance, secret),
                {"configurable": {"thread_id": f"t{number}"}},
            )
            app.invoke({"messages": [HumanMessage(secret)]}, thread)
            durability: Any = chance.choice(["sync", "async", "async", "exit"])
            try:
                if chance.random() < 0.5:
                    app.invoke({"messages": [HumanMessage(secret)]}, thread, durability=durability)
                else:
                    asyncio.run(
                        app.ainvoke(
                            {"messages": [HumanMessage(secret)]}, thread, durability=durability
                        )
                    )
                outcome = "answered"
            except ThreadDeleted:
                outcome = "refused"
            print(outcome, durability, flush=True)
            sys.stdin.readline()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
