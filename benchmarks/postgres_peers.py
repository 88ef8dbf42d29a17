"""Turns of a one-node graph on PostgreSQL, through a network: trips, bytes, CPU of both sides.

    python -m benchmarks.postgres_peers                            threads of 20 and 1,600 messages,
    round trips of 0 and 2 ms python -m benchmarks.postgres_peers --messages 20 --turns 20
    --delay-ms 5 --contenders PostgresSaver --json

The server is the one that BENCHMARK_POSTGRES names by its URL, else the one on port 5432 of this
machine; databases are made and dropped there. Each contender works in a process of its own, through
a proxy in a process of its own, and they take turns. The server's CPU is what its backends took;
that is known where they run on this machine, under Linux. The peers are in `pip install --group
dev`.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    ExitStack,
    asynccontextmanager,
    closing,
    contextmanager,
    suppress,
)
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.memory import InMemorySaver
from proxy import ProxyApart
from wire import Counts

from benchmarks import results
from benchmarks.contenders import POSTGRES, Opened, new_database
from benchmarks.graph import conversation, thread
from benchmarks.lanes import Apart, Figures, Sample, Step, Work, race
from benchmarks.machine import load, machine
from benchmarks.shape import summary
from benchmarks.text import SHORT, dialogue, humans, replies
from langmem_ext import DeltaSaver

SERVER = "postgresql://postgres@127.0.0.1:5432/postgres"
POOL = 10
"""Connections of a pool."""

TURNS_OF_A_THREAD = 3
"""Measured at each delay before another thread is begun: so the threads stay about as long as they
are said to be."""

# -- the contenders --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contender:
    """A way to store a conversation on PostgreSQL.

    Attributes:
        open: Opens a checkpointer on the database of a URL, for as long as the context lasts.
        on_loop: Whether it is an async context, and the graph is run by `ainvoke`.
    """

    open: Callable[[str], AbstractContextManager[Any] | AbstractAsyncContextManager[Any]]
    on_loop: bool = False


@contextmanager
def _postgres_saver(url: str) -> Iterator[Any]:
    with import_module("langgraph.checkpoint.postgres").PostgresSaver.from_conn_string(
        url
    ) as saver:
        saver.setup()
        yield saver


def _async_postgres_saver(
    *, checked: bool = False
) -> Callable[[str], AbstractAsyncContextManager[Any]]:
    """On a pool; `checked`, as the pool's documentation has it: each connection before each use."""

    @asynccontextmanager
    async def opening(url: str) -> Any:
        pools, saver = (
            import_module("psycopg_pool"),
            import_module("langgraph.checkpoint.postgres.aio").AsyncPostgresSaver,
        )
        rows = import_module("psycopg.rows").dict_row
        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": rows}
        check = pools.AsyncConnectionPool.check_connection if checked else None
        async with pools.AsyncConnectionPool(
            url, min_size=POOL, max_size=POOL, kwargs=options, check=check, open=False
        ) as pool:
            await pool.wait()
            opened = saver(pool)
            await opened.setup()
            yield opened

    return opening


class BareTrips(InMemorySaver):
    """Stores nothing, but makes the fewest possible trips: one to look, one for each checkpoint.

    On new threads, what no checkpointer on this driver can do without: whoever stores something
    takes longer.
    """

    pool: Any

    @classmethod
    @asynccontextmanager
    async def opening(cls, url: str) -> Any:
        """On a pool, with a table to ask."""
        options = {"autocommit": True, "prepare_threshold": 0}
        pools = import_module("psycopg_pool")
        async with pools.AsyncConnectionPool(
            url, min_size=POOL, max_size=POOL, kwargs=options, open=False
        ) as pool:
            await pool.wait()
            async with pool.connection() as connection:
                await connection.execute("CREATE TABLE bare (number bigint PRIMARY KEY)")
            saver = cls()
            saver.pool = pool
            yield saver

    async def _go(self) -> None:
        async with self.pool.connection() as connection:
            await connection.execute("INSERT INTO bare VALUES (%s) ON CONFLICT DO NOTHING", (1,))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """One trip, and what memory holds."""
        await self._go()
        return self.get_tuple(config)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """One trip, and memory holds it."""
        await self._go()
        return self.put(config, checkpoint, metadata, new_versions)


CONTENDERS = {
    "DeltaSaver": Contender(DeltaSaver.from_conn_string),
    "DeltaSaver, async": Contender(DeltaSaver.from_conn_string, on_loop=True),
    "PostgresSaver": Contender(_postgres_saver),
    "AsyncPostgresSaver": Contender(_async_postgres_saver(), on_loop=True),
    "AsyncPostgresSaver, checked": Contender(_async_postgres_saver(checked=True), on_loop=True),
    "bare trips": Contender(BareTrips.opening, on_loop=True),
}
"""By name."""


class Talks:
    """Conversations with a graph on a contender's saver; async ones keep one event loop."""

    def __init__(self, contender: Contender, url: str) -> None:
        self._stack = ExitStack()
        self._runner = runner = (
            self._stack.enter_context(asyncio.Runner()) if contender.on_loop else None
        )
        opening = contender.open(url)
        if runner is None:
            saver = self._stack.enter_context(cast(AbstractContextManager[Any], opening))
        else:
            awaited = cast(AbstractAsyncContextManager[Any], opening)
            saver = runner.run(awaited.__aenter__())
            self._stack.callback(lambda: runner.run(awaited.__aexit__(None, None, None)))
        self._graph = conversation(
            Opened(saver), replies(SHORT, rich=False), on_loop=contender.on_loop
        )

    def say(self, messages: Sequence[BaseMessage], name: object) -> None:
        """One turn on a thread."""
        if self._runner is None:
            self._graph.invoke({"messages": messages}, thread(name))
        else:
            # Not by the runner's own `run`: that handles signals, and on the way writes out what
            # the turn has returned, for milliseconds.
            self._runner.get_loop().run_until_complete(
                self._graph.ainvoke({"messages": messages}, thread(name))
            )

    def close(self) -> None:
        """Close the checkpointer."""
        self._stack.close()


# -- the work --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """What each contender does.

    Attributes:
        server: URL of the server.
        messages: How long its threads are, one after another.
        delays_ms: How much longer a round trip takes than without a network.
        turns: How many are measured at each length and delay.
    """

    server: str
    messages: tuple[int, ...]
    delays_ms: tuple[float, ...]
    turns: int

    def begins_with(self, messages: int) -> int:
        """The length a thread starts with, to reach `messages` halfway through the turns."""
        return max(1, messages - 3 - TURNS_OF_A_THREAD * len(self.delays_ms))


def place(messages: int, delay_ms: float) -> str:
    """How a measuring point is called."""
    return f"{messages:,} messages, {delay_ms:g} ms"


def work(contender: str, plan: Plan, folder: Path) -> Work:
    """Turns on threads of each length, with each delay in turns."""
    found: dict[str, list[float]] = defaultdict(list)
    said = humans(SHORT)
    with ExitStack() as stack:
        url = stack.enter_context(new_database(plan.server))
        proxy = stack.enter_context(closing(ProxyApart(url)))
        backends = stack.enter_context(closing(Backends(url)))
        talks = stack.enter_context(closing(Talks(CONTENDERS[contender], proxy.url)))
        for messages, number in product(plan.messages, range(plan.turns)):
            name = f"{messages}-{number // TURNS_OF_A_THREAD}"
            if number % TURNS_OF_A_THREAD == 0:
                proxy.set_delay(0)
                talks.say(dialogue(plan.begins_with(messages)), name)
                talks.say([next(said)], name)
            # None is always the one on the longer thread.
            for delay_ms in plan.delays_ms if number % 2 else plan.delays_ms[::-1]:
                proxy.set_delay(delay_ms / 2000)
                counts, cpu = proxy.counts(), backends.cpu_ms()
                yield Step(
                    f"turn@{place(messages, delay_ms)}", partial(talks.say, [next(said)], name)
                )
                for what, value in counted(proxy, backends, counts, cpu).items():
                    found[f"{what}@{place(messages, delay_ms)}"].append(value)
    return {name: mean(values) for name, values in found.items()}


def counted(proxy: ProxyApart, backends: Backends, counts: Counts, cpu: float | None) -> Figures:
    """What a turn took beside its time."""
    spent, after = proxy.counts() - counts, backends.cpu_ms()
    figures = {
        name: float(value)
        for name, value in dataclasses.asdict(spent).items()
        if name != "connections"
    }
    return figures if cpu is None or after is None else figures | {"server_cpu_ms": after - cpu}


SELECT_BACKENDS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client"
    " backend' AND pid <> pg_backend_pid()"
)


class Backends:
    """The processes of a server that work for a database."""

    def __init__(self, url: str) -> None:
        self._connection = import_module("psycopg").connect(url, autocommit=True)

    def cpu_ms(self) -> float | None:
        """The CPU time of the backends so far, but for ended ones; None if unknown."""
        if not Path("/proc/self/schedstat").exists():
            return None
        taken = 0
        for (pid,) in self._connection.execute(SELECT_BACKENDS):
            with suppress(OSError):
                taken += int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
        return taken / 1e6

    def close(self) -> None:
        """Look no more."""
        self._connection.close()


# -- the report ------------------------------------------------------------------------------------

COLUMNS = {
    "trips": ("trips", "{:.1f}"),
    "syncs": ("syncs", "{:.1f}"),
    "statements": ("statements", "{:.1f}"),
    "bytes_up": ("bytes up", "{:,.0f}"),
    "bytes_down": ("bytes down", "{:,.0f}"),
    "turn_wall_ms": ("p50 ms", "{:.1f}"),
    "turn_p99_ms": ("p99 ms", "{:.1f}"),
    "turn_cpu_mean_ms": ("client CPU ms", "{:.2f}"),
    "server_cpu_ms": ("server CPU ms", "{:.2f}"),
}
"""Of a turn: means, but medians of times; p99 of 50 turns or more. A median of CPU would not show
what the garbage collector takes."""


def report(figures: Mapping[str, Figures], plan: Plan) -> Iterator[str]:
    """A table for each measuring point."""
    widest = max(map(len, figures), default=0)
    for messages in plan.messages:
        for delay_ms in plan.delays_ms:
            point = place(messages, delay_ms)
            yield f"\n{point}"
            yield " " * widest + "".join(f"{title:>15}" for title, _ in COLUMNS.values())
            for name, found in figures.items():
                values = {what: found.get(f"{what}@{point}") for what in COLUMNS}
                cells = (
                    "–" if value is None else COLUMNS[what][1].format(value)
                    for what, value in values.items()
                )
                yield f"{name:{widest}}" + "".join(f"{cell:>15}" for cell in cells)


def measure(plan: Plan, names: Sequence[str]) -> tuple[dict[str, Figures], dict[str, str]]:
    """Let the contenders take turns: figures and errors by name."""
    with TemporaryDirectory() as folder, ExitStack() as lanes:
        begun = {
            name: lanes.enter_context(closing(Apart(partial(work, name, plan), Path(folder))))
            for name in names
        }
        # All turns of a thread, as the other shapes have it: a server that has just got the
        # processor is not a busy one.
        samples, figures, errors = race(begun, burst=TURNS_OF_A_THREAD * len(plan.delays_ms))
    return {
        name: figures[name] | summary(samples[name]) | means(samples[name]) for name in figures
    }, errors


def means(samples: Sequence[Sample]) -> Figures:
    """Means of the client's CPU, of each kind of steps."""
    kinds: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        if sample.kind:
            name, at, mark = sample.kind.partition("@")
            kinds[f"{name}_cpu_mean_ms{at}{mark}"].append(sample.cpu * 1000)
    return {name: mean(found) for name, found in kinds.items()}


def main() -> int:
    args = arguments().parse_args()
    if missing := [
        name
        for name in ("psycopg", "psycopg_pool", "langgraph.checkpoint.postgres")
        if not find_spec(name)
    ]:
        print(
            f"{', '.join(missing)} not installed: pip install langgraph-checkpoint-postgres"
            " 'psycopg[binary,pool]'",
            file=sys.stderr,
        )
        return 2
    plan = Plan(args.server, tuple(args.messages), tuple(args.delay_ms), args.turns)
    before = load()
    figures, errors = measure(plan, args.contenders)
    found = {
        "figures": figures,
        "errors": errors,
        "plan": dataclasses.asdict(plan) | {"server": "postgresql://"},
    }
    results.tell(
        "postgres-peers", found, before, as_json=args.json, record=args.record and not errors
    )
    if not args.json:
        print("\n".join(report(figures, plan)))
        print(f"\nload {before} before, {load()} after; {machine().cores} cores")
    for name, text in errors.items():
        print(f"{name}: {text}", file=sys.stderr)
    return 1 if errors else 0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.postgres_peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--server",
        default=os.environ.get(POSTGRES, SERVER),
        metavar="URL",
        help="where databases may be made and dropped",
    )
    parser.add_argument(
        "--messages",
        type=int,
        nargs="+",
        default=[20, 1600],
        metavar="N",
        help="lengths of the threads",
    )
    parser.add_argument(
        "--turns", type=int, default=60, help="measured turns at each length and delay"
    )
    parser.add_argument(
        "--delay-ms",
        type=float,
        nargs="+",
        default=[0, 2],
        metavar="MS",
        help="round trips of the network",
    )
    parser.add_argument(
        "--contenders",
        nargs="+",
        choices=CONTENDERS,
        default=list(CONTENDERS),
        metavar="NAME",
        help=", ".join(CONTENDERS),
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
