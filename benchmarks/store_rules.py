"""Which rules of the conformance suite LangGraph's stores keep, as docs/guide/store.md tells it.

    python -m benchmarks.store_rules [--programs N] [--postgres URL]

A database on the server must be there, and is only used for this: its tables of a store are
dropped. Rules about time sleep in earnest, for two minutes a store.
"""

from __future__ import annotations

import argparse
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from langmem_ext import DeltaStore
from langmem_ext.testing.store import Capability, StoreReport, run_store_suite

MINUTE = 0.02
"""Minutes of real time that the rules take for one: these stores look at whole seconds."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--postgres", help="URL of a database for PostgresStore and DeltaStore")
    args = parser.parse_args()
    timed: set[Capability] = {"ttl", "index", "order"}
    # sqlite-vec is an extension of SQLite, which not every Python can load.
    loads = hasattr(sqlite3.Connection, "enable_load_extension")
    show(
        "InMemoryStore",
        run(lambda **o: InMemoryStore(**o), {"index", "order", "async"}, args.programs),
    )
    show("SqliteStore", run(sqlite_store, timed if loads else timed - {"index"}, args.programs))
    show(
        "DeltaStore",
        run(lambda **o: DeltaStore(**o), timed | {"async"}, args.programs, minute=0.001),
    )
    if args.postgres:
        show("PostgresStore", run(postgres_store(args.postgres), {"ttl"}, args.programs))


def run(
    make: Callable[..., Any],
    capabilities: set[Capability],
    programs: int,
    *,
    minute: float = MINUTE,
) -> StoreReport:
    return run_store_suite(
        make,
        capabilities=capabilities,
        programs=programs,
        shorten=False,
        advance=lambda minutes: time.sleep(minutes * 60),
        minute=minute,
    )


@contextmanager
def sqlite_store(**options: Any) -> Iterator[BaseStore]:
    with SqliteStore.from_conn_string(":memory:", **options) as store:
        store.setup()
        yield store


def postgres_store(url: str) -> Callable[..., Any]:
    """Makes stores without vectors: these need the extension pgvector on the server."""
    import psycopg  # noqa: PLC0415 (an extra)
    from langgraph.store.postgres import PostgresStore  # noqa: PLC0415 (only where it is asked for)

    @contextmanager
    def make(**options: Any) -> Iterator[BaseStore]:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS store, store_migrations")
        with PostgresStore.from_conn_string(url, **options) as store:
            store.setup()
            yield store

    return make


def show(name: str, report: StoreReport) -> None:
    rules = [one for one in report.results if not one.name.startswith("program")]
    programs = [one for one in report.results if one.name.startswith("program")]
    kept = [one for one in rules if one.problem is None and not one.skipped]
    differ = sum(one.problem is not None for one in programs)
    skipped = sum(one.skipped for one in rules)
    print(
        f"\n{name}: {len(kept)} of {len(rules) - skipped} rules kept; {differ} of {len(programs)}"
        " programs differ"
    )
    for one in rules:
        if one.problem is not None:
            print(f"  {one.name} ({one.mode}): {one.problem.splitlines()[0][:200]}")


if __name__ == "__main__":
    main()
