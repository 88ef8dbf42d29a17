"""Measures moves into PostgreSQL: from another saver, a `SqliteSaver` file, and JSON lines.

And out of it again (`out`, `aout`), and into a store that has all of it already (`again`).

    python -m benchmarks.postgres_moves                                    20 threads of 20 turns,
    round trips of 0 and 2 ms python -m benchmarks.postgres_moves copy acopy --threads 400 --turns 1
    --json

The server and its databases are as `benchmarks.postgres_peers` has them. Each move is made by a
process of its own, into a store that is new, or out of or into one that has the threads, through a
proxy in another process: the kinds take turns, `--rounds` times, and the median is told.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

from langgraph.checkpoint.sqlite import SqliteSaver

from benchmarks import results
from benchmarks.contenders import POSTGRES, Opened, new_database
from benchmarks.lanes import Figures
from benchmarks.machine import load
from benchmarks.postgres_peers import SERVER
from benchmarks.proxy import ProxyApart
from benchmarks.talk import conversation, thread
from benchmarks.text import SHORT, humans, replies
from langmem_ext import DeltaSaver, Threads, acopy_saver, copy_saver, import_checkpoints

PER_TURN: Final = 3
"""Checkpoints of a turn of the graph."""

PRELOADED: Final = ("benchmarks.postgres_peers", "langmem_ext.storage.postgres.driver")
"""What the processes have imported when they begin."""


def copy(folder: Path, target: str) -> int:
    """`copy_saver` from a store on SQLite."""
    with DeltaSaver.open(str(folder / "delta.db")) as source, DeltaSaver.open(target) as saver:
        return copy_saver(source, saver).checkpoints


def acopy(folder: Path, target: str) -> int:
    """`acopy_saver` from a store on SQLite."""

    async def run() -> int:
        async with (
            DeltaSaver.from_conn_string(str(folder / "delta.db")) as source,
            DeltaSaver.from_conn_string(target) as saver,
        ):
            return (await acopy_saver(source, saver)).checkpoints

    return asyncio.run(run())


def take_over(folder: Path, target: str) -> int:
    """`import_checkpoints` from a `SqliteSaver`'s database."""
    return import_checkpoints(folder / "old.sqlite", target).checkpoints


def take_lines(folder: Path, target: str) -> int:
    """`Threads.import_from` of JSON lines."""
    with DeltaSaver.open(target) as saver:
        return Threads(saver).import_from(str(folder / "threads.jsonl")).checkpoints


def out(folder: Path, source: str) -> int:
    """`copy_saver` to a new store on SQLite."""
    with (
        TemporaryDirectory(dir=folder) as place,
        DeltaSaver.open(source) as saver,
        DeltaSaver.open(f"{place}/new.db") as target,
    ):
        return copy_saver(saver, target).checkpoints


def aout(folder: Path, source: str) -> int:
    """`acopy_saver` to a new store on SQLite."""

    async def run() -> int:
        with TemporaryDirectory(dir=folder) as place:
            async with (
                DeltaSaver.from_conn_string(source) as saver,
                DeltaSaver.from_conn_string(f"{place}/new.db") as target,
            ):
                return (await acopy_saver(saver, target)).checkpoints

    return asyncio.run(run())


def again(folder: Path, target: str) -> int:
    """`copy_saver` from a store on SQLite into one that has all of it."""
    with DeltaSaver.open(str(folder / "delta.db")) as source, DeltaSaver.open(target) as saver:
        return copy_saver(source, saver).skipped


MOVES: Final[dict[str, Callable[[Path, str], int]]] = {
    "copy": copy,
    "acopy": acopy,
    "import": take_over,
    "lines": take_lines,
    "out": out,
    "aout": aout,
    "again": again,
}

FILLED: Final = frozenset({"out", "aout", "again"})
"""Moves of a store that has the threads already."""


def make(folder: Path, threads: int, turns: int) -> None:
    """Talk on a `SqliteSaver`, and have the same threads in each form that is moved from."""
    said, answers = humans(SHORT), replies(SHORT, rich=False)
    with closing(sqlite3.connect(folder / "old.sqlite", check_same_thread=False)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        graph = conversation(Opened(SqliteSaver(connection)), answers)
        for number in range(threads):
            for message in islice(said, turns):
                graph.invoke({"messages": [message]}, thread(f"t-{number}"))
    import_checkpoints(folder / "old.sqlite", str(folder / "delta.db"))
    with DeltaSaver.open(str(folder / "delta.db")) as saver:
        Threads(saver).export_to(str(folder / "threads.jsonl"))


def move(name: str, folder: Path, target: str) -> Figures:
    """One move, in a process that has done nothing else."""
    cpu, began = time.process_time(), time.perf_counter()
    checkpoints = MOVES[name](folder, target)
    lasted = time.perf_counter() - began
    return {
        "checkpoints_per_s": checkpoints / lasted,
        "seconds": lasted,
        "client_cpu_ms": (time.process_time() - cpu) * 1000 / checkpoints,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measured(name: str, folder: Path, server: str, delay_ms: float | None) -> Figures:
    """One move into a new store, or of one that is filled; without a delay on SQLite."""
    with ExitStack() as stack:
        apart = stack.enter_context(ProcessPoolExecutor(1, mp_context=get_context("forkserver")))
        if delay_ms is None:
            place = Path(stack.enter_context(TemporaryDirectory(dir=folder)))
            if name in FILLED:
                copy(folder, str(place / "new.db"))
            return apart.submit(move, name, folder, str(place / "new.db")).result()
        url = stack.enter_context(new_database(server))
        proxy = stack.enter_context(closing(ProxyApart(url, delay_s=delay_ms / 2000)))
        DeltaSaver.open(url).close()  # the tables are there before
        if name in FILLED:
            copy(folder, url)
        counts = proxy.counts()
        found = apart.submit(move, name, folder, proxy.url).result()
        spent = proxy.counts() - counts
        per_1000 = spent.trips * 1000 / (found["checkpoints_per_s"] * found["seconds"])
        return found | {
            "trips": float(spent.trips),
            "trips_per_1000": per_1000,
            "statements": float(spent.statements),
            "connections": float(spent.connections),
        }


def measure(
    names: list[str], folder: Path, server: str, delays_ms: list[float], rounds: int
) -> Iterator[tuple[str, dict[str, Figures]]]:
    """Figures by target, for each kind of move."""
    targets: dict[str, float | None] = {
        "SQLite": None,
        **{f"PostgreSQL, {delay:g} ms": delay for delay in delays_ms},
    }
    for name in names:
        rows: dict[str, list[Figures]] = {target: [] for target in targets}
        for _ in range(rounds):
            for target, delay in targets.items():
                rows[target].append(measured(name, folder, server, delay))
        yield (
            name,
            {
                target: {what: median(one.get(what, 0.0) for one in found) for what in found[0]}
                for target, found in rows.items()
            },
        )


def report(title: str, found: dict[str, Figures]) -> Iterator[str]:
    """A line for each figure, the targets' beside each other."""
    yield f"\n{title:22}" + "".join(f"{target:>20}" for target in found)
    for name in dict.fromkeys(name for figures in found.values() for name in figures):
        yield f"{name:22}" + "".join(
            f"{figures[name]:>20,.2f}" if name in figures else f"{'–':>20}"
            for figures in found.values()
        )


def main() -> int:
    args = arguments().parse_args()
    # Each process begins with everything imported, which takes longer than a small move.
    get_context("forkserver").set_forkserver_preload(list(PRELOADED))
    before, kept = load(), {}
    with TemporaryDirectory() as place:
        folder = Path(place)
        make(folder, args.threads, args.turns)
        for title, found in measure(
            args.moves or list(MOVES), folder, args.server, args.delay_ms, args.rounds
        ):
            kept[title] = found
            if not args.json:
                print("\n".join(report(title, found)), flush=True)
    found_at = {"figures": kept, "threads": args.threads, "turns": args.turns}
    results.tell("postgres-moves", found_at, before, as_json=args.json, record=args.record)
    if not args.json:
        print(f"\nload {before} before, {load()} after")
    return 0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.postgres_moves",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "moves", nargs="*", choices=[*MOVES, []], metavar="MOVE", help=", ".join(MOVES)
    )
    parser.add_argument(
        "--server",
        default=os.environ.get(POSTGRES, SERVER),
        metavar="URL",
        help="where databases may be made and dropped",
    )
    parser.add_argument("--threads", type=int, default=20, help="threads that are moved")
    parser.add_argument(
        "--turns", type=int, default=20, help=f"turns of each, of {PER_TURN} checkpoints"
    )
    parser.add_argument(
        "--delay-ms",
        type=float,
        nargs="+",
        default=[0, 2],
        metavar="MS",
        help="round trips of the network",
    )
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured")
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep what was found, as JSON in benchmarks/results/postgres",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
