"""Replays an asks file as conversations: the graph asks, and another process takes the answer.

    python -m benchmarks.replay_asks PATH [--limit N] [--json]

Each row gets a catalog of its own: one intent that needs what the row's question asks for, the
types inferred from names, descriptions and possible values alone, the row's wording as the prompt.
All rows share one database file, a thread each. First every thread runs to its question; then, in
other processes, every thread is opened anew and `converse` delivers the user's words. At the end
one more saver reads the threads. A row is lost if its question did not wait when its thread was
opened again, or if a message is missing from the thread.

What stands in a thread's `params` is judged as `asks.py` judges an extraction: right if the value,
or the words it was read from, are a form of the row's. A thread keeps only the value, and a date
counts from today: where the extractor reads the thread's value in the message today, the words, and
what they say on the day the rows are from, are those that are judged.

By default a commit is not forced to the disk, which survives a killed process but no power cut:
what is replayed here is a process's end. `--synchronous full`, the package's own default, measures
the disk as well.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from pydantic import JsonValue

from benchmarks.asks import NOW, Row, Verdict, judge, params_of, rows
from langmem_ext import DeltaSaver
from langmem_ext.storage.sqlite.driver import Synchronous
from langmem_ext.waiting.catalog.catalog import IntentCatalog
from langmem_ext.waiting.catalog.param import Extraction
from langmem_ext.waiting.converse import converse
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.graph.graph import build_waiting_graph

OPENING = "I have a request."
"""What each user says first; it holds no value."""

PRELOADED = (
    "asks",
    "langmem_ext.checkpointer.saver",
    "langmem_ext.waiting.converse",
    "langmem_ext.waiting.graph.graph",
)
"""Imported once, before the processes part; no database is open then."""


@dataclass(frozen=True, slots=True)
class Database:
    """Where the threads are stored, and how.

    Attributes:
        path: The file.
        synchronous: `full` or `normal`, as `DeltaSaver.open` takes it.
    """

    path: Path
    synchronous: Synchronous

    def open(self) -> DeltaSaver:
        """A new saver."""
        return DeltaSaver.open(str(self.path), synchronous=self.synchronous)

    @property
    def bytes(self) -> int:
        """The size of the file and of those that belong to it."""
        return sum(path.stat().st_size for path in self.path.parent.glob(f"{self.path.name}*"))


@dataclass(frozen=True, slots=True)
class Visit:
    """One message delivered to one thread, by a saver that was opened for it.

    Attributes:
        ms: Milliseconds that `converse` took.
        waited: The parameter whose question waited when the thread was opened.
        today: What the extractor reads in the message today.
        then: What it reads there on the day the rows are from.
        error: What went wrong; empty if nothing did.
        cpu_ms: CPU milliseconds of all that the visit took: opening, making the row's graph, the
            turn, closing, reading.
    """

    ms: float = 0.0
    waited: str | None = None
    today: Extraction | None = None
    then: Extraction | None = None
    error: str = ""
    cpu_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Replayed:
    """A row with what became of it.

    Attributes:
        row: The row.
        kind: The type of the parameter that was asked for.
        lost: Whether the conversation lost something.
        verdict: How the value in the thread compares with the row's.
        ms: Milliseconds of its two turns.
        cpu_ms: CPU milliseconds of all that the row took.
        raw: Bytes of its messages, each serialised once.
        errors: What went wrong.
    """

    row: Row
    kind: str
    lost: bool
    verdict: Verdict
    ms: tuple[float, float]
    cpu_ms: float
    raw: int
    errors: tuple[str, ...]


# -- one conversation ------------------------------------------------------------------------------


def catalog_of(row: Row) -> IntentCatalog:
    """A catalog whose only request needs what the row's question asks for, its own slot first."""
    params = params_of(row)
    declared = {
        param.name: param.model_dump(mode="json", exclude={"name"}, exclude_defaults=True)
        for param in params
    }
    declared[row.slot.name]["prompt"] = row.prompt
    request = {
        "id": "request",
        "description": "a request",
        "patterns": ["^I have a request"],
        "reply": "Thank you, I have noted that.",
    }
    return IntentCatalog.from_dict(
        {"intents": [{**request, "required": [param.name for param in params]}], "params": declared}
    )


def thread_of(row: Row) -> str:
    """The row's thread."""
    return f"row-{row.number}"


def visit(database: Database, text: str, row: Row) -> Visit:
    """Open the database, deliver `text` to the row's thread, and close it."""
    with database.open() as saver:
        graph = build_waiting_graph(catalog_of(row), []).compile(checkpointer=saver)
        waiting = graph.get_state({"configurable": {"thread_id": thread_of(row)}}).interrupts
        start = time.perf_counter()
        converse(graph, text, thread_id=thread_of(row))
        ms = (time.perf_counter() - start) * 1000
    return Visit(ms, waiting[0].value["param"] if waiting else None)


def ask(database: Database, row: Row) -> Visit:
    """Run the row's thread to its question."""
    return visit(database, OPENING, row)


def answer(database: Database, row: Row) -> Visit:
    """Give the row's answer."""
    visited = visit(database, row.utterance, row)
    param, *others = params_of(row)
    today = Reply(row.utterance, prompt=row.prompt, others=others, now=datetime.now())
    return replace(
        visited, today=extract(param, today), then=extract(param, replace(today, now=NOW))
    )


def judged(
    database: Database, chosen: Sequence[Row], asked: Sequence[Visit], answered: Sequence[Visit]
) -> list[Replayed]:
    """Read every thread with one more saver, and compare it with its row."""
    serde = JsonPlusSerializer()
    replayed = []
    with database.open() as saver:
        for row, first, second in zip(chosen, asked, answered, strict=True):
            found = saver.get_tuple({"configurable": {"thread_id": thread_of(row)}})
            values: dict[str, Any] = found.checkpoint["channel_values"] if found else {}
            messages: list[BaseMessage] = values.get("messages", [])
            said = [
                message.text.strip() for message in messages if isinstance(message, HumanMessage)
            ]
            kept = (
                said == [OPENING, row.utterance.strip()]
                and len(messages) > 2
                and messages[1].text == row.prompt
            )
            replayed.append(
                Replayed(
                    row=row,
                    kind=params_of(row)[0].type,
                    lost=not (kept and second.waited == row.slot.name),
                    verdict=judge(row, stored(values.get("params", {}).get(row.slot.name), second)),
                    ms=(first.ms, second.ms),
                    cpu_ms=first.cpu_ms + second.cpu_ms,
                    raw=sum(len(serde.dumps_typed(message)[1]) for message in messages),
                    errors=tuple(error for error in (first.error, second.error) if error),
                )
            )
    return replayed


def stored(value: JsonValue, visited: Visit) -> Extraction:
    """What stands in a thread after a visit, as an extraction on the day the rows are from."""
    if value is None:
        return Extraction("abstained")
    if visited.today is not None and visited.then is not None and visited.today.value == value:
        return visited.then
    return Extraction("filled", value)


# -- processes -------------------------------------------------------------------------------------


def in_processes(
    work: Callable[[Row], Visit], chosen: Sequence[Row], *, every: int, jobs: int
) -> list[Visit]:
    """Run `work` on each row, `every` rows a process, `jobs` processes at a time.

    The rows of a process that dies have a visit that says so.
    """
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    context.set_forkserver_preload(list(PRELOADED))
    parts = [chosen[start : start + every] for start in range(0, len(chosen), every)]
    done: dict[int, list[Visit]] = {}
    running: dict[Connection, tuple[int, Any]] = {}
    left = list(enumerate(parts))
    while left or running:
        while left and len(running) < jobs:
            number, part = left.pop(0)
            receiving, sending = context.Pipe(duplex=False)
            process = context.Process(target=_work_on, args=(work, part, sending))
            process.start()
            sending.close()
            running[receiving] = (number, process)
        for connection in wait(list(running)):
            assert isinstance(connection, Connection)
            number, process = running.pop(connection)
            try:
                done[number] = connection.recv()
            except EOFError:
                done[number] = [Visit(error="the process died")] * len(parts[number])
            connection.close()
            process.join()
            print(
                f"{work_name(work)} {sum(map(len, done.values()))} of {len(chosen)}",
                file=sys.stderr,
                flush=True,
            )
    return [visited for number in range(len(parts)) for visited in done[number]]


def work_name(work: Callable[[Row], Visit]) -> str:
    return str(getattr(work, "func", work).__name__)


def _work_on(work: Callable[[Row], Visit], part: Sequence[Row], sending: Connection) -> None:
    sending.send([_guarded(work, row) for row in part])
    sending.close()


def _guarded(work: Callable[[Row], Visit], row: Row) -> Visit:
    """One row's failure is that row's; the others go on."""
    start = time.process_time()
    try:
        visited = work(row)
        return replace(visited, cpu_ms=(time.process_time() - start) * 1000)
    except Exception as error:
        return Visit(error=f"{type(error).__name__}: {error}")


def replay(chosen: Sequence[Row], database: Database, *, every: int, jobs: int) -> list[Replayed]:
    """Ask for all rows, then answer all rows, each in processes of their own.

    One more saver stays open meanwhile, as another server's would: SQLite else moves its journal
    into the database at every last close.
    """
    with database.open():
        asked = in_processes(partial(ask, database), chosen, every=every, jobs=jobs)
        answered = in_processes(partial(answer, database), chosen, every=every, jobs=jobs)
    return judged(database, chosen, asked, answered)


# -- figures ---------------------------------------------------------------------------------------


def figures(replayed: Sequence[Replayed], database_bytes: int) -> dict[str, Any]:
    """What is reported, as one JSON object."""
    raw = sum(item.raw for item in replayed)
    lost = sum(item.lost for item in replayed)
    with_gold = [item for item in replayed if item.row.gold]
    return {
        "rows": len(replayed),
        "resumed": len(replayed) - lost,
        "lost": lost,
        "errors": dict(Counter(error for item in replayed for error in item.errors)),
        "single": _group([item for item in with_gold if item.row.single]),
        "multi": _group([item for item in with_gold if not item.row.single]),
        "without_gold": _group([item for item in replayed if not item.row.gold]),
        "ms": {
            "ask": _spread([item.ms[0] for item in replayed]),
            "answer": _spread([item.ms[1] for item in replayed]),
        },
        "cpu_ms_per_row": (
            round(statistics.mean(item.cpu_ms for item in replayed), 1) if replayed else None
        ),
        "database_bytes": database_bytes,
        "raw_bytes": raw,
        "database_per_raw": round(database_bytes / raw, 2) if raw else None,
    }


def _group(part: Sequence[Replayed]) -> dict[str, Any]:
    kinds = sorted({item.kind for item in part})
    return {
        **_counts(part),
        "types": {kind: _counts([item for item in part if item.kind == kind]) for kind in kinds},
    }


def _counts(part: Sequence[Replayed]) -> dict[str, int]:
    count = Counter(item.verdict for item in part)
    return {
        "rows": len(part),
        **{
            verdict: count[verdict]
            for verdict in ("right", "wrong", "filled", "abstained")
            if count[verdict]
        },
    }


def _spread(milliseconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(milliseconds)
    return (
        {
            "p50": round(statistics.median(ordered), 1),
            "p95": round(ordered[int(0.95 * len(ordered))], 1),
        }
        if ordered
        else {}
    )


def table(report: dict[str, Any]) -> str:
    """The report as text."""
    lines = [f"{report['rows']} rows: {report['resumed']} resumed, {report['lost']} lost"]
    lines += [f"  {count} × {error}" for error, count in report["errors"].items()]
    lines.append(f"{'':20}{'rows':>7}{'right':>9}{'wrong':>9}{'filled':>9}{'abstained':>11}")
    for title, key in (
        ("single request", "single"),
        ("multi request", "multi"),
        ("without a value", "without_gold"),
    ):
        group = report[key]
        lines.append(_line(title, group))
        lines += [_line(f"  {kind}", counts) for kind, counts in group["types"].items()]
    for turn, spread in report["ms"].items():
        lines.append(
            f"turn to {turn}: " + ", ".join(f"{name} {value} ms" for name, value in spread.items())
        )
    lines.append(
        f"CPU a row, both visits with all they open and make: {report['cpu_ms_per_row']} ms"
    )
    lines.append(
        f"database {report['database_bytes']:,} bytes, raw messages {report['raw_bytes']:,}:"
        f" {report['database_per_raw']} times"
    )
    lines.append(
        f"{report['seconds']} s in all, {report['processes_every']} rows a process,"
        f" {report['jobs']} processes at a time"
    )
    return "\n".join(lines)


def _line(title: str, counts: dict[str, Any]) -> str:
    share = [
        f"{100 * counts.get(verdict, 0) / counts['rows']:.1f}%" if counts["rows"] else ""
        for verdict in ("right", "wrong", "filled", "abstained")
    ]
    return f"{title:20}{counts['rows']:7}{share[0]:>9}{share[1]:>9}{share[2]:>9}{share[3]:>11}"


def positive(text: str) -> int:
    """An argument that is a number from 1 on."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments, replay, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path, help="a file of asks, one JSON object per line")
    parser.add_argument("--limit", type=positive, help="only the first LIMIT rows")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--processes-every",
        type=positive,
        default=200,
        metavar="ROWS",
        help="rows that a process takes (default: %(default)s)",
    )
    parser.add_argument(
        "--jobs",
        type=positive,
        default=min(2, os.cpu_count() or 1),
        help="processes at a time (default: %(default)s)",
    )
    parser.add_argument(
        "--synchronous",
        choices=["normal", "full"],
        default="normal",
        help="how a commit is stored (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    if not options.path.is_file():
        parser.error(f"{options.path} is no file: pass a file of asks")
    chosen = list(rows(options.path))[: options.limit]
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "replay.db", options.synchronous)
        replayed = replay(chosen, database, every=options.processes_every, jobs=options.jobs)
        report = figures(replayed, database.bytes)
    report["seconds"] = round(time.perf_counter() - start, 1)
    report |= {name: getattr(options, name) for name in ("processes_every", "jobs", "synchronous")}
    print(json.dumps(report) if options.json else table(report))


if __name__ == "__main__":
    main()
