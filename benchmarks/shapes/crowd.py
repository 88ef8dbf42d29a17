"""Many at once: processes that write one file, and tasks of one event loop, a thread each."""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import aiosqlite
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from benchmarks.contenders import CONTENDERS, Opened
from benchmarks.graph import conversation, thread
from benchmarks.lanes import Figures, Step, Work
from benchmarks.shape import Aim, Shape
from benchmarks.text import SHORT, dialogue, humans, replies
from langmem_ext import LangmemExtError


def processes(
    contender: str, folder: Path, *, count: int, turns: int, rounds: int, messages: int = 0
) -> Work:
    """Processes write one file; all start together, with a compiled graph and one turn done."""
    with CONTENDERS[contender](folder):
        pass  # the tables are there before they come
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    latencies: list[float] = []
    rates: list[float] = []
    errors = 0
    for number in range(rounds):
        ready, answers = context.Barrier(count + 1), context.SimpleQueue()
        names = [f"{number}-{one}" for one in range(count)]
        crowd = [
            context.Process(
                target=_write, args=(contender, folder, name, turns, messages, ready, answers)
            )
            for name in names
        ]
        for one in crowd:
            one.start()
        found: list[tuple[list[float], float, int]] = []
        started = [0.0]

        def together(
            ready: Any = ready, answers: Any = answers, found: Any = found, started: Any = started
        ) -> None:
            ready.wait()
            started[0] = time.monotonic()
            found += [answers.get() for _ in range(count)]

        yield Step("", together)
        for one in crowd:
            one.join()
        rates.append(
            sum(len(taken) for taken, _, _ in found)
            / (max(ended for _, ended, _ in found) - started[0])
        )
        latencies += [latency for taken, _, _ in found for latency in taken]
        errors += sum(failed for _, _, failed in found)
    return spread(latencies) | {"turns_per_s": statistics.median(rates), "errors": errors}


def _write(
    contender: str, folder: Path, name: str, turns: int, messages: int, ready: Barrier, answers: Any
) -> None:
    """One process: its latencies, when it ended, and how many turns failed."""
    latencies, errors = [], 0
    with CONTENDERS[contender](folder) as opened:
        graph = conversation(opened, replies(SHORT, rich=False))
        graph.update_state(thread(name), {"messages": dialogue(messages)}, as_node="answer")
        said = humans(SHORT)
        graph.invoke({"messages": [next(said)]}, thread(name))
        ready.wait()
        for message in islice(said, turns):
            before = time.perf_counter()
            try:
                graph.invoke({"messages": [message]}, thread(name))
            except (sqlite3.Error, LangmemExtError):
                errors += 1
            latencies.append(time.perf_counter() - before)
        answers.put((latencies, time.monotonic(), errors))


def tasks(contender: str, folder: Path, *, count: int, turns: int, rounds: int) -> Work:
    """Concurrent tasks of one event loop, in rounds with new threads; the first round warms up."""
    done = Rounds(contender, folder, count, turns)
    yield Step("", done.warm_up)
    for _ in range(rounds):
        yield Step("round", done.run)
    return spread(done.latencies) | {
        "turns_per_s": statistics.median(done.rates),
        "cpu_ms_per_turn": statistics.median(done.cpu),
    }


@dataclass
class Rounds:
    """Rounds of conversations that tasks hold, and what they took."""

    contender: str
    folder: Path
    count: int
    turns: int
    number: int = 0
    latencies: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def warm_up(self) -> None:
        """A round that does not count."""
        self.run()
        self.latencies, self.rates, self.cpu = [], [], []

    def run(self) -> None:
        """One round, on an event loop of its own."""
        asyncio.run(self._run())

    async def _run(self) -> None:
        self.number += 1
        async with opened_async(self.contender, self.folder) as opened:
            graph, said = (
                conversation(opened, replies(SHORT, rich=False), on_loop=True),
                humans(SHORT),
            )
            talks = [
                self._talk(graph, f"{self.number}-{one}", list(islice(said, self.turns)))
                for one in range(self.count)
            ]
            wall, cpu = time.perf_counter(), time.process_time()
            await asyncio.gather(*talks)
            self.rates.append(self.count * self.turns / (time.perf_counter() - wall))
            self.cpu.append((time.process_time() - cpu) * 1000 / (self.count * self.turns))

    async def _talk(self, graph: Any, name: str, said: list[HumanMessage]) -> None:
        for message in said:
            before = time.perf_counter()
            await graph.ainvoke({"messages": [message]}, thread(name))
            self.latencies.append(time.perf_counter() - before)


@asynccontextmanager
async def opened_async(contender: str, folder: Path) -> AsyncIterator[Opened]:
    """A contender for an event loop: `AsyncSqliteSaver` in place of `SqliteSaver`."""
    if not contender.startswith("sqlite"):
        with CONTENDERS[contender](folder) as opened:
            yield opened
        return
    async with aiosqlite.connect(folder / "sqlite.db") as connection:
        await connection.execute(
            f"PRAGMA synchronous = {'FULL' if contender.endswith('-full') else 'NORMAL'}"
        )
        saver = AsyncSqliteSaver(connection)
        await saver.setup()
        yield Opened(saver)


def spread(latencies: list[float]) -> Figures:
    """Median and 99th percentile, in milliseconds of wall time."""
    return {
        "p50_ms": statistics.median(latencies) * 1000,
        "p99_ms": statistics.quantiles(latencies, n=100)[98] * 1000,
    }


_FOUR = ("sqlite", "delta", "sqlite-full", "delta-full")


def _crowd_aims(what: str, normal: float, full: float) -> tuple[Aim, ...]:
    return (
        Aim(f"turns per second, {what}, NORMAL", "turns_per_s", "sqlite", at_least=normal),
        Aim(
            f"turns per second, {what}, FULL",
            "turns_per_s",
            "sqlite-full",
            at_least=full,
            ours="delta-full",
        ),
        Aim(f"p99, {what}, NORMAL", "p99_ms", "sqlite", at_most=1),
        Aim(f"p99, {what}, FULL", "p99_ms", "sqlite-full", at_most=1, ours="delta-full"),
    )


SHAPES = (
    Shape(
        "processes",
        "8 processes write one file, 50 turns each",
        processes,
        _FOUR,
        {"count": 8, "turns": 50, "rounds": 3},
        {"count": 2, "turns": 2, "rounds": 1},
        (
            *_crowd_aims("8 processes", 2, 1),
            Aim("'database is locked', NORMAL", "errors", at_most=0),
            Aim("'database is locked', FULL", "errors", at_most=0, ours="delta-full"),
        ),
        burst=1,
    ),
    Shape(
        "tasks",
        "50 asyncio tasks, 10 turns each (AsyncSqliteSaver for SqliteSaver)",
        tasks,
        ("none", "memory", *_FOUR),
        {"count": 50, "turns": 10, "rounds": 3},
        {"count": 2, "turns": 2, "rounds": 2},
        (
            Aim("turns per second, 50 tasks, NORMAL", "turns_per_s", "sqlite", at_least=2),
            Aim(
                "turns per second, 50 tasks, FULL",
                "turns_per_s",
                "sqlite-full",
                at_least=2,
                ours="delta-full",
            ),
        ),
        burst=1,
    ),
)
