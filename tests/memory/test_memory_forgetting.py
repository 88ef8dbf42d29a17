"""What is deleted takes its memories along, and of an owner who is forgotten nothing is left."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from commands import call
from doubles import answering, called, talk
from langgraph.graph import MessagesState, StateGraph
from langgraph.runtime import Runtime

from langmem_ext import (
    DeltaSaver,
    DeltaStore,
    Facts,
    FactSource,
    InvalidInput,
    MemoryGenerator,
    MessageLog,
    ThreadDeleted,
    Threads,
    examine,
)

CANARIES = 1_000
CANARY = "canary"


@pytest.fixture
def db(tmp_path: Path) -> str:
    """A database in which Ann and Bob have talked, with a memory and a fact of each
    conversation.
    """
    path = str(tmp_path / "memory.db")
    with closing(MessageLog.open(path)) as log:
        remember(log)
    return path


def remember(log: MessageLog, names: tuple[str, ...] = ("ann", "bob")) -> None:
    for owner in names:
        for at in range(2):
            talk(
                log,
                f"{owner}-{at}",
                *[f"{CANARY}{owner}{number} is said" for number in range(at, CANARIES, 2)],
                owner=owner,
            )
    MemoryGenerator(log, answering(remembering), facts=True).generate_needing(idle=timedelta(0))


def remembering(prompt: str) -> dict[str, Any]:
    said = prompt.split("user: ")[1].split()[0]
    if "List what the user says" in prompt:
        return {"facts": [{"subject": "canary", "text": f"Said {said}", "messages": [1]}]}
    return {"main_topics": [said]}


def bytes_of(path: str) -> bytes:
    return b"".join(file.read_bytes() for file in Path(path).parent.glob(f"{Path(path).name}*"))


async def test_of_an_owner_who_is_forgotten_nothing_is_left(
    db: str, mode: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    temporary = Path(db).parent / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    for kind in (["store", "export"], ["threads", "export", "--all"]):
        run(db, *kind, "--to", f"{kind[0]}.jsonl.gz")
    with closing(MessageLog.open(db)) as log:
        failing = MemoryGenerator(log, answering("canaryann1, which is no memory"), facts=True)
        assert (await called(mode, failing, "generate", "ann-0")).outcome == "failed"
        threads = Threads(log)
        assert threads.search("canaryann1")
        assert b"canaryann" in bytes_of(db)
        pruned = await called(mode, threads, "forget_owner", "ann")
        assert (pruned.threads, pruned.items) == (2, CANARIES)
        assert pruned.store_items == 2 + 2 + 2 + 1, "memories, facts, how far was read, a failure"
        assert threads.search("canaryann1") == []
        assert b"canaryann" not in bytes_of(db), "nor in what was not checkpointed"
        assert (await called(mode, threads, "forget_owner", "ann")).threads == 0
        assert threads.count(owner="bob") == 2
        assert len(DeltaStore(log, owner="bob").search(())) == 6
        with pytest.raises(InvalidInput, match="another owner"):
            await called(mode, Threads(log, owner="bob"), "forget_owner", "ann")
    assert b"canaryann" not in bytes_of(db)
    assert "canaryann" not in caplog.text
    assert list(temporary.iterdir()) == []
    assert bytes_of(db).count(b"canarybob") >= CANARIES


async def test_what_is_under_way_brings_nothing_back(db: str, mode: str) -> None:
    with closing(MessageLog.open(db)) as log:

        def answer(prompt: str) -> dict[str, Any]:
            Threads(log).forget_owner("ann")
            return remembering(prompt)

        generator = MemoryGenerator(log, answering(answer), facts=True, concurrency=1)
        report = await called(mode, generator, "generate_for_owner", "ann", only_needing=False)
        assert (report.written, report.gone) == (0, 2)
        assert DeltaStore(log, owner="ann").search(()) == []
        log.compact()
        assert b"canaryann" not in bytes_of(db)


def run(db: str, *words: str, code: int = 0) -> Any:
    done = call([*words, "--db", db], environment=dict(os.environ), folder=Path(db).parent)
    assert done.returncode == code, done.stderr
    return done


def test_the_command_forgets_an_owner_and_says_what_it_deleted(db: str) -> None:
    assert "--yes" in run(db, "forget", "--owner", "ann", code=2).stderr
    assert b"canaryann" in bytes_of(db)
    said = json.loads(run(db, "forget", "--owner", "ann", "--yes", "--json").stdout)
    assert (said["threads"], said["items"], said["store_items"]) == (2, CANARIES, 6)
    assert b"canaryann" not in bytes_of(db)
    assert "0 threads" in run(db, "forget", "--owner", "ann", "--yes").stderr


def test_commands_that_delete_conversations_delete_what_is_remembered_of_them(db: str) -> None:
    run(db, "threads", "delete", "ann-0", "--yes")
    with closing(MessageLog.open(db)) as log:
        assert {item.key for item in DeltaStore(log).search(("memory", "threads"))} == {
            "ann-1",
            "bob-0",
            "bob-1",
        }
        assert [
            fact.text for fact in Facts(DeltaStore(log), owner="ann").recall(superseded=True)
        ] == ["Said canaryann1"]
    run(db, "prune", "--older-than", "0.0000001", "--yes")
    with closing(MessageLog.open(db)) as log:
        assert DeltaStore(log).search(()) == []


async def test_what_stands_on_a_thread_alone_is_deleted_in_its_own_transaction(
    url: str, mode: str
) -> None:
    with closing(MessageLog.open(url)) as log:
        remember(log, ("ann",))
        facts = Facts(DeltaStore(log), owner="ann")
        both = [FactSource("ann-0", "m"), FactSource("ann-1", "m")]
        await called(mode, facts, "remember", "Said in both", sources=both)
        await called(mode, facts, "remember", "Said in none")
        await called(mode, DeltaSaver(log), "delete_thread", "ann-0")
        assert texts(facts) == {"Said canaryann1", "Said in both", "Said in none"}
        assert [item.key for item in DeltaStore(log).search(("memory", "threads"))] == ["ann-1"]
        await called(mode, Threads(log), "prune", older_than=timedelta(microseconds=1))
        assert texts(facts) == {"Said in none"}
        assert len(DeltaStore(log).search(())) == 1
        assert examine(log).findings == ()


def texts(facts: Facts) -> set[str]:
    return {fact.text for fact in facts.recall(superseded=True)}


def test_what_stands_on_a_thread_stays_with_it_through_an_export(db: str) -> None:
    with closing(MessageLog.open(db)) as log, DeltaStore.open(":memory:") as other:
        other.import_lines(DeltaStore(log).export_lines())
        for at in range(2):
            talk(other.log, f"ann-{at}", "hello", owner="ann")
        assert Threads(other).delete("ann-0").store_items == 3
        assert Facts(other, owner="ann").recall(superseded=True)[0].text == "Said canaryann1"


@pytest.mark.parametrize("count", [20, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_runs_that_are_under_way_when_an_owner_is_forgotten_bring_nothing_back(
    count: int, tmp_path: Path
) -> None:
    db = str(tmp_path / "memory.db")
    with closing(MessageLog.open(db, synchronous="normal")) as log:
        saver, anew = DeltaSaver(log, owner="ann"), asyncio.Event()
        facts, waiting = Facts(saver.store, owner="ann"), asyncio.Semaphore(0)

        async def node(state: MessagesState, runtime: Runtime) -> Any:
            said = str(state["messages"][-1].content)
            waiting.release()
            await anew.wait()
            assert runtime.store is not None
            for late in (
                runtime.store.aput(("notes",), said, {"text": said}),
                facts.aremember(said, sources=[FactSource(said, "m")]),
                asyncio.to_thread(facts.remember, said),
            ):
                with pytest.raises(ThreadDeleted):
                    await late
            return {"messages": [("ai", f"{said} answered")]}

        graph = StateGraph(MessagesState).add_node(node).set_entry_point("node")
        app = graph.compile(checkpointer=saver, store=saver.store)

        async def run(at: int) -> None:
            config: Any = {"configurable": {"thread_id": f"t{at}"}}
            said = {"messages": [("user", f"{CANARY}{at}")]}
            await app.ainvoke(said, config, durability=("sync", "async")[at % 2])

        runs = [asyncio.create_task(run(at)) for at in range(count)]
        for _ in runs:
            await waiting.acquire()
        while Threads(log).count(owner="ann") < count:
            await asyncio.sleep(0.01)
        pruned = await Threads(log).aforget_owner("ann")
        assert pruned.threads == count
        talk(log, "t0", "A new conversation of this name.", owner="ann")  # which is nobody's run
        anew.set()
        ended = await asyncio.gather(*runs, return_exceptions=True)
        assert {type(error) for error in ended} == {ThreadDeleted}
        assert [thread.id for thread in Threads(log).list(owner="ann")] == ["t0"]
        assert DeltaStore(log).search(()) == []
        log.compact()
        assert CANARY.encode() not in bytes_of(db)


async def test_a_run_of_a_deleted_thread_puts_nothing_by_another_open_log(url: str) -> None:
    with closing(MessageLog.open(url)) as log, DeltaStore.open(url) as store:
        begun, deleted = asyncio.Event(), asyncio.Event()

        async def node(state: MessagesState, runtime: Runtime) -> Any:
            assert runtime.store is not None
            await runtime.store.aput(("notes",), "early", {})
            begun.set()
            await deleted.wait()
            for late in (
                runtime.store.aput(("notes",), "late", {}),
                asyncio.to_thread(runtime.store.put, ("notes",), "late", {}),
            ):
                with pytest.raises(ThreadDeleted):
                    await late
            return {"messages": [("ai", "answered")]}

        graph = StateGraph(MessagesState).add_node(node).set_entry_point("node")
        app = graph.compile(checkpointer=DeltaSaver(log), store=store)
        for durability in ("sync", "async"):
            said, config = {"messages": [("user", "hi")]}, {"configurable": {"thread_id": "t"}}
            run = asyncio.create_task(app.ainvoke(said, config, durability=durability))
            await begun.wait()
            while not Threads(log).count():
                await asyncio.sleep(0.01)
            Threads(store).delete("t")  # by the other, too
            deleted.set()
            with pytest.raises(ThreadDeleted):
                await run
            assert [item.key for item in store.search(("notes",))] == ["early"]
            begun.clear()
            deleted.clear()


def test_on_postgres_an_owner_is_forgotten_too(database: Any, tmp_path: Path) -> None:
    from savers import new_schema  # noqa: PLC0415 - skips where there is no server

    with closing(MessageLog.open(new_schema(tmp_path))) as log:
        remember(log, ("ann",))
        pruned = Threads(log).forget_owner("ann")
        assert (pruned.threads, pruned.items, pruned.store_items) == (2, CANARIES, 6)
        assert (Threads(log).count(status=None), DeltaStore(log).search(())) == (0, [])
