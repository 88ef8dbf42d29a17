"""Labelled secrets in users' texts: which of their words can be read outside of the log.

    python -m benchmarks.sensitive_spans PATH [--limit N] [--json]

PATH holds a row a line, with an `utterance` and its `slot-labels`, one for each word (`O`: no
secret). Each row is a thread, said in one of these ways, and each label a sensitive parameter, its
type inferred from its name:

    asked       the graph has asked for the parameters, and the words are the answer
    at once     the words come with the request, before anything was asked
    unasked     the words come first and ask for nothing: hidden is only what a parameter's form
    gives away marked      the application knows the labelled words and marks the message itself
    (`mark_sensitive`)

A row leaks if a word of a labelled span, other than "is", "the" and their like, can be read in its
thread's title, its Markdown, the search index, the telemetry, or the package's log lines. Numbers
of up to three digits are looked for in the title and the index alone: elsewhere they stand in times
and counts. A row is hidden whole if nothing of the message is shown.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

from langmem_ext import (
    DeltaSaver,
    Event,
    IntentCatalog,
    ThreadChatMessageHistory,
    Threads,
    build_waiting_graph,
    converse,
    mark_sensitive,
)
from langmem_ext.messages.annotations import HIDDEN, is_marked, shown_text
from langmem_ext.messages.search.words import list_words
from langmem_ext.waiting.sensitive import COMMON

WAYS = ("asked", "at once", "unasked", "marked")
OPENING = "please keep my details"
"""What the request's pattern finds; it holds no value."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a user wrote, and the labelled parts of it, each with its label."""

    text: str
    spans: tuple[tuple[str, str], ...]

    @property
    def words(self) -> frozenset[str]:
        """The words of the labelled parts, as an index compares them."""
        return frozenset(word for _, span in self.spans for word in list_words(span).split())


def rows(path: Path, limit: int | None) -> list[Row]:
    """The rows of a file that have a label.

    Where labels and words differ in number, the whole text counts as labelled.
    """
    found = []
    for line in path.read_text(encoding="utf-8").splitlines()[:limit]:
        fields = json.loads(line)
        words, labels = fields["utterance"].split(), fields["slot-labels"].split()
        named = [label for label in labels if label != "O"]
        if not named:
            continue
        if len(words) != len(labels):
            spans = [(named[0], fields["utterance"])]
        else:
            parts = groupby(zip(labels, words, strict=True), key=lambda pair: pair[0])
            spans = [
                (label, " ".join(word for _, word in part)) for label, part in parts if label != "O"
            ]
        found.append(Row(fields["utterance"], tuple(spans)))
    return found


class _Kept(logging.Handler):
    """Takes events and log lines."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: Any) -> None:
        """Keep what is told: an event or a log record."""
        self.lines.append(
            json.dumps(record.as_dict())
            if isinstance(record, Event)
            else logging.Formatter().format(record)
        )


def graph_for(row: Row, saver: DeltaSaver, kept: _Kept) -> Any:
    """A graph that needs what the row's labels name."""
    names = list(dict.fromkeys(label for label, _ in row.spans))
    schema = {"type": "object", "properties": {name: {} for name in names}, "required": names}
    tool = StructuredTool.from_function(
        lambda **_: "done", name="keep_details", description="Keep details.", args_schema=schema
    )
    intent = {
        "id": "keep",
        "description": "Keep details",
        "patterns": ["keep my details"],
        "required": names,
        "tool": "keep_details",
    }
    params = {
        name: {"sensitive": True, "prompt": f"What is your {name.replace('_', ' ')}?"}
        for name in names
    }
    catalog = IntentCatalog.from_dict({"intents": [intent], "params": params})
    return build_waiting_graph(catalog, [tool], telemetry=[kept]).compile(checkpointer=saver)


def say(row: Row, way: str, thread: str, saver: DeltaSaver, kept: _Kept) -> None:
    """Have the row's words said in a thread of their own."""
    if way == "marked":
        values: dict[str, Any] = {}
        for label, span in row.spans:
            values.setdefault(label, []).append(span)
        ThreadChatMessageHistory(thread, saver).add_messages(
            [mark_sensitive(HumanMessage(row.text), values)]
        )
        return
    graph = graph_for(row, saver, kept)
    said = {"opened": OPENING} if way == "asked" else {}
    said |= {
        "said": f"{OPENING}: {row.text}" if way == "at once" else row.text,
        "cancelled": "cancel that",
    }
    for turn, text in said.items():
        converse(
            graph, text, thread_id=thread, message_id=turn
        )  # events tell it, and four digits of a random one may be those of a secret


def read(path: Path, threads: Threads) -> Iterator[tuple[str, set[str]]]:
    """The words that can be read of each thread, beside its log."""
    numbers = {}
    for info in threads.each():
        numbers[info.number] = info.id
        yield info.id, _words(info.title or "")
        yield info.id, _lasting("".join(threads.export_lines(info.id, format="markdown")))
    with closing(sqlite3.connect(path)) as beside:
        for key, words in beside.execute("SELECT rowid, words FROM search"):
            yield numbers[key >> 32], _words(words)


def measure(given: Sequence[Row], way: str) -> dict[str, int]:
    """How many rows leak, are hidden whole, or are shown in part."""
    kept, logger = _Kept(), logging.getLogger("langmem_ext")
    logger.addHandler(kept)
    logger.setLevel(logging.DEBUG)
    counts = Counter(rows=len(given))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.db"
        with closing(DeltaSaver.open(str(path), synchronous="normal")) as saver:
            threads = Threads(saver)
            threads.enable_search()
            told = {}
            for number, row in enumerate(given):
                say(row, way, str(number), saver, kept)
                told[str(number)], kept.lines = "\n".join(kept.lines), []
            shown: dict[str, set[str]] = {
                str(number): _lasting(text) for number, text in told.items()
            }
            for thread, words in read(path, threads):
                shown[thread] |= words
            for number, row in enumerate(given):
                counts["leak"] += bool(shown[str(number)] & (row.words - _own(row)))
                [said] = [
                    message for message in threads.messages(str(number)) if row.text in message.text
                ]
                rest = shown_text(vars(said)).removeprefix(f"{OPENING}: ")
                counts["hidden whole"] += not re.search(r"\w", rest.replace(HIDDEN, ""))
                counts["not marked"] += not is_marked(vars(said))
    logger.removeHandler(kept)
    counts["shown in part"] = counts["rows"] - counts["hidden whole"] - counts["not marked"]
    return {
        name: counts[name]
        for name in ("rows", "leak", "hidden whole", "shown in part", "not marked")
    }


def _words(text: str) -> set[str]:
    return set(list_words(text).split())


def _lasting(text: str) -> set[str]:
    """Its words without those that a time or a count may hold."""
    return {word for word in _words(text) if not (word.isdigit() and len(word) <= 3)}


def _own(row: Row) -> set[str]:
    """Words that the conversation holds whatever a user says: they tell nothing."""
    texts = [
        OPENING,
        "cancel that user assistant tool",
        "opened said cancelled",
        "You there is nothing to",
    ]
    texts += [label.replace("_", " ") for label, _ in row.spans]
    return {word for text in [*texts, *COMMON] for word in _words(text)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a file; 1 where a row leaks that was asked for, came with a request or was marked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    given = rows(chosen.path, chosen.limit)
    found = {way: measure(given, way) for way in WAYS}
    if chosen.json:
        print(json.dumps(found))
    else:
        for way, counts in found.items():
            print(f"{way:8}", ", ".join(f"{count} {name}" for name, count in counts.items()))
    return int(any(found[way]["leak"] for way in WAYS if way != "unasked"))


if __name__ == "__main__":
    sys.exit(main())
