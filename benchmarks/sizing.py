"""What a full PostgreSQL database costs: bytes, round trips, and times on cold threads.

    python -m benchmarks.sizing                                    10,000 threads of 100 messages:
    about 15 minutes, 3 GB of disk python -m benchmarks.sizing --threads 1000 --distinct 50
    --partitions 16 --json

Some threads are spoken turn by turn, by tasks of one event loop through a graph of one node; the
others are copies of these that the same saver makes. The server is the one that BENCHMARK_POSTGRES
names by its URL, else the one on port 5432 of this machine; a database is made and dropped there.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import islice
from statistics import median
from typing import Any, TypeVar

from benchmarks.contenders import POSTGRES, Opened, new_database
from benchmarks.machine import load, machine, versions
from benchmarks.postgres_peers import SERVER
from benchmarks.proxy import ProxyApart
from benchmarks.talk import conversation, thread
from benchmarks.text import SHORT, humans, raw_bytes, replies
from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads

T = TypeVar("T")

AT_ONCE = 40
"""Tasks that fill the database."""

OWNERS = 100
"""Whose threads they are, in turns."""

PAGE = 50
MEASURED = 200
"""Threads on which each operation is measured."""

WARMING, TURNS = 3, 20
"""Turns whose round trips are counted, and those before them."""


@dataclass(frozen=True)
class Plan:
    """What the database is to hold.

    Attributes:
        server: URL of the server.
        threads: How many threads.
        messages: Of each thread.
        distinct: How many are spoken; the others are copies.
        partitions: Of each table; 0 for none.
    """

    server: str
    threads: int
    messages: int
    distinct: int
    partitions: int = 0


def name_of(number: int) -> str:
    """A thread's id."""
    return f"thread-{number}"


# -- filling ---------------------------------------------------------------------------------------


async def fill(url: str, plan: Plan, connection: Any) -> dict[str, float]:
    """Speak and copy; returns seconds of both, bytes spoken, and bytes of the server's log."""
    turns = plan.messages // 2
    async with DeltaSaver.from_conn_string(url) as saver:

        async def speak(number: int) -> None:
            own = saver.for_owner(f"owner-{number % OWNERS}")
            graph = conversation(Opened(own), replies(SHORT, rich=False), on_loop=True)
            for message in islice(humans(SHORT), turns):
                await graph.ainvoke({"messages": [message]}, thread(name_of(number)))

        async def copy(number: int) -> None:
            own = saver.for_owner(f"owner-{number % plan.distinct % OWNERS}")
            await own.acopy_thread(name_of(number % plan.distinct), name_of(number))

        begun, logged = time.perf_counter(), log_bytes(connection)
        await at_once(speak, range(plan.distinct))
        spoken, logged = time.perf_counter(), log_bytes(connection) - logged
        await at_once(copy, range(plan.distinct, plan.threads))
        copied = time.perf_counter()
        found = await saver.for_owner("owner-0").aget_tuple(thread(name_of(0)))
    assert found is not None
    raw = sum(raw_bytes(found.checkpoint["channel_values"]["messages"]))
    return {
        "speak_s": spoken - begun,
        "turns_per_s": plan.distinct * turns / (spoken - begun),
        "copy_s": copied - spoken,
        "log_bytes_per_turn": logged / (plan.distinct * turns),
        "raw_bytes_per_thread": float(raw),
    }


def log_bytes(connection: Any) -> float:
    """How long the server's write-ahead log is so far."""
    return float(
        connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn").fetchone()[0]
    )


async def at_once(work: Callable[[int], Any], numbers: Sequence[int]) -> None:
    """Do work for each number, so much at a time."""
    left = iter(numbers)

    async def worker() -> None:
        for number in left:
            await work(number)

    await asyncio.gather(*(worker() for _ in range(AT_ONCE)))


# -- measuring -------------------------------------------------------------------------------------

SELECT_SIZES = """
SELECT
    coalesce(pg_partition_root(oid), oid)::regclass::text,
    sum(reltuples)::bigint,
    sum(pg_relation_size(oid))::bigint,
    sum(pg_table_size(oid) - pg_relation_size(oid))::bigint,
    sum(pg_indexes_size(oid))::bigint
FROM pg_class WHERE relnamespace = 'langmem_ext'::regnamespace AND relkind = 'r'
GROUP BY 1 ORDER BY 1
"""
SELECT_INDEXES = """
SELECT coalesce(pg_partition_root(oid), oid)::regclass::text, sum(pg_relation_size(oid))::bigint
FROM pg_class WHERE relnamespace = 'langmem_ext'::regnamespace AND relkind = 'i'
GROUP BY 1 ORDER BY 1
"""
SELECT_PAGES = """
SELECT
    sum(coalesce(heap_blks_hit, 0) + coalesce(idx_blks_hit, 0)
        + coalesce(toast_blks_hit, 0) + coalesce(tidx_blks_hit, 0)),
    sum(coalesce(heap_blks_read, 0) + coalesce(idx_blks_read, 0)
        + coalesce(toast_blks_read, 0) + coalesce(tidx_blks_read, 0))
FROM pg_statio_user_tables
"""


def sizes(connection: Any) -> dict[str, Any]:
    """Rows and bytes of each table and index, by their names."""
    connection.execute("VACUUM ANALYZE")
    tables = {
        name.removeprefix("langmem_ext."): {
            "rows": rows,
            "heap": heap,
            "toast": beside,
            "indexes": indexes,
        }
        for name, rows, heap, beside, indexes in connection.execute(SELECT_SIZES)
    }
    indexes = {
        name.removeprefix("langmem_ext."): size for name, size in connection.execute(SELECT_INDEXES)
    }
    return {"tables": tables, "indexes": indexes}


def settled(connection: Any) -> tuple[int, int]:
    """Pages found in the server's memory, and pages read, as backends report them at their end."""
    last = None
    while (now := connection.execute(SELECT_PAGES).fetchone()) != last:
        last = now
        time.sleep(0.3)
    return now


def timed(work: Callable[[T], object], about: Iterable[T]) -> list[float]:
    """Milliseconds of each."""
    found = []
    for one in about:
        begun = time.perf_counter()
        work(one)
        found.append(1000 * (time.perf_counter() - begun))
    return found


def measure(url: str, plan: Plan, connection: Any) -> dict[str, float]:
    """Times and pages of each operation on threads in random order, by a saver that knows none."""
    found: dict[str, float] = {}
    chosen = [
        thread(name_of(number))
        for number in random.Random(1).sample(range(plan.threads), min(plan.threads, MEASURED))
    ]
    said = humans(SHORT)

    def note(
        name: str,
        work: Callable[[DeltaSaver, Any], object],
        about: Sequence[Any],
        *,
        again: bool = False,
    ) -> None:
        before = settled(connection)
        with DeltaSaver.open(url) as saver:
            saver.get_tuple(thread("nobody"))  # connects
            for _ in range(1 + again):
                each = sorted(timed(partial(work, saver), about))
        after = settled(connection)
        found[f"{name}_p50_ms"], found[f"{name}_p99_ms"] = (
            median(each),
            each[int(0.99 * (len(each) - 1))],
        )
        found[f"{name}_pages"] = float(after[0] + after[1] - before[0] - before[1]) / len(each)
        found[f"{name}_pages_read"] = float(after[1] - before[1]) / len(each)

    def turn(saver: DeltaSaver, config: Any) -> object:
        return conversation(Opened(saver), replies(SHORT, rich=False)).invoke(
            {"messages": [next(said)]}, config
        )

    note(
        "last_messages",
        lambda saver, config: Threads(saver).messages(id_of(config), last=PAGE),
        chosen,
    )
    note("get", lambda saver, config: saver.get_tuple(config), chosen)
    note("get_twice", lambda saver, config: saver.get_tuple(config), chosen, again=True)
    note("turn", turn, chosen)
    note("list", lambda saver, config: list(saver.list(config, limit=PAGE)), chosen)
    note(
        "append",
        lambda saver, config: ThreadChatMessageHistory(id_of(config), saver).add_messages(
            [next(said)]
        ),
        chosen,
    )
    note("threads", lambda saver, _: Threads(saver).list(limit=PAGE), range(PAGE))
    note(
        "threads_of_an_owner",
        lambda saver, owner: Threads(saver.for_owner(f"owner-{owner}")).list(limit=PAGE),
        range(OWNERS),
    )
    return found


def id_of(config: Any) -> str:
    """The thread's id."""
    name: str = config["configurable"]["thread_id"]
    return name


async def round_trips(url: str) -> dict[str, float]:
    """What a turn on a thread that its process knows sends and receives."""
    proxy = await asyncio.to_thread(ProxyApart, url)
    try:
        async with DeltaSaver.from_conn_string(proxy.url) as saver:
            graph, said = (
                conversation(Opened(saver), replies(SHORT, rich=False), on_loop=True),
                humans(SHORT),
            )
            before = proxy.counts()
            for at in range(WARMING + TURNS):
                if at == WARMING:
                    before = proxy.counts()
                await graph.ainvoke({"messages": [next(said)]}, thread(name_of(0)))
            spent = proxy.counts() - before
    finally:
        await asyncio.to_thread(proxy.close)
    return {
        f"{name}_per_turn": value / TURNS
        for name, value in dataclasses.asdict(spent).items()
        if name != "connections"
    }


def run(plan: Plan) -> dict[str, Any]:
    """Fill a database and measure it."""
    with (
        new_database(plan.server) as database,
        import_module("psycopg").connect(database, autocommit=True) as connection,
    ):
        url = f"{database}?partitions={plan.partitions}"
        figures: dict[str, Any] = asyncio.run(fill(url, plan, connection))
        figures |= sizes(connection)
        figures["bytes"] = sum(
            sum(of[part] for part in ("heap", "toast", "indexes"))
            for of in figures["tables"].values()
        )
        figures["bytes_per_thread"] = figures["bytes"] / plan.threads
        figures["bytes_per_turn"] = figures["bytes_per_thread"] / (plan.messages // 2)
        figures["shared_buffers"] = connection.execute("SHOW shared_buffers").fetchone()[0]
        return figures | measure(url, plan, connection) | asyncio.run(round_trips(url))


# -- the report ------------------------------------------------------------------------------------


def report(plan: Plan, figures: dict[str, Any]) -> Iterator[str]:
    """All that was found, one line each."""
    yield (
        f"{plan.threads:,} threads of {plan.messages} messages, {plan.distinct:,} of them spoken,"
        f" {plan.partitions} partitions"
    )
    yield f"\n{'':16}{'rows':>14}{'heap':>16}{'toast':>14}{'indexes':>16}"
    for name, of in figures["tables"].items():
        yield f"{name:16}{of['rows']:>14,}{of['heap']:>16,}{of['toast']:>14,}{of['indexes']:>16,}"
    yield ""
    for name, size in figures["indexes"].items():
        yield f"{name:38}{size:>16,}"
    yield ""
    for name, value in figures.items():
        if not isinstance(value, dict):
            yield (
                f"{name:38}{value:>16,.1f}" if isinstance(value, float) else f"{name:38}{value:>16}"
            )


def main() -> int:
    args = arguments().parse_args()
    plan = Plan(
        args.server, args.threads, args.messages, min(args.distinct, args.threads), args.partitions
    )
    before = load()
    figures = run(plan)
    if args.json:
        about = {
            "machine": dataclasses.asdict(machine()),
            "versions": versions(),
            "load": (before, load()),
        }
        print(
            json.dumps(
                {
                    "figures": figures,
                    "plan": dataclasses.asdict(plan) | {"server": "postgresql://"},
                    **about,
                }
            )
        )
    else:
        print("\n".join(report(plan, figures)))
        print(f"\nload {before} before, {load()} after; {machine().cores} cores")
    return 0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.sizing",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--server",
        default=os.environ.get(POSTGRES, SERVER),
        metavar="URL",
        help="where databases may be made and dropped",
    )
    parser.add_argument("--threads", type=int, default=10_000, metavar="N", help="how many threads")
    parser.add_argument(
        "--messages", type=int, default=100, metavar="N", help="messages of each, an even number"
    )
    parser.add_argument(
        "--distinct",
        type=int,
        default=200,
        metavar="N",
        help="how many of the threads are spoken, not copied",
    )
    parser.add_argument(
        "--partitions", type=int, default=0, metavar="N", help="partitions of each table"
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
