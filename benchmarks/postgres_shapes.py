"""Long conversations and crowds on PostgreSQL: bytes, tasks, processes, lists of checkpoints.

    python -m benchmarks.postgres_shapes                                   all, at round trips of 0
    and 2 ms python -m benchmarks.postgres_shapes growth crowd --turns 800 --json

The server and its databases are as `benchmarks.postgres_peers` has them. Each contender works in a
process of its own, one after another: what they are compared by is counted, or lasts long.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, closing, contextmanager
from itertools import islice
from multiprocessing import get_context
from typing import Any, Final, cast

import psycopg
from langchain_core.messages import HumanMessage

from benchmarks import results
from benchmarks.contenders import POSTGRES, POSTGRES_SIZE, Opened, new_database
from benchmarks.lanes import Figures
from benchmarks.machine import load
from benchmarks.postgres_peers import CONTENDERS, SERVER, Backends
from benchmarks.proxy import ProxyApart
from benchmarks.shapes.crowd import spread
from benchmarks.talk import conversation, thread
from benchmarks.text import SHORT, dialogue, humans, replies, texts

COMPARED: Final = ("DeltaSaver, async", "AsyncPostgresSaver")
BESIDE: Final = {"crowd": ("bare trips",)}
"""Who else is measured, by shape: what as many tasks of one process can do on new threads, about,
at most."""

TASKS, TASK_TURNS = 200, 4
LONG_TASKS, LONG_MESSAGES = 100, 200
PROCESSES, PROCESS_TURNS = 8, 50
LISTED: Final = 1000
SIZES: Final = (100, 400, 800, 2_500, 5_000)
"""Turns behind which the bytes are told, beside the last."""

PEER_TURNS: Final = 800
"""A peer's conversation ends here: its bytes grow with the square of the turns."""


@asynccontextmanager
async def opened(contender: str, url: str) -> AsyncIterator[Any]:
    """A contender's checkpointer on the event loop that runs."""
    async with cast(Any, CONTENDERS[contender].open(url)) as saver:
        yield saver


def talk(saver: Any) -> Any:
    """A graph that answers."""
    return conversation(Opened(saver), replies(SHORT, rich=False), on_loop=True)


def size(url: str) -> int:
    """Bytes of all tables and indexes of a database."""
    with psycopg.connect(url, autocommit=True) as connection:
        [total] = connection.execute(POSTGRES_SIZE).fetchone() or (0,)
    return int(total)


# -- shapes ----------------------------------------------------------------------------------------


async def growth(contender: str, url: str, proxy: str, turns: int) -> Figures:
    """One conversation: bytes on disk, and what a turn takes as it becomes longer."""
    found: Figures = {}
    async with opened(contender, url) as saver:
        with closing(Backends(url)) as backends:
            graph, latencies = talk(saver), list[float]()
            count = turns if contender == COMPARED[0] else min(turns, PEER_TURNS)
            cpu, server = time.process_time(), backends.cpu_ms()
            for number, message in enumerate(islice(humans(SHORT), count), 1):
                before = time.perf_counter()
                await graph.ainvoke({"messages": [message]}, thread())
                latencies.append(time.perf_counter() - before)
                if number in SIZES or number == count:
                    at = f"@{number:,} turns"
                    since = min(len(latencies), 100)
                    found |= {
                        f"{name}{at}": value for name, value in spread(latencies[-since:]).items()
                    }
                    found[f"bytes{at}"] = size(url)
                    found[f"client_cpu_ms{at}"] = (
                        (time.process_time() - cpu) * 1000 / len(latencies)
                    )
                    if server is not None and (now := backends.cpu_ms()) is not None:
                        found[f"server_cpu_ms{at}"] = (now - server) / len(latencies)
    return found


async def crowd(contender: str, url: str, proxy: str, turns: int) -> Figures:
    """Tasks of one event loop over a pool: new threads, then threads that have messages already."""
    found: Figures = {}
    async with opened(contender, proxy) as saver:
        graph = talk(saver)
        await _round(graph, "warm", 20, 2)
        wall, latencies = await _round(graph, "new", TASKS, TASK_TURNS)
        found |= {"turns_per_s@new": len(latencies) / wall} | {
            f"{name}@new": value for name, value in spread(latencies).items()
        }
        for number in range(LONG_TASKS):
            await graph.aupdate_state(
                thread(f"long-{number}"), {"messages": dialogue(LONG_MESSAGES)}, as_node="answer"
            )
        wall, latencies = await _round(graph, "long", LONG_TASKS, TASK_TURNS)
        found |= {"turns_per_s@long": len(latencies) / wall} | {
            f"{name}@long": value for name, value in spread(latencies).items()
        }
    return found


async def _round(graph: Any, name: str, tasks: int, turns: int) -> tuple[float, list[float]]:
    latencies: list[float] = []
    said = list(
        islice(texts(SHORT[0], seed=1), turns)
    )  # to think of what is said takes a tenth of a turn, and is nobody's to store

    async def one(number: int) -> None:
        for text in said:
            before = time.perf_counter()
            await graph.ainvoke({"messages": [HumanMessage(text)]}, thread(f"{name}-{number}"))
            latencies.append(time.perf_counter() - before)

    before = time.perf_counter()
    await asyncio.gather(*map(one, range(tasks)))
    return time.perf_counter() - before, latencies


async def processes(contender: str, url: str, proxy: str, turns: int) -> Figures:
    """Processes that talk at once, each on a thread of its own."""
    async with opened(contender, url):
        pass  # the tables are there before they come
    context = get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(PROCESSES, mp_context=context) as pool:
        barrier = manager.Barrier(PROCESSES)
        done = [
            pool.submit(_process, contender, url, number, barrier) for number in range(PROCESSES)
        ]
        answers = [one.result() for one in done]
    latencies = [latency for taken, _, _ in answers for latency in taken]
    lasted = max(ended for _, _, ended in answers) - min(begun for _, begun, _ in answers)
    return spread(latencies) | {"turns_per_s": len(latencies) / lasted}


def _process(
    contender: str, url: str, number: int, barrier: Any
) -> tuple[list[float], float, float]:
    async def run() -> tuple[list[float], float, float]:
        async with opened(contender, url) as saver:
            graph = talk(saver)
            await _round(graph, f"warm-{number}", 1, 1)
            # A full collection looks at all that was imported, for 80 ms. When the first one comes
            # hangs on what was imported, and in processes that do the same it comes to all at the
            # same turn.
            gc.collect()
            barrier.wait()
            begun = time.monotonic()
            _, latencies = await _round(graph, f"process-{number}", 1, PROCESS_TURNS)
            return latencies, begun, time.monotonic()

    return asyncio.run(run())


async def listing(contender: str, url: str, proxy: str, turns: int) -> Figures:
    """A list of many checkpoints, by a process that has not read them; and one checkpoint."""
    async with opened(contender, url) as saver:
        graph = talk(saver)
        for message in islice(humans(SHORT), LISTED // 3 + 1):
            await graph.ainvoke({"messages": [message]}, thread())
    async with opened(contender, proxy) as saver:
        await saver.aget_tuple(thread("another"))
        before, cpu = time.perf_counter(), time.process_time()
        await saver.aget_tuple(thread())
        found = {
            "cold_get_ms": (time.perf_counter() - before) * 1000,
            "cold_get_cpu_ms": (time.process_time() - cpu) * 1000,
        }
    async with opened(contender, proxy) as saver:
        await saver.aget_tuple(thread("another"))
        before, cpu = time.perf_counter(), time.process_time()
        listed = [one async for one in saver.alist(thread(), limit=LISTED)]
        found |= {
            "list_ms": (time.perf_counter() - before) * 1000,
            "list_cpu_ms": (time.process_time() - cpu) * 1000,
        }
    assert len(listed) == LISTED
    return found


SHAPES: Final[dict[str, Callable[[str, str, str, int], Any]]] = {
    "growth": growth,
    "crowd": crowd,
    "processes": processes,
    "listing": listing,
}
DELAYED: Final = frozenset({"crowd", "listing"})
"""Those that are measured with each delay."""

# -- the runs --------------------------------------------------------------------------------------


def work(shape: str, contender: str, server: str, turns: int, delay_ms: float) -> Figures:
    """One contender's figures, on a database of its own."""
    with new_database(server) as url, _delayed(url, delay_ms) as proxy:
        figures: Figures = asyncio.run(SHAPES[shape](contender, url, proxy, turns))
        return figures


@contextmanager
def _delayed(url: str, delay_ms: float) -> Iterator[str]:
    """The URL through a proxy, where there is a delay."""
    if not delay_ms:
        yield url
        return
    with closing(ProxyApart(url, delay_s=delay_ms / 2000)) as proxy:
        yield proxy.url


def measure(
    shapes: list[str], server: str, turns: int, delays_ms: list[float]
) -> Iterator[tuple[str, dict[str, Figures]]]:
    """Figures by contender, for each shape and delay."""
    for shape in shapes:
        for delay_ms in delays_ms if shape in DELAYED else delays_ms[:1]:
            found = {}
            for contender in (*COMPARED, *BESIDE.get(shape, ())):
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as apart:
                    found[contender] = apart.submit(
                        work, shape, contender, server, turns, delay_ms
                    ).result()
            yield f"{shape}, {delay_ms:g} ms", found


def report(title: str, found: dict[str, Figures]) -> Iterator[str]:
    """A line for each figure, the contenders' beside each other."""
    yield f"\n{title:34}" + "".join(f"{contender:>22}" for contender in found)
    for name in dict.fromkeys(name for figures in found.values() for name in figures):
        yield f"{name:34}" + "".join(
            f"{figures[name]:>22,.1f}" if name in figures else f"{'–':>22}"
            for figures in found.values()
        )


def main() -> int:
    args = arguments().parse_args()
    before, kept = load(), {}
    for title, found in measure(
        args.shapes or list(SHAPES), args.server, args.turns, args.delay_ms
    ):
        kept[title] = found
        if not args.json:
            print("\n".join(report(title, found)), flush=True)
    results.tell(
        "postgres-shapes",
        {"figures": kept, "turns": args.turns},
        before,
        as_json=args.json,
        record=args.record,
    )
    if not args.json:
        print(f"\nload {before} before, {load()} after")
    return 0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.postgres_shapes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "shapes", nargs="*", choices=[*SHAPES, []], metavar="SHAPE", help=", ".join(SHAPES)
    )
    parser.add_argument(
        "--server",
        default=os.environ.get(POSTGRES, SERVER),
        metavar="URL",
        help="where databases may be made and dropped",
    )
    parser.add_argument(
        "--turns", type=int, default=SIZES[-1], help="turns of the long conversation"
    )
    parser.add_argument(
        "--delay-ms",
        type=float,
        nargs="+",
        default=[0, 2],
        metavar="MS",
        help="round trips of the network",
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep what was found, as JSON in benchmarks/results/postgres",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
