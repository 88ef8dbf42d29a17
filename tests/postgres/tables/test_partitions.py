"""Promise: shared out among partitions by their threads, a database is what it was, and what is
done with one thread meets one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from promises.test_conformance import conform
from promises.test_equivalence import drive
from prune_reference import assert_sound
from savers import Backend, Mode, new_schema

from langmem_ext import DeltaSaver, InvalidInput, Threads, stats
from langmem_ext.storage.rows.ids import thread_number
from postgres.cluster import Cluster
from postgres.hot_path import STEPS, say, texts
from postgres.server import SHARED, Database
from postgres.tables.plans import SETTINGS, Log, Plan

COUNT = 16
THREADS = "abcdef"
WRITTEN = ("thread", "word", "item", "checkpoint", "pending_write")
"""Tables of which every thread of these tests has rows."""

PARTITIONED = Backend(
    "partitioned",
    survives_close=True,
    new_url=lambda folder: f"{new_schema(folder)}&partitions={COUNT}",
)


async def test_the_conformance_suite_passes_on_partitions(mode: Mode, folder: Path) -> None:
    url = PARTITIONED.new_url(folder)  # its tests use threads of their own
    await conform(replace(PARTITIONED, new_url=lambda folder: url), mode, folder)


@pytest.mark.soak
def test_whatever_is_done_reads_back_from_partitions_as_on_langgraphs_saver(
    mode: Mode, folder: Path
) -> None:
    drive(PARTITIONED, mode, folder, 4)


def test_what_looks_at_all_threads_finds_them_in_every_partition(database: Database) -> None:
    bytes_of = {}
    for partitions in (0, COUNT):
        with DeltaSaver.open(
            f"{database.url}?schema={SHARED.new_schema()}&partitions={partitions}"
        ) as saver:
            for thread in THREADS:
                say(saver, thread)
            assert {thread.id for thread in Threads(saver).list()} == set(THREADS)
            assert len(list(saver.list(None))) == 3 * len(THREADS)
            assert_sound(saver)
            bytes_of[partitions] = stats(saver).bytes
            saver.delete_thread(THREADS[0])
            saver.compact(full=True)
            assert_sound(saver)
    assert [kind for kind, size in bytes_of[COUNT].items() if size] == [
        kind for kind, size in bytes_of[0].items() if size
    ]
    assert (
        bytes_of[COUNT]["other"] == bytes_of[0]["other"]
    )  # what belongs to no kind: a table's name that is not known


def test_every_table_with_rows_of_threads_has_partitions(database: Database) -> None:
    schema = SHARED.new_schema()
    DeltaSaver.open(f"{database.url}?schema={schema}&partitions=2").close()
    with psycopg.connect(database.url) as connection:
        kinds = (
            "SELECT relkind, relname FROM pg_class WHERE relnamespace = %s::regnamespace AND NOT"
            " relispartition AND relkind IN ('r', 'p')"
        )
        tables = connection.execute(kinds, [schema]).fetchall()
    assert {name for kind, name in tables if kind == "p"} >= {*WRITTEN, "value", "namespace"}
    assert {name for kind, name in tables if kind == "r"} == {
        "setting",
        "grantee",
        "langmem_migration",
        "store_item",
        "store_thread",
        "store_vector",
        "tombstone",
    }


@pytest.mark.parametrize("there", ["", "&partitions=4"])
def test_tables_keep_the_partitions_that_they_were_made_with(
    database: Database, there: str
) -> None:
    url = f"{database.url}?schema={SHARED.new_schema()}"
    with DeltaSaver.open(url + there) as saver:
        say(saver, "t")
    with pytest.raises(InvalidInput, match=f"were made with {'4' if there else 'no'} partitions"):
        DeltaSaver.open(f"{url}&partitions=16")
    for same in (url, url + there):
        with DeltaSaver.open(same) as saver:
            assert len(texts(saver, "t")) == 2


# -- what one thread meets -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def explaining() -> Iterator[Cluster]:
    """A server that says how it carried out each statement."""
    with Cluster(settings=SETTINGS) as made:
        yield made


def homes_of(cluster: Cluster, schema: str, thread: str) -> dict[str, set[int]]:
    """Partitions that hold rows of a thread, by table."""
    found: dict[str, set[int]] = {}
    for table in (*WRITTEN, "value", "namespace"):
        column = "number" if table == "thread" else "thread"
        where = f"FROM {schema}.{table} WHERE {column} = {thread_number(thread)}"
        for (part,) in cluster.execute(f"SELECT DISTINCT tableoid::regclass::text {where}"):
            found.setdefault(table, set()).add(int(part.rpartition("_")[2]))
    return found


@pytest.mark.parametrize("plans", ["custom", "generic"])
def test_what_is_done_with_one_thread_meets_one_partition(explaining: Cluster, plans: str) -> None:
    options = f"-c%20plan_cache_mode%3Dforce_{plans}_plan"
    url = f"{explaining.url}?schema={plans}&partitions={COUNT}&options={options}"
    log, found, homes = Log(explaining.folder), list[Plan](), set[frozenset[int]]()
    with DeltaSaver.open(url) as saver:
        for thread in THREADS:  # statements are prepared when they come again
            log.plans()
            for step in STEPS.values():
                step(saver, thread)
                with DeltaSaver.open(url) as cold:
                    assert thread in texts(cold, thread)[0]
            if thread in "ef":
                saver.prune([thread])
                saver.delete_thread(thread)
            told = log.plans()
            assert [plan.sql for plan in told if len(plan.partitions) > 1] == []
            [home] = {
                plan.partitions for plan in told if plan.partitions
            }  # of each table the same one
            # An INSERT's plan does not say where its row goes.
            left = {} if thread in "ef" else dict.fromkeys(WRITTEN, set(home))
            assert {
                table: at
                for table, at in homes_of(explaining, plans, thread).items()
                if table in WRITTEN
            } == left
            homes.add(home)
            found += told
        Threads(saver).list()
        assert max(len(plan.partitions) for plan in log.plans()) == COUNT, (
            "that several are met would not be noticed"
        )
    assert len(homes) > 1
    assert {table for plan in found for table in plan.met} >= {*WRITTEN, "value", "namespace"}
    assert {plan.sql.split()[0] for plan in found} >= {
        "SELECT",
        "WITH",
        "INSERT",
        "UPDATE",
        "DELETE",
    }
    if (
        plans == "generic"
    ):  # has all partitions in it, and leaves out all but one when it is carried out
        assert all(
            plan.pruned for plan in found if plan.sql.startswith("SELECT") and plan.partitions
        )
