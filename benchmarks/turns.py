"""One long conversation on several checkpointers, in one run: bytes on disk and CPU per turn.

    python benchmarks/turns.py [--turns 800] [--savers delta,memory,sqlite] [--rich] [--characters 180,280]

The savers take turns within the run, so that a busy machine slows all of them alike; compare ratios, not figures of different runs. The
text is the standard library's docstrings. "raw" is what LangGraph's serializer makes of each message once.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from langmem_ext import DeltaSaver

_MODULES = {"argparse", "asyncio", "decimal", "email", "logging", "os", "pathlib", "pydoc", "socket", "sqlite3", "ssl", "typing"}

THREAD: Any = {"configurable": {"thread_id": "bench"}}


def words() -> Iterator[str]:
    """Words of the standard library's docstrings, for ever."""
    found: list[str] = []
    for module in sorted(info.name for info in pkgutil.iter_modules() if info.name in _MODULES):
        for _, thing in sorted(vars(importlib.import_module(module)).items()):
            found += _documented(thing)
    return cycle(found)


def _documented(thing: Any) -> list[str]:
    """The words of a thing's docstring and of its members'."""
    docs = [inspect.getdoc(thing) or ""]
    if inspect.isclass(thing):
        docs += [inspect.getdoc(member) or "" for _, member in sorted(vars(thing).items()) if callable(member)]
    return " ".join(docs).split() if callable(thing) else []


def texts(length: int, source: Iterator[str]) -> Iterator[str]:
    """Texts of about `length` characters."""
    while True:
        text = ""
        while len(text) < length:
            text += next(source) + " "
        yield text[:length]


def conversation(replies: Iterator[str], *, rich: bool) -> Any:
    """A graph of one node that answers; with `rich`, as providers do, with usage and metadata."""
    more: dict[str, Any] = {}
    if rich:
        usage = {"input_tokens": 1523, "output_tokens": 87, "total_tokens": 1610, "input_token_details": {"cache_read": 1024}}
        more = {
            "usage_metadata": usage,
            "response_metadata": {
                "token_usage": {"completion_tokens": 87, "prompt_tokens": 1523, "total_tokens": 1610},
                "model_name": "gpt-4o-mini-2024-07-18",
                "system_fingerprint": "fp_0ba0d124f1",
                "finish_reason": "stop",
                "logprobs": None,
            },
        }

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(next(replies), **more)]}

    return StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")


def run(turns: int, savers: list[str], *, rich: bool, characters: tuple[int, int]) -> None:
    """Run the conversation and print a row per saver."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        opening: dict[str, Callable[[], Any]] = {
            "none": lambda: None,
            "memory": InMemorySaver,
            "delta": lambda: stack.enter_context(DeltaSaver.from_conn_string(str(folder / "delta.db"))),
            "sqlite": lambda: stack.enter_context(SqliteSaver.from_conn_string(str(folder / "sqlite.db"))),
        }
        human, reply = (texts(length, words()) for length in characters)
        graphs = {name: conversation(reply, rich=rich).compile(checkpointer=opening[name]()) for name in savers}
        cpu: dict[str, list[float]] = {name: [] for name in savers}
        for _ in range(turns):
            text = next(human)
            for name, graph in graphs.items():
                started = time.process_time()
                graph.invoke({"messages": [HumanMessage(text)]}, THREAD)
                cpu[name].append(time.process_time() - started)
        state = next(graph for name, graph in graphs.items() if name != "none").get_state(THREAD).values["messages"]
        serde = JsonPlusSerializer()
        raw = sum(len(serde.dumps_typed(message)[1]) for message in state)
        print(f"{turns} turns, {len(state)} messages, raw {raw:,} bytes")
        print(f"{'saver':8} {'bytes':>12} {'/ raw':>8} {'cpu ms/turn, last 50':>22} {'total s':>8}")
        for name, graph in graphs.items():
            if hasattr(graph.checkpointer, "conn"):
                graph.checkpointer.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            if isinstance(graph.checkpointer, DeltaSaver):
                graph.checkpointer.close()
            size = sum(path.stat().st_size for path in folder.glob(f"{name}.db*"))
            last = statistics.median(cpu[name][-50:]) * 1000
            print(f"{name:8} {size:12,} {size / raw:8.2f} {last:22.2f} {sum(cpu[name]):8.2f}")


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=800)
    parser.add_argument("--savers", default="delta,memory,sqlite")
    parser.add_argument("--rich", action="store_true")
    parser.add_argument("--characters", default="180,280", help="length of the user's and of the agent's messages")
    args = parser.parse_args()
    human, reply = (int(length) for length in args.characters.split(","))
    run(args.turns, args.savers.split(","), rich=args.rich, characters=(human, reply))


if __name__ == "__main__":
    main()
