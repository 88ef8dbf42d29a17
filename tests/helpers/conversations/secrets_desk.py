"""A desk whose parameters are all secrets, and all ways by which one could leak."""

from __future__ import annotations

import json
import logging
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict
from typing import Any

from click.testing import CliRunner
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, ToolException, tool
from langgraph.graph import START, MessagesState, StateGraph
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prune_reference import rows
from typer.main import get_command

from langmem_ext import (
    DeltaSaver,
    Event,
    IntentCatalog,
    JsonFormatter,
    LoggingSink,
    OpenTelemetrySink,
    StreamSink,
    Threads,
    build_waiting_graph,
    stats,
)
from langmem_ext.cli.app import app
from langmem_ext.cli.commands.threads.line import line_of
from langmem_ext.messages.search.spans import squeezed
from langmem_ext.storage.postgres.vacuum import SEARCHED

TYPES = (
    *("identifier", "email", "phone", "person", "name", "address", "place", "text"),
    *("integer", "number", "money", "date", "time"),
)
PATTERNS = {"identifier": r"\d{16}"}


def catalog_for(types: Sequence[str] = TYPES) -> IntentCatalog:
    """An intent for each type, with one sensitive parameter of that type, and one that is none."""
    intents = [
        {
            "id": f"keep_{kind}",
            "description": f"Keep the {kind}",
            "patterns": [rf"\bkeep my {kind}\b"],
            "required": [f"secret_{kind}", "ticket"],
            "tool": f"keep_{kind}",
            "reply": f"Kept {{secret_{kind}}}: {{result}}",
        }
        for kind in types
    ]
    secrets = {
        f"secret_{kind}": {
            "type": kind,
            "description": f"secret {kind}",
            "prompt": f"What is your {kind}?",
            "sensitive": True,
            "on_exhausted": "cancel",
            **({"pattern": PATTERNS[kind]} if kind in PATTERNS else {}),
        }
        for kind in types
    }
    ticket = {"type": "identifier", "description": "ticket number", "pattern": r"T-\d{3}"}
    params = {"ticket": {**ticket, "prompt": "Which ticket?"}, **secrets}
    replies = {"failed": "Something went wrong.", "unknown": "I can keep things."}
    return IntentCatalog.from_dict({"intents": intents, "params": params, "replies": replies})


def own_desk(saver: DeltaSaver) -> Any:
    """The graph of a `Desk`, without its sinks."""
    tools = [_tool(kind, []) for kind in TYPES]
    return build_waiting_graph(catalog_for(), tools).compile(checkpointer=saver)


def open_desk(saver: DeltaSaver) -> Any:
    """The same desk as another application has it: to its catalog no parameter is a secret."""
    data = catalog_for().model_dump(mode="json")
    for intent in data["intents"]:
        intent["id"] = f"tell_{intent['id']}"
    for param in data["params"].values():
        param["sensitive"] = False
    tools = [_tool(kind, []) for kind in TYPES]
    builder = build_waiting_graph(IntentCatalog.from_dict(data), tools, summarize_above=4)
    return builder.compile(checkpointer=saver)


def _heard(state: MessagesState) -> dict[str, Any]:
    return {"messages": [AIMessage("heard")]}


def foreign_desk(saver: DeltaSaver) -> Any:
    """A graph that is no waiting graph."""
    builder = StateGraph(MessagesState).add_node("hear", _heard).add_edge(START, "hear")
    return builder.compile(checkpointer=saver)


CHATS: dict[str, list[str]] = {
    "its own graph": ["--graph", "secrets_desk:own_desk"],
    "the order desk": [],
    "another desk": ["--graph", "secrets_desk:open_desk"],
    "a foreign graph": ["--graph", "secrets_desk:foreign_desk"],
}
"""Graphs that a chat may be opened with."""

LOOKING = ["/params", "/state", "/history", "/files", "/sessions", "/title", "/export"]
"""What can be typed in a chat to see something."""


def _tool(kind: str, failures: list[str]) -> BaseTool:
    @tool(f"keep_{kind}")
    def keep(**values: Any) -> str:
        """Keep something."""
        value = values[f"secret_{kind}"]
        how = failures[0] if failures else ""
        if how == "told":
            raise ToolException(f"{value} is blocked")
        if how == "broken":
            raise RuntimeError(f"no room for {value}")
        return f"stored {value} for {values['ticket']}"

    kinds = {"integer": "integer", "number": "number", "money": "number"}
    secret = {"type": kinds.get(kind, "string")}
    fields = {f"secret_{kind}": secret, "ticket": {"type": "string"}}
    keep.args_schema = {"type": "object", "properties": fields, "required": [*fields]}
    return keep


class _Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines += [
            JsonFormatter().format(record),
            logging.Formatter().format(record),
            repr(vars(record)),
        ]


class Kept:
    """A sink that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)


class Desk:
    """A graph with every sink on, on a database that can be searched."""

    def __init__(self, url: str, types: Sequence[str] = TYPES) -> None:
        self.url, self.failures, self.kept = url, list[str](), Kept()
        self.exporter, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.records = _Records()
        self.saver = DeltaSaver.open(url, synchronous="normal")
        self.threads = Threads(self.saver, ttl=10**6)
        self.threads.enable_search()
        sinks = [self.kept, LoggingSink(), StreamSink(), OpenTelemetrySink(provider)]
        tools = [_tool(kind, self.failures) for kind in types]
        builder = build_waiting_graph(catalog_for(types), tools, telemetry=sinks, summarize_above=4)
        self.graph: Any = builder.compile(checkpointer=self.saver)
        self._root = logging.getLogger()
        self._level = self._root.level

    def __enter__(self) -> Desk:
        self._root.addHandler(self.records)
        self._root.setLevel(logging.DEBUG)
        return self

    def __exit__(self, *_: object) -> None:
        self._root.removeHandler(self.records)
        self._root.setLevel(self._level)
        self.saver.close()

    def declare_nothing(self, thread: str) -> None:
        """Leave the thread as a graph leaves it that declares no parameter."""
        config = {"configurable": {"thread_id": thread}}
        self.graph.update_state(config, {"sensitive_params": {}}, as_node="summarize")

    def held(self) -> str:
        """All that the log holds."""
        return "\n".join(
            repr(message)
            for info in self.threads.each()
            for message in self.threads.messages(info.id)
        )

    def doors(self, *words: str) -> Iterator[tuple[str, str]]:
        """What can be read beside the log, and where."""
        yield "logs", "\n".join(self.records.lines)
        events = [json.dumps(event.as_dict()) + repr(event) for event in self.kept.events]
        yield "events", "\n".join(events)
        yield "spans", "\n".join(span.to_json() for span in self.exporter.get_finished_spans())
        for info in self.threads.each():
            yield "list", repr(asdict(info))
            state = self.graph.get_state({"configurable": {"thread_id": info.id}})
            yield "summary", repr(state.values.get("summary"))
            yield "checkpoint metadata", repr(state.metadata)
            messages = state.values.get("messages", ())
            yield "history", "\n".join(line_of(message).text for message in messages)
            yield "markdown", "".join(self.threads.export_lines(info.id, format="markdown"))
        for word in ("kept", "keep", "my"):
            hits = self.threads.search(word)
            found = [hit.snippet if word not in words else hit.thread_id for hit in hits]
            yield "search", "\n".join(found)
        for word in words:
            assert not list(self.threads.search(word)), "a search for a secret finds it"
        yield "stats", repr(stats(self.saver)) + repr(self.threads.stats())
        yield from self._tables()

    def _tables(self) -> Iterator[tuple[str, str]]:
        if "://" in self.url:
            for table in (*SEARCHED, "thread", "setting"):
                found = rows(self.saver, f"SELECT CAST({table} AS text) FROM {table}")
                yield table, "\n".join(text for (text,) in found)
            return
        with closing(sqlite3.connect(f"file:{self.url}?mode=ro", uri=True)) as beside:
            index = "fts5vocab(main, search, instance)"
            beside.execute(f"CREATE VIRTUAL TABLE temp.words USING {index}")
            terms = beside.execute("SELECT term FROM temp.words ORDER BY doc, offset")
            yield "index words", " ".join(term for (term,) in terms)
            for table in ("search_content", "search_data", "thread", "setting"):
                cells = [cell for row in beside.execute(f"SELECT * FROM {table}") for cell in row]
                texts = (
                    cell.decode("latin-1") if isinstance(cell, bytes) else str(cell)
                    for cell in cells
                )
                yield table, "\n".join(texts)
            yield "metadata", repr(beside.execute("SELECT metadata FROM thread").fetchall())

    def commands(self, thread: str) -> Iterator[tuple[str, str]]:
        """What the commands print."""
        for line in (f"show {thread}", f"history {thread}", "search kept", "list"):
            for form in ([], ["--json"]):
                words = [*line.split(), *form]
                yield f"threads {line} {form}", printed("threads", *words, "--db", self.url)
        for line in (f"export {thread} --format markdown", "stats"):
            yield f"threads {line}", printed("threads", *line.split(), "--db", self.url)
        yield "doctor", printed("doctor", self.url)

    def chats(self, thread: str) -> Iterator[tuple[str, str]]:
        """What a chat shows of the thread, whichever graph opens it; nothing is said in it."""
        chat = ("chat", "--thread", thread, "--db", self.url)
        for name, graph in CHATS.items():
            yield f"chat with {name}", printed(*chat, *graph, lines=LOOKING)
        yield "chat --json", printed(*chat, "--json", lines=LOOKING)


COMMANDS = get_command(app)
"""Made once: Typer makes all of them anew for each call."""


def printed(*words: str, lines: Sequence[str] = ()) -> str:
    """All that a command prints."""
    done = CliRunner().invoke(COMMANDS, list(words), input="".join(f"{line}\n" for line in lines))
    assert done.exit_code == 0, done.output
    return done.output


def leaks(secret: str, text: str) -> bool:
    """Whether a text holds the secret, as said or, if it is long enough, without separators."""
    if re.search(rf"(?<![\w:.-]){re.escape(secret)}(?![\w:-])", text, re.IGNORECASE):
        return True
    word = squeezed(secret)
    return len(word) >= 7 and word in re.sub(r"[\W_]+", "", text.casefold())
