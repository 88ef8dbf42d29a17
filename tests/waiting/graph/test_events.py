"""Promise: a turn reports each event to its sinks once, in names and counts.

It costs nothing where there is no sink.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import desk
import pytest
from langchain_core.messages import HumanMessage
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from langmem_ext import (
    DeltaSaver,
    Event,
    IntentCatalog,
    InvalidInput,
    OpenTelemetrySink,
    StreamSink,
    Threads,
    aconverse,
    build_waiting_graph,
    converse,
)

CARD = "4111111111111111"


class Kept:
    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def take(self) -> list[tuple[str, dict[str, Any]]]:
        taken = [
            (
                event.name,
                (
                    dict(event.payload) | {"duration_ms": 0}
                    if event.name == "tool_called"
                    else dict(event.payload)
                ),
            )
            for event in self.events
        ]
        self.events.clear()
        return taken


class Broken:
    def emit(self, event: Event) -> None:
        raise OSError(CARD)


def graph_on(saver: Any, tmp_path: Path, *sinks: Any, above: int = 40) -> Any:
    tools = desk.make_tools(desk.Shop(tmp_path / "shop.db"))
    return build_waiting_graph(
        IntentCatalog.from_dict(desk.CATALOG), tools, telemetry=sinks, summarize_above=above
    ).compile(checkpointer=saver)


@pytest.fixture
def saver(tmp_path: Path) -> Any:
    with closing(DeltaSaver.open(str(tmp_path / "memory.db"), synchronous="normal")) as saver:
        yield saver


def say(graph: Any, text: str, how: str, **more: Any) -> Any:
    if how == "sync":
        return converse(graph, text, thread_id="t", **more)
    return asyncio.run(aconverse(graph, text, thread_id="t", **more))


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_conversation_tells_each_thing_once(how: str, saver: Any, tmp_path: Path) -> None:
    kept = Kept()
    graph = graph_on(saver, tmp_path, kept, Broken())
    say(graph, "save my card", how, message_id="m1")
    assert all((event.thread_id, event.turn_id) == ("t", "m1") for event in kept.events)
    assert kept.events[-1].as_dict()["memory"] == {
        "history_count": 2,
        "params_keys": [],
        "waiting_for_param": "card",
    }
    classified = ("classified", {"intent": "store_card", "source": "rules"})
    assert kept.take() == [("received", {}), classified, ("asked", {"param": "card", "attempt": 1})]
    say(graph, "save my card", how, message_id="m1")
    assert kept.take() == [], "a message that had arrived was told of again"
    say(graph, "banana", how)
    assert [name for name, _ in kept.take()] == ["received", "classified", "asked"]
    say(graph, CARD, how, message_id="m3")
    figures = [event.as_dict()["memory"] for event in kept.events]
    assert [one["history_count"] for one in figures] == [5, 5, 5, 7, 8]
    assert [one["waiting_for_param"] for one in figures] == ["card", None, None, None, None]
    assert figures[-1]["params_keys"] == ["card"]
    assert kept.take() == [
        ("received", {}),
        classified,
        ("filled", {"params": ("card",), "by": "user"}),
        ("tool_called", {"tool": "store_card", "status": "ok", "step": 0, "duration_ms": 0}),
        ("respond", {"intent": "store_card", "status": "ok"}),
    ]
    say(graph, "what a day", how)
    assert [name for name, _ in kept.take()] == ["received", "classified", "respond"]
    say(graph, "where is my order O-500?", how)
    assert kept.take()[-2:] == [
        ("tool_called", {"tool": "check_order", "status": "error", "step": 0, "duration_ms": 0}),
        ("respond", {"intent": "check_order", "status": "error"}),
    ]
    say(graph, "where is my order O-1?", how)
    assert ("filled", {"params": ("carrier",), "by": "tool"}) in kept.take()


def test_a_summary_says_how_many_messages_it_covers(saver: Any, tmp_path: Path) -> None:
    kept = Kept()
    graph = graph_on(saver, tmp_path, kept, above=4)
    for number in range(4):
        converse(graph, f"what a day {number}", thread_id="t")
    [told] = [payload for name, payload in kept.take() if name == "summarised"]
    assert told == {"messages": 4}


def test_names_that_nobody_declared_are_not_told(saver: Any, tmp_path: Path) -> None:
    kept = Kept()
    graph = graph_on(saver, tmp_path, kept)
    converse(graph, "save my card", thread_id="t")
    graph.update_state(
        {"configurable": {"thread_id": "t"}}, {"params": {CARD: 1, "amount": 5}}, as_node="classify"
    )
    kept.take()
    converse(graph, "hello", thread_id="t")
    assert kept.events[0].as_dict()["memory"]["params_keys"] == ["amount", "other"]
    assert CARD not in repr(kept.events)


@pytest.mark.parametrize("how", ["sync", "async"])
def test_a_stream_shows_the_events_while_the_turn_runs(
    how: str, saver: Any, tmp_path: Path
) -> None:
    graph = graph_on(saver, tmp_path, StreamSink())
    given, config = (
        {"messages": [HumanMessage("where is my order O-1?")]},
        {"configurable": {"thread_id": "t"}},
    )
    if how == "sync":
        streamed = list(graph.stream(given, config, stream_mode="custom"))
    else:

        async def read() -> list[Any]:
            return [chunk async for chunk in graph.astream(given, config, stream_mode="custom")]

        streamed = asyncio.run(read())
    events = [chunk["langmem_ext"]["event"] for chunk in streamed]
    assert events == ["received", "classified", "filled", "tool_called", "filled", "respond"]


@pytest.mark.parametrize("how", ["sync", "async"])
def test_the_events_stand_on_the_span_of_the_turn(how: str, saver: Any, tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    graph = graph_on(saver, tmp_path, OpenTelemetrySink(provider))
    with provider.get_tracer("app").start_as_current_span("turn"):
        say(graph, "save my card", how)
    say(graph, CARD, how)
    turn, *own = exporter.get_finished_spans()
    assert [event.name for event in turn.events] == [
        "langmem_ext.received",
        "langmem_ext.classified",
        "langmem_ext.asked",
    ]
    assert [span.name.removeprefix("langmem_ext.") for span in own] == [
        "received",
        "classified",
        "filled",
        "tool_called",
        "respond",
    ]
    assert CARD not in "".join(span.to_json() for span in exporter.get_finished_spans())


def test_a_sweep_says_how_many_threads_have_expired(saver: Any, tmp_path: Path) -> None:
    graph, kept = graph_on(saver, tmp_path), Kept()
    for thread in ("a", "b"):
        converse(graph, "what a day", thread_id=thread)
    threads, later = (
        Threads(saver, ttl=60, telemetry=[kept]),
        datetime.now(UTC) + timedelta(hours=1),
    )
    threads.sweep(now=later, dry_run=True)
    assert kept.events == []
    threads.sweep(now=later)
    threads.sweep(now=later)
    assert kept.take() == [("expired", {"threads": 2})]


def test_what_is_no_sink_is_refused(saver: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="list of sinks"):
        graph_on(saver, tmp_path, print)
    with pytest.raises(InvalidInput, match="list of sinks"):
        Threads(saver, telemetry=[print])  # type: ignore[list-item]
