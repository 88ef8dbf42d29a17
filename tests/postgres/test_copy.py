"""A store moves from SQLite to PostgreSQL and back, and every checkpoint is the same in all three."""

from __future__ import annotations

from pathlib import Path

from forgotten import assert_sound, everything
from langchain_core.messages import HumanMessage

from langmem_ext import DeltaSaver, copy_saver
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
