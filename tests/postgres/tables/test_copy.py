"""A store moves from SQLite to PostgreSQL and back, and every checkpoint is the same in all three;
it takes few round trips either way.
"""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from proxy import Proxy
from prune_reference import assert_sound, everything

from langmem_ext import DeltaSaver, Threads, acopy_saver, copy_saver
from postgres.failures.test_failures import talk
from postgres.server import SHARED, Database


def config_of(thread: str, checkpoint_id: str | None = None, namespace: str = "") -> RunnableConfig:
    named = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, **named}}


def keep(
    saver: DeltaSaver, thread: str, values: Sequence[dict[str, Any]], namespace: str = ""
) -> list[RunnableConfig]:
    """Put checkpoints, one after the other, with all of their values new; what names them."""
    config, kept = config_of(thread, namespace=namespace), []
    for number, held in enumerate(values):
        versions = dict.fromkeys(held, f"{number + 1:032}.0")
        checkpoint: Any = empty_checkpoint() | {
            "channel_values": held,
            "channel_versions": versions,
        }
        config = saver.put(config, checkpoint, {"step": number}, versions)
        kept.append(config)
    return kept


def growing(turns: int) -> list[dict[str, Any]]:
    """A conversation with a large value that changes, one that grows, and one that stays."""
    said = [HumanMessage(f"turn {number}", id=f"h{number}") for number in range(turns)]
    notes = {f"note {number}": "n" * 100 for number in range(turns)}
    return [
        {
            "messages": said[: at + 1],
            "notes": dict(list(notes.items())[: at + 1]),
            "work": f"{at} " * 100,
            "kept": "k" * 500,
        }
        for at in range(turns)
    ]


def test_a_copy_to_postgres_and_one_of_it_back_have_the_same_checkpoints(
    database: Database, tmp_path: Path
) -> None:
    with (
        DeltaSaver.open(str(tmp_path / "here.db")) as here,
        DeltaSaver.open(f"{database.url}?schema={SHARED.new_schema()}") as there,
        DeltaSaver.open(str(tmp_path / "back.db")) as back,
    ):
        for number in range(4):
            for name in ("a", "b"):
                talk(here).invoke(
                    {"messages": [HumanMessage(f"turn {number}")]},
                    {"configurable": {"thread_id": name}},
                )
        head = here.get_tuple({"configurable": {"thread_id": "a"}})
        assert head is not None
        here.put_writes(
            head.config,
            [("messages", HumanMessage("not yet", id="n")), ("other", {"k": 1})],
            "task",
        )
        copy_saver(here, there)
        copy_saver(there, back)
        assert len(everything(here)) == 24
        assert everything(here) == everything(there) == everything(back)
        for saver in (here, there, back):
            talk(saver).invoke(
                {"messages": [HumanMessage("and on", id="m")]}, {"configurable": {"thread_id": "b"}}
            )
            assert_sound(saver)


def test_threads_that_move_to_postgres_and_back_keep_whose_they_are_and_what_people_gave_them(
    database: Database, tmp_path: Path
) -> None:
    with (
        DeltaSaver.open(str(tmp_path / "here.db")) as here,
        DeltaSaver.open(f"{database.url}?schema={SHARED.new_schema()}") as there,
        DeltaSaver.open(str(tmp_path / "back.db")) as back,
    ):
        for owner in ("alice", "bob"):
            for name in ("a", "b"):
                talk(here.for_owner(owner)).invoke(
                    {"messages": [HumanMessage("hello")]}, config_of(f"{owner}'s {name}")
                )
            threads = Threads(here, owner=owner)
            threads.rename(f"{owner}'s a", "Where is it?")
            threads.tag(f"{owner}'s a", "vip", "late")
            threads.note(f"{owner}'s a", {"desk": 3})
            threads.archive(f"{owner}'s b")
        for number, (source, target) in enumerate([(here, there), (there, back)]):
            path = str(tmp_path / f"{number}.jsonl.gz")
            Threads(source).export_to(path)
            assert len(Threads(target).import_from(path, keep_ids=True, keep_owners=True).ids) == 4
        assert everything(here) == everything(there) == everything(back)
        # The number is the store's own.
        found = [
            {thread.id: replace(thread, number=0) for thread in Threads(saver).list(status=None)}
            for saver in (here, there, back)
        ]
        assert found[0] == found[1] == found[2]
        assert [found[0][f"bob's {name}"].title for name in ("a", "b")] == ["Where is it?", "hello"]
        assert {thread.id for thread in Threads(there, owner="bob").list(status=None)} == {
            "bob's a",
            "bob's b",
        }
        assert_sound(there)


def varied(saver: DeltaSaver) -> None:
    """Threads with namespaces, a fork, and pending writes of several tasks, with paths and with
    LangGraph's own channels.
    """
    for thread in ("a", "b"):
        root = keep(saver, thread, growing(5))
        child = keep(saver, thread, growing(3), "child:1")
        saver.put(root[1], empty_checkpoint(), {"step": 2, "source": "fork"}, {})
        for config in (*root[::2], child[0]):
            saver.put_writes(
                config,
                [("messages", AIMessage("so far")), ("work", {"w": "w" * 100})],
                "task 2",
                "~1",
            )
            saver.put_writes(config, [("work", 1), ("other", [2])], "task 1", "~2")
            saver.put_writes(config, [("__interrupt__", "go on?")], "task 1", "~2")


# -- out -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("awaited", [False, True])
@pytest.mark.parametrize(("threads", "turns"), [(2, 60), (40, 3)])
def test_a_copy_out_of_postgres_takes_a_few_round_trips_for_many_checkpoints(
    database: Database, tmp_path: Path, threads: int, turns: int, awaited: bool
) -> None:
    url = f"{database.url}?schema={SHARED.new_schema()}"
    with DeltaSaver.open(url) as filled:
        for number in range(threads):
            configs = keep(filled, f"t{number}", growing(turns))
            filled.put_writes(
                configs[-1], [("messages", AIMessage("not yet")), ("work", "w" * 200)], "task"
            )
        expected = everything(filled)
    with (
        Proxy(url) as proxy,
        DeltaSaver.open(proxy.url) as here,
        DeltaSaver.open(str(tmp_path / "there.db")) as there,
    ):
        before = proxy.counts().trips
        copied = asyncio.run(acopy_saver(here, there)) if awaited else copy_saver(here, there)
        assert copied.checkpoints == threads * turns == 120
        # To see which threads there are, what they have, and to read it: the rows, how large what
        # they refer to is, and that.
        assert proxy.counts().trips - before <= 12
        assert everything(there) == expected


def test_many_checkpoints_are_read_as_each_is_by_itself(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        varied(saver)
        keep(saver, "long", growing(70))
        listed = [found.config for found in saver.list(None)]
        configs = [
            *listed[::2],
            config_of("a"),
            config_of("nobody"),
            config_of("a", "no-id"),
            config_of("a", namespace="no-name"),
            *listed,
        ]
        hidden: RunnableConfig = {"configurable": {**listed[0]["configurable"], "owner": "another"}}
        configs[3:3] = [hidden, listed[-1], listed[-1]]
        expected = [saver.get_tuple(config) for config in configs]
        assert sum(found is None for found in expected) == 4
        for _ in range(2):  # by one who knows nothing of them, and by one who knows
            saver.log.caches.forget()
            assert list(saver.get_all(configs)) == expected
            assert list(saver.get_all(configs)) == expected
        assert list(saver.for_owner("me").get_all(configs)) == [None] * len(configs)
        assert list(saver.get_all([])) == []

        async def read() -> list[CheckpointTuple | None]:
            return [found async for found in saver.aget_all(configs)]

        assert asyncio.run(read()) == expected


@pytest.mark.parametrize("kind", ["values", "writes"])
def test_large_checkpoints_that_are_read_together_do_not_pile_up_in_memory(
    url: str, kind: str
) -> None:
    large = [f"{at}" * 500_000 for at in range(10, 74)]
    with DeltaSaver.open(url) as saver:
        configs = keep(saver, "t", [{"work": body} if kind == "values" else {} for body in large])
        for config, body in zip(configs if kind == "writes" else (), large, strict=False):
            saver.put_writes(config, [("work", body)], "task")
    with DeltaSaver.open(url) as saver:
        tracemalloc.start()
        try:
            assert sum(found is not None for found in saver.get_all(configs)) == len(configs)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 40_000_000 < sum(map(len, large))


def test_an_outline_names_what_a_list_gives(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        varied(saver)
        mine = saver.for_owner("me")
        keep(mine, "mine", growing(3))
        for number, config in enumerate(keep(saver, "long", [{}] * 300)):
            saver.put_writes(config, [("a", number), ("b", number)], f"task {number % 2}")
        for thread_ids in (None, ["a", "nobody", "long"], []):
            for one in (saver, mine):
                listed = [
                    found
                    for found in one.list(None)
                    if thread_ids is None or found.config["configurable"]["thread_id"] in thread_ids
                ]
                expected = [
                    (
                        found.config,
                        [(task, channel) for task, channel, _ in found.pending_writes or ()],
                    )
                    for found in listed
                ]
                for outline in (one.outline(thread_ids), asyncio.run(one.aoutline(thread_ids))):
                    assert sorted(outline, key=str) == sorted(expected, key=str)
        assert len(mine.outline()) == 3
