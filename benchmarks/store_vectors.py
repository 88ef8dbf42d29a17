"""Measure each way in which `DeltaStore` compares vectors, in turns on one database.

    python -m benchmarks.store_vectors [postgresql://user@host/name …] [--vectors 10000]

Queries by vectors of 384 numbers, over all items and in a namespace of 100. A way that this machine
has not (an SQLite that loads sqlite-vec, a server with pgvector) is left out. Milliseconds of a
query, medians: CPU of this process, CPU of the server's where it is on this machine, and wall.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from unittest.mock import patch
from uuid import uuid4

import psycopg

from benchmarks.store import fill, index, namespace
from langmem_ext import DeltaStore, MessageLog
from langmem_ext.log.message_log import is_server
from langmem_ext.store import vectors

WAYS = ("numpy", "by the database", "one by one")
ROUNDS = 9


@dataclass
class Place:
    """A database that is measured, and who does its work.

    Attributes:
        spent: By way and query, what each round took: CPU here, CPU of the server, wall.
    """

    url: str
    pids: Sequence[int] = ()
    spent: dict[tuple[str, str], list[tuple[float, ...]]] = field(default_factory=dict)

    def now(self) -> tuple[float, ...]:
        """Milliseconds so far."""
        server = sum(
            int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in self.pids
        )
        return time.process_time() * 1e3, server / 1e6, time.perf_counter() * 1e3


def going_by(way: str) -> AbstractContextManager[object]:
    """Stores that are made, and asked, meanwhile compare vectors in this way."""
    return patch.object(vectors, "HAS_NUMPY", way == "numpy")


def measure(place: Place, count: int) -> None:
    with closing(MessageLog.open(place.url)) as log:
        fill(DeltaStore(log, index=index()), count)
        stores: dict[str, DeltaStore] = {}
        for way in WAYS:
            with going_by(way):
                stores[way] = store = DeltaStore(log, index=index(), hybrid=False)
                store.search((), query="flight")
                if way == "one by one":
                    store._vectors.by_database = False
        if not stores["by the database"]._vectors.by_database:
            del stores["by the database"]
        if is_server(place.url):
            place.pids = _backends(place.url)
        for turn in range(ROUNDS + 2):
            for way, store in stores.items():
                for what, ask in (
                    ("all", partial(store.search, ())),
                    ("a namespace", partial(store.search, namespace(turn))),
                ):
                    with going_by(way):
                        before = place.now()
                        ask(query=f"flight {turn}", limit=10)
                        after = place.now()
                    taken = tuple(b - a for a, b in zip(before, after, strict=True))
                    if turn >= 2:  # the first ones warm up
                        place.spent.setdefault((way, what), []).append(taken)


def _backends(url: str) -> list[int]:
    """The processes that serve this one, where they are on this machine."""
    with psycopg.connect(url.partition("?")[0]) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND"
            " application_name = 'langmem-ext'"
        ).fetchall()
    return [pid for (pid,) in rows if Path(f"/proc/{pid}/schedstat").exists()]


def _drop(url: str) -> None:
    server, _, schema = url.partition("?schema=")
    with psycopg.connect(server) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("urls", nargs="*")
    parser.add_argument("--vectors", type=int, default=10_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        urls = [f"{url}?schema=vectors_{uuid4().hex[:8]}" for url in args.urls]
        for place in (Place(str(Path(folder) / "memory.db")), *map(Place, urls)):
            measure(place, args.vectors)
            if is_server(place.url):
                _drop(place.url)
            print(f"{'PostgreSQL' if is_server(place.url) else 'SQLite':16}  CPU / server / wall")
            for (way, what), rounds in place.spent.items():
                figures = " / ".join(f"{median(part):.2f}" for part in zip(*rounds, strict=True))
                print(f"{way:16}  {what:12} {figures}")


if __name__ == "__main__":
    main()
