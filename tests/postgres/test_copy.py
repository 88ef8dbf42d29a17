"""A store moves from SQLite to PostgreSQL and back, and every checkpoint is the same in all three."""

from __future__ import annotations

from pathlib import Path

import pytest
from forgotten import assert_sound, everything
from langchain_core.messages import HumanMessage

from benchmarks.proxy import Proxy
from langmem_ext import DeltaSaver, Threads, copy_saver
from postgres.server import SHARED, Database
from postgres.test_failures import talk


def test_a_copy_to_postgres_and_one_of_it_back_have_the_same_checkpoints(database: Database, tmp_path: Path) -> None:
    with (
        DeltaSaver.open(str(tmp_path / "here.db")) as here,
        DeltaSaver.open(f"{database.url}?schema={SHARED.new_schema()}") as there,
        DeltaSaver.open(str(tmp_path / "back.db")) as back,
    ):
        for number in range(4):
            for name in ("a", "b"):
                talk(here).invoke({"messages": [HumanMessage(f"turn {number}")]}, {"configurable": {"thread_id": name}})
        head = here.get_tuple({"configurable": {"thread_id": "a"}})
        assert head is not None
        here.put_writes(head.config, [("messages", HumanMessage("not yet", id="n")), ("other", {"k": 1})], "task")
        copy_saver(here, there)
        copy_saver(there, back)
        assert len(everything(here)) == 24
        assert everything(here) == everything(there) == everything(back)
        for saver in (here, there, back):
            talk(saver).invoke({"messages": [HumanMessage("and on", id="m")]}, {"configurable": {"thread_id": "b"}})
            assert_sound(saver)


@pytest.mark.parametrize(("threads", "turns"), [(2, 20), (40, 1)])
def test_a_copy_takes_a_few_round_trips_for_many_checkpoints(database: Database, tmp_path: Path, threads: int, turns: int) -> None:
    schema = f"?schema={SHARED.new_schema()}"
    with DeltaSaver.open(str(tmp_path / "here.db")) as here, Proxy(f"{database.url}{schema}") as proxy:
        for number in range(threads):
            for turn in range(turns):
                talk(here).invoke({"messages": [HumanMessage(f"turn {turn}")]}, {"configurable": {"thread_id": f"t{number}"}})
        with DeltaSaver.open(proxy.url) as there:
            before = proxy.counts().trips
            assert copy_saver(here, there).checkpoints == threads * turns * 3
            # One to see that nothing is there, and each time that 64 checkpoints are put, to see which threads are not, and to put them.
            assert proxy.counts().trips - before <= 12
            assert everything(there) == everything(here)


@pytest.mark.parametrize("keep_ids", [True, False])
def test_threads_of_a_file_are_stored_by_two_round_trips_each(database: Database, tmp_path: Path, keep_ids: bool) -> None:
    path = str(tmp_path / "threads.jsonl")
    with DeltaSaver.open(str(tmp_path / "here.db")) as here, Proxy(f"{database.url}?schema={SHARED.new_schema()}") as proxy:
        for number in range(10):
            talk(here).invoke({"messages": [HumanMessage("hello")]}, {"configurable": {"thread_id": f"t{number}"}})
        Threads(here).export_to(path)
        with DeltaSaver.open(proxy.url) as there:
            before = proxy.counts().trips
            imported = Threads(there).import_from(path, keep_ids=keep_ids)
            assert proxy.counts().trips - before <= 10 * (3 if keep_ids else 2)
            assert len(imported.ids) == 10
            if keep_ids:
                assert everything(there) == everything(here)
                again = Threads(there).import_from(path, keep_ids=True)
                assert (len(again.skipped), len(again.ids)) == (10, 0)
            assert_sound(there)
