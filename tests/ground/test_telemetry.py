"""Promise: telemetry holds names and counts, never values, and no sink breaks its caller."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from langmem_ext import (
    Event,
    IntentCatalog,
    InvalidInput,
    JsonFormatter,
    LoggingSink,
    MemoryFigures,
    MissingExtra,
    OpenTelemetrySink,
    Sink,
    StreamSink,
    build_waiting_graph,
    converse,
)

SECRET = "4111 1111"
GREETING = {"id": "greet", "examples": ["hello"], "reply": "Hello to you."}
WHEN = datetime(2026, 3, 1, 12, tzinfo=UTC)
EVENT = Event(
    "tool_called",
    {"tool": "pay", "status": "ok", "step": 0, "duration_ms": 250},
    MemoryFigures(3, ("card",), "pin"),
    "t1",
    "m1",
    WHEN,
)


def test_an_event_cannot_be_made_with_a_value_and_the_error_does_not_say_it() -> None:
    wrong: list[dict[str, Any]] = [
        *({"name": SECRET}, {"name": ["received"]}, {"name": "received", "thread_id": 4111}),
        {"name": "received", "payload": {SECRET: 1}},
        {"name": "received", "payload": {"param": "card"}},
        {"name": "respond", "payload": {"status": SECRET}},
        {"name": "received", "memory": {"card": SECRET}},
        *(
            {"name": "asked", "payload": payload}
            for payload in (
                *({"param": SECRET}, {"param": "41111111"}, {"param": {"card": SECRET}}),
                *({"param": "card", "attempt": SECRET}, {"param": "card", "attempt": True}),
            )
        ),
        *(
            {"name": "filled", "payload": payload}
            for payload in (
                *({"params": {"card": SECRET}}, {"params": (SECRET,)}),
                {"params": ("card",), "by": SECRET},
            )
        ),
    ]
    for given in wrong:
        with pytest.raises(InvalidInput) as refused:
            Event(**given)
        assert "4111" not in str(refused.value)
    figures: list[Any] = [(-1,), (1, ["card"]), (1, (SECRET,)), (1, (), SECRET), (True,)]
    for one in figures:
        with pytest.raises(InvalidInput) as refused:
            MemoryFigures(*one)
        assert "4111" not in str(refused.value)
    payload: dict[str, Any] = {"param": "card"}
    event = Event("asked", payload)
    payload["param"] = SECRET
    assert event.payload == {"param": "card"}, "it does not change with what it was made from"


def test_a_log_record_holds_the_event_and_a_line_of_json_all_of_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    LoggingSink().emit(EVENT)
    [record] = caplog.records
    assert (record.name, record.levelname, record.message) == (
        "langmem_ext.telemetry",
        "INFO",
        "tool_called",
    )
    line = json.loads(JsonFormatter().format(record))
    assert line == {
        "time": "2026-03-01T12:00:00.000+00:00",
        "level": "INFO",
        "logger": "langmem_ext.telemetry",
        "event": "tool_called",
        "thread_id": "t1",
        "turn_id": "m1",
        "memory": {"history_count": 3, "params_keys": ["card"], "waiting_for_param": "pin"},
        "tool": "pay",
        "status": "ok",
        "step": 0,
        "duration_ms": 250,
    }


def test_a_line_of_json_names_an_exception_by_its_class_alone() -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        record = logging.LogRecord(
            "app", logging.ERROR, "app.py", 1, "it %s", ("failed",), sys.exc_info()
        )
    line = JsonFormatter().format(record)
    assert SECRET not in line
    assert json.loads(line) | {"time": ""} == {
        "time": "",
        "level": "ERROR",
        "logger": "app",
        "message": "it failed",
        "error": "ValueError",
    }


ATTRIBUTES = {
    "langmem_ext.thread_id": "t1",
    "langmem_ext.turn_id": "m1",
    "langmem_ext.memory.history_count": 3,
    "langmem_ext.memory.params_keys": ("card",),
    "langmem_ext.memory.waiting_for_param": "pin",
    "langmem_ext.tool": "pay",
    "langmem_ext.status": "ok",
    "langmem_ext.step": 0,
    "langmem_ext.duration_ms": 250,
}


def test_an_event_stands_on_the_span_that_runs_or_is_one() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    sink = OpenTelemetrySink(provider)
    sink.emit(EVENT)
    with provider.get_tracer("app").start_as_current_span("turn"):
        sink.emit(EVENT)
    own, turn = exporter.get_finished_spans()
    assert (own.name, dict(own.attributes or {})) == ("langmem_ext.tool_called", ATTRIBUTES)
    assert (own.end_time or 0) - (own.start_time or 0) == 250_000_000
    [event] = turn.events
    assert (event.name, dict(event.attributes or {}), event.timestamp) == (
        "langmem_ext.tool_called",
        ATTRIBUTES,
        own.end_time,
    )


def test_without_opentelemetry_the_sink_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtra, match=r"langmem-ext\[telemetry\]"):
        OpenTelemetrySink()


class Failing:
    """A sink that fails, and knows what it was told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)
        raise RuntimeError(SECRET)


def test_a_sink_that_fails_is_named_once_and_the_others_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    failing, catalog = Failing(), IntentCatalog.from_dict({"intents": [GREETING]})
    builder = build_waiting_graph(catalog, [], telemetry=[failing, LoggingSink(), StreamSink()])
    graph = builder.compile(InMemorySaver())
    for number in range(2):
        converse(graph, "hello", thread_id=f"t{number}")
    told = [record.message for record in caplog.records if record.name.endswith("telemetry")]
    assert [event.name for event in failing.events] == [one for one in told if "failed" not in one]
    assert told.count("received") == 2
    assert [
        record.getMessage() for record in caplog.records if "failed" in record.getMessage()
    ] == ["telemetry sink Failing failed with RuntimeError; this is logged once"]
    assert SECRET not in caplog.text
    wrong: list[Any] = [None, "log", LoggingSink, object()]
    for sink in wrong:
        with pytest.raises(InvalidInput, match="telemetry must be a list of sinks"):
            build_waiting_graph(catalog, [], telemetry=[sink])
    StreamSink().emit(EVENT)  # outside of a graph nothing is streamed
    assert all(isinstance(one, Sink) for one in (LoggingSink(), StreamSink(), OpenTelemetrySink()))
