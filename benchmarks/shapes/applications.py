"""What applications do besides answering: fan out, nest, fork, prune, hold files."""

from __future__ import annotations

import operator
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated, Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    RemoveMessage,
)
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send

from benchmarks.contenders import CONTENDERS, Opened
from benchmarks.graph import Talk, conversation, thread
from benchmarks.lanes import Figures, Step, Work
from benchmarks.shape import Aim, Shape
from benchmarks.text import SHORT, dialogue, humans, raw_bytes, replies, texts


def fan_out(contender: str, folder: Path, *, turns: int, width: int) -> Work:
    """Every turn sends its task to many workers at once, and each answers with a message."""
    with CONTENDERS[contender](folder) as opened:
        said = list(islice(texts(SHORT[1], seed=2), turns * width))

        def spread(state: MessagesState) -> list[Send]:
            first = len(state["messages"]) // (width + 1) * width
            return [Send("work", {"number": first + number}) for number in range(width)]

        def work(task: Any) -> dict[str, Any]:
            return {"messages": [AIMessage(said[task["number"]])]}

        builder: Any = StateGraph(MessagesState)
        builder.add_node("work", work).add_conditional_edges(START, spread, ["work"])
        talk = Talk(opened, builder.compile(checkpointer=opened.saver))
        for message in islice(humans(SHORT), turns):
            yield Step("turn", partial(talk.say, message))
        return sizes(opened, talk)


def subgraphs(contender: str, folder: Path, *, turns: int) -> Work:
    """Two nodes of the graph are graphs themselves; each of these says something."""
    with CONTENDERS[contender](folder) as opened:
        said = replies(SHORT, rich=False)

        def answer(state: Any) -> dict[str, Any]:
            return {"messages": [next(said)]}

        inner: Any = (
            StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer").compile()
        )
        builder: Any = StateGraph(MessagesState).add_node("first", inner).add_node("second", inner)
        builder.add_edge(START, "first").add_edge("first", "second")
        talk = Talk(opened, builder.compile(checkpointer=opened.saver))
        for message in islice(humans(SHORT), turns):
            yield Step("turn", partial(talk.say, message))
        return sizes(opened, talk)


def forks(contender: str, folder: Path, *, messages: int, turns: int, count: int) -> Work:
    """A long thread goes on from earlier checkpoints, again and again."""
    with CONTENDERS[contender](folder) as opened:
        graph = conversation(opened, replies(SHORT, rich=False))
        said = humans(SHORT)
        talk = Talk(opened, graph, begin=dialogue(messages - 2 * turns))
        starts = []
        for message in islice(said, turns):
            talk.say(message)
            starts.append(graph.get_state(talk.config).config)
        before = opened.bytes()
        for start, message in zip(islice(cycle(starts), count), said, strict=False):
            yield Step("fork", partial(graph.invoke, {"messages": [message]}, start))
        return {
            "bytes": opened.bytes() - before,
            "bytes_per_fork": (opened.bytes() - before) / count,
        }


class SummaryState(MessagesState):
    """A conversation whose beginning is kept as a summary."""

    summary: str


def summarise(contender: str, folder: Path, *, turns: int, limit: int) -> Work:
    """When the messages are many, a summary takes the place of all but the last few."""
    with CONTENDERS[contender](folder) as opened:
        said, summaries = replies(SHORT, rich=False), texts(600, seed=3)

        def answer(state: SummaryState) -> dict[str, Any]:
            return {"messages": [next(said)]}

        def forget(state: SummaryState) -> dict[str, Any]:
            return {
                "summary": next(summaries),
                "messages": [RemoveMessage(str(message.id)) for message in state["messages"][:-4]],
            }

        def route(state: SummaryState) -> str:
            return "forget" if len(state["messages"]) > limit else END

        builder: Any = (
            StateGraph(SummaryState)
            .add_node("answer", answer)
            .add_node("forget", forget)
            .add_edge(START, "answer")
        )
        graph = builder.add_conditional_edges("answer", route, ["forget", END]).compile(
            checkpointer=opened.saver
        )
        for message in islice(humans(SHORT), turns):
            yield Step("turn", partial(graph.invoke, {"messages": [message]}, thread()))
        return {"bytes": opened.bytes()}


class FilesState(MessagesState):
    """A conversation that carries files."""

    files: dict[str, str]


def files(contender: str, folder: Path, *, turns: int, count: int, characters: int) -> Work:
    """The state carries files that nobody changes."""
    with CONTENDERS[contender](folder) as opened:
        said = replies(SHORT, rich=False)

        def answer(state: FilesState) -> dict[str, Any]:
            return {"messages": [next(said)]}

        builder: Any = StateGraph(FilesState).add_node("answer", answer).add_edge(START, "answer")
        graph = builder.compile(checkpointer=opened.saver)
        held = {
            f"docs/{number}.md": text
            for number, text in zip(range(count), texts(characters, seed=4), strict=False)
        }
        graph.update_state(thread(), {"files": held}, as_node="answer")
        for message in islice(humans(SHORT), turns):
            yield Step("turn", partial(graph.invoke, {"messages": [message]}, thread()))
        return {"bytes": opened.bytes()}


class TableState(MessagesState):
    """A conversation that fills a table."""

    table: Annotated[dict[str, str], operator.or_]


def table(contender: str, folder: Path, *, turns: int, keys: int, characters: int) -> Work:
    """The state holds a large dict; every turn changes one key of it."""
    with CONTENDERS[contender](folder) as opened:
        said, entries = replies(SHORT, rich=False), texts(characters, seed=4)
        names = cycle([f"row-{number * 7 % keys}" for number in range(keys)])

        def answer(state: TableState) -> dict[str, Any]:
            return {"messages": [next(said)], "table": {next(names): next(entries)}}

        builder: Any = StateGraph(TableState).add_node("answer", answer).add_edge(START, "answer")
        graph = builder.compile(checkpointer=opened.saver)
        graph.update_state(
            thread(),
            {"table": {f"row-{number}": next(entries) for number in range(keys)}},
            as_node="answer",
        )
        for message in islice(humans(SHORT), turns):
            yield Step("turn", partial(graph.invoke, {"messages": [message]}, thread()))
        return {"bytes": opened.bytes()}


def sizes(opened: Opened, talk: Talk) -> Figures:
    """Bytes, and by what the messages take."""
    said: list[AnyMessage] = talk.messages()
    raw = sum(raw_bytes(said))
    return (
        {"bytes": opened.bytes(), "raw": raw, "by_raw": opened.bytes() / raw}
        if opened.size
        else {"raw": raw}
    )


def _faster(what: str, times: float, metric: str = "turn_cpu_ms") -> tuple[Aim, ...]:
    return (
        Aim(f"CPU, {what}", metric, "sqlite", at_least=times),
        Aim(f"bytes, {what}", "bytes", "sqlite"),
    )


_BOTH = ("memory", "sqlite", "delta")

SHAPES = (
    Shape(
        "fan-out",
        "40 turns that fan out to 20 workers",
        fan_out,
        _BOTH,
        {"turns": 40, "width": 20},
        {"turns": 2, "width": 3},
        _faster("fan-out of 20", 1.7),
    ),
    Shape(
        "subgraphs",
        "100 turns through two subgraphs",
        subgraphs,
        _BOTH,
        {"turns": 100},
        {"turns": 2},
        _faster("two subgraphs", 1.7),
    ),
    Shape(
        "forks",
        "100 forks of a thread of 400 messages",
        forks,
        _BOTH,
        {"messages": 400, "turns": 20, "count": 100},
        {"messages": 8, "turns": 2, "count": 3},
        _faster("forks at 400 messages", 2, "fork_cpu_ms"),
    ),
    Shape(
        "summarise",
        "300 turns; above 40 messages all but four give way to a summary",
        summarise,
        _BOTH,
        {"turns": 300, "limit": 40},
        {"turns": 5, "limit": 6},
        _faster("summarise and drop", 1.1),
    ),
    Shape(
        "files",
        "50 turns of a state that carries 1 MB of files",
        files,
        _BOTH,
        {"turns": 50, "count": 16, "characters": 65_536},
        {"turns": 2, "count": 2, "characters": 100},
        _faster("1 MB constant channel", 8),
    ),
    Shape(
        "table",
        "50 turns that each change one key of a dict of 1 MB",
        table,
        _BOTH,
        {"turns": 50, "keys": 1000, "characters": 1000},
        {"turns": 2, "keys": 10, "characters": 20},
        _faster("1 MB dict, one key per step", 6),
    ),
)
