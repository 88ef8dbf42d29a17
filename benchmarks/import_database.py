"""Measures imports: a `SqliteSaver` database with a long conversation, imported, compared, opened.

python -m benchmarks.import_database /tmp/old.sqlite                  800 turns of short messages;
made if it is not there, then kept python -m benchmarks.import_database /tmp/old.sqlite --turns 200
--rich --json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph

from benchmarks.machine import load, machine, versions
from benchmarks.talk import thread
from benchmarks.text import SHORT, humans, replies
from langmem_ext import DeltaSaver, ImportReport, import_checkpoints

SECONDS = 60.0
"""What an import of 800 turns may take."""

TARGET_BYTES = 1_200_000
"""What 800 turns may need afterwards."""


def main() -> int:
    args = arguments().parse_args()
    if not args.path.exists():
        make(args.path, turns=args.turns, rich=args.rich)
    with tempfile.TemporaryDirectory(dir=args.path.parent) as folder:
        target = str(Path(folder) / "new.db")
        before = resource.getrusage(resource.RUSAGE_SELF)
        report = import_checkpoints(args.path, target)
        after = resource.getrusage(resource.RUSAGE_SELF)
        began = time.perf_counter()
        verified = import_checkpoints(args.path, target, verify=True).verified
        figures = {
            **dataclasses.asdict(report),
            "cpu_seconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            "verified": verified,
            "verify_seconds": time.perf_counter() - began,
            "peak_memory_mb": after.ru_maxrss / 1024,
            "messages": messages_of(target),
        }
    if args.json:
        print(
            json.dumps(
                {
                    **figures,
                    "machine": machine().model_dump(),
                    "versions": versions(),
                    "load": load(),
                }
            )
        )
    else:
        print(describe(report, figures))
    reached = report.seconds <= SECONDS and (
        args.turns != 800 or args.rich or report.bytes_after <= TARGET_BYTES
    )
    return 0 if reached and verified == report.checkpoints else 1


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.import_database",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("path", type=Path, help="the SqliteSaver's database")
    parser.add_argument(
        "--turns", type=int, default=800, help="turns of the conversation that is made"
    )
    parser.add_argument(
        "--rich", action="store_true", help="answers with the metadata that a provider adds"
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    return parser


def make(path: Path, *, turns: int, rich: bool) -> None:
    """Run a conversation on a `SqliteSaver`."""
    answers = replies(SHORT, rich=rich)

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [next(answers)]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # it is read afterwards, not relied upon
        graph = builder.compile(checkpointer=SqliteSaver(connection))
        for said, _ in zip(humans(SHORT), range(turns), strict=False):
            graph.invoke({"messages": [said]}, thread(), durability="sync")


def messages_of(target: str) -> int:
    """How many messages the thread's newest state has."""
    with DeltaSaver.open(target) as saver:
        found = saver.get_tuple(thread())
    return len(found.checkpoint["channel_values"]["messages"]) if found is not None else 0


def describe(report: ImportReport, figures: dict[str, Any]) -> str:
    return "\n".join(
        (
            (
                f"{report.checkpoints:,} checkpoints and {report.writes:,} writes,"
                f" {figures['messages']:,} messages at the end"
            ),
            f"before   {report.bytes_before:>13,} bytes",
            (
                f"after    {report.bytes_after:>13,} bytes  "
                f" 1/{report.bytes_before / report.bytes_after:,.0f}"
            ),
            (
                f"import   {report.seconds:>13.1f} s       {figures['cpu_seconds']:.1f} s of CPU,"
                f" {figures['peak_memory_mb']:,.0f} MB"
            ),
            (
                f"verify   {figures['verify_seconds']:>13.1f} s       {figures['verified']:,}"
                " checkpoints are identical in both"
            ),
        )
    )


if __name__ == "__main__":
    sys.exit(main())
