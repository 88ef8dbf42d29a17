"""Promise: DeltaSaver gives what LangGraph's own savers give, whatever an application does.

Every call goes to all of them (`beside.Beside`), and what they give is compared: ids, versions,
moments, the types of values; and the order of lists.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Collection, Coroutine
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zlib import crc32

import acts
import pytest
from beside import Beside
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.sqlite import SqliteSaver
from mutations import spoil
from player import Player, place
from prune_reference import assert_clean, everything, newest, with_chains
from samples import Said, values
from savers import Backend, Calls, Mode, Shelf, run_without_loop

from langmem_ext import DeltaSaver, InvalidInput, examine

pytestmark = pytest.mark.contract

COPIES = ("c", "d")
FEW = 16
"""How many programs are tried where a soak tries hundreds; in memory is the same code as in a file:
a third of them."""

THREADS = ("a", "b", "g", "h", *COPIES)
FIRST = (Said(extra=2), Said("ai", "call", "m2", 1))
OPENING = (
    acts.Run(
        "g", (Said(extra=2), Said("ai", "call", "m2", 1)), (("notes", [1]), ("snapped", [True]))
    ),
    acts.Run("g", asks=("last",), sends=2, child=True),
)

threads = st.sampled_from(THREADS)
filters = st.sampled_from(
    [
        {"source": "loop"},
        {"source": "input", "step": -1},
        {"source": "loop", "step": 1},
        {"step": 2},
        {"flag": True},
        {"flag": True, "n": 2},
        {"run_id": "run-1"},
        {"again": True, "source": "loop"},
    ]
)
several = st.lists(threads, min_size=1, max_size=2, unique=True)


class SideBySide(RuleBasedStateMachine):
    """DeltaSaver beside LangGraph's savers, and an application that uses them as one."""

    backend: Backend
    mode: Mode
    folder: Path
    shelf_kind: type[Shelf] = Shelf

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner() if self.mode == "async" else None
        self.calls = Calls(self.mode)
        self.shelf = self.shelf_kind(self.backend, self.mode, self.folder)
        self.sqlite = sqlite3.connect(":memory:", check_same_thread=False)
        other = SqliteSaver(self.sqlite) if self.mode == "sync" else None
        self.saver = Beside(self.shelf.saver, other)
        self.player = Player(self.saver, self.mode)

    def teardown(self) -> None:
        try:
            self.reopen()
            self.do(self.saver.read_all(self.calls))
            found = examine(self.shelf.url if self.backend.survives_close else self.delta)
            assert [one for one in found.findings if one.severity != "note"] == []
        finally:
            self.do(self.shelf.close())
            self.sqlite.close()
            if self.loop is not None:
                self.loop.close()

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do it on the machine's event loop or, in mode "sync", without one."""
        done = run_without_loop(work) if self.loop is None else self.loop.run(work)
        self.saver.check()
        return done

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self.do(self.calls.call(self.saver, name, *args, **kwargs))

    def collect(self, name: str, *args: Any, **kwargs: Any) -> list[Any]:
        found: list[Any] = self.do(self.calls.collect(self.saver, name, *args, **kwargs))
        return found

    @property
    def delta(self) -> DeltaSaver:
        saver: Any = self.shelf.saver
        return saver

    def there(self, threads: Collection[str] | None = None) -> dict[Any, CheckpointTuple]:
        return everything(self.delta, threads)

    # -- what applications do ----------------------------------------------------------------------

    @initialize(asks=st.booleans())
    def begin(self, asks: bool) -> None:
        for act in OPENING[: 2 if asks else 1]:
            self.do(self.player.play(act))

    @rule(
        made=st.lists(acts.puts, min_size=1, max_size=3),
        early=st.lists(acts.put_writes, max_size=1),
        later=st.lists(acts.put_writes, max_size=2),
    )
    def put(
        self, made: list[acts.Put], early: list[acts.PutWrites], later: list[acts.PutWrites]
    ) -> None:
        at: dict[str, Any] = {"thread": made[0].thread, "namespace": made[0].namespace}
        for one in early:
            self.do(self.player.play(replace(one, **at, at=-1)))
        for act in made:
            self.do(self.player.play(act))
        for one in later:
            self.do(self.player.play(replace(one, **at, at=0)))

    def somewhere(self, act: Any) -> Any:
        """The same act where there is something."""
        places = sorted(at for at, branch in self.player.branches.items() if branch.put)
        if not places or (act.thread, act.namespace) in places:
            return act
        thread, namespace = places[act.at % len(places)]
        return replace(act, thread=thread, namespace=namespace)

    @rule(act=acts.puts_again)
    def put_again(self, act: acts.PutAgain) -> None:
        self.do(self.player.play(self.somewhere(act)))

    @rule(act=acts.put_writes, again=st.lists(values, min_size=1, max_size=2))
    def put_writes(self, act: acts.PutWrites, again: list[Any]) -> None:
        """Put a task's writes; then the task writes to the same channels again, and others."""
        act = self.somewhere(act)
        self.do(self.player.play(act))
        for value in again:
            second = tuple((channel, value) for channel, _ in act.writes)
            self.do(self.player.play(replace(act, writes=(*second, ("log", value)))))

    @rule(act=acts.runs)
    def run(self, act: acts.Run) -> None:
        self.do(self.player.play(act))

    @rule(act=st.one_of(acts.go_ons, acts.replays))
    def go_on(self, act: acts.GoOn) -> None:
        self.do(self.player.play(act))

    @rule(act=acts.updates)
    def update_state(self, act: acts.Update) -> None:
        self.do(self.player.play(act))

    # -- what they read ----------------------------------------------------------------------------

    @rule(
        at=st.integers(0, 30),
        scope=st.sampled_from(["all", "thread", "namespace"]),
        filter=filters,
        before=st.integers(0, 9),
    )
    def list_some(self, at: int, scope: str, filter: dict[str, Any], before: int) -> None:
        if not (places := sorted(self.there())):
            return
        thread, namespace, _ = places[at % len(places)]
        mine = [one for one in places if scope == "all" or one[0] == thread]
        inside = {"checkpoint_ns": namespace} if scope == "namespace" else {}
        config: Any = {"configurable": {"thread_id": thread, **inside}} if scope != "all" else None
        bound = place(*mine[-1 - before % len(mine)])
        for limit in (None, 0, 1, 3):
            self.collect("list", config, limit=limit, before=bound)
            self.collect("list", config, limit=limit, filter=filter)
        self.collect("list", config, limit=2, filter=filter, before=bound)

    @rule(at=st.integers(0, 30))
    def read_one(self, at: int) -> None:
        if places := sorted(self.there()):
            config = place(*places[at % len(places)])
            self.call("get_tuple", config)
            self.collect("list", config)
            self.call("get_delta_channel_history", config=config, channels=acts.DELTAS[at % 2 :])

    @rule(thread=threads, namespace=st.sampled_from(acts.NAMESPACES))
    def read_none(self, thread: str, namespace: str) -> None:
        self.call("get_tuple", place(thread, namespace, "1ffe6000-0000-6000-8000-000000000001"))
        self.call("get_tuple", {"configurable": {"thread_id": thread}})

    @rule()
    def spoil(self) -> None:
        """Change deeply all that is read: neither the database nor later reads may notice."""
        for found in self.collect("list", None):
            spoil(found)

    @rule()
    def reopen(self) -> None:
        self.saver.subject = self.do(self.shelf.reopen())
        for branch in self.player.branches.values():
            branch.values = {}

    # -- what they forget and copy -----------------------------------------------------------------

    @rule(thread=threads)
    def delete_thread(self, thread: str) -> None:
        self.call("delete_thread", thread)
        self.player.forget(thread)
        assert not self.there([thread])

    @rule(source=threads, onto=st.sampled_from(COPIES))
    def copy_thread(self, source: str, onto: str) -> None:
        if self.there([onto]) and self.there([source]):
            with pytest.raises(InvalidInput):
                self.do(self.calls.call(self.delta, "copy_thread", source, onto))
        elif source != onto:
            self.call("delete_thread", onto)  # it may have writes that wait
            self.call("copy_thread", source, onto)

    @rule(
        threads=st.one_of(several, st.none()),
        last=st.integers(1, 3),
        seconds=st.one_of(st.none(), st.none(), st.integers(0, 9)),
    )
    def prune(self, threads: list[str] | None, last: int, seconds: int | None) -> None:
        policy: dict[str, Any] = {} if last == 1 and seconds is None else {"keep_last": last}
        every = threads is None
        threads = threads or sorted({one[0] for one in self.there()})
        mine = self.there(threads)
        kept = newest(mine, last)
        if seconds is not None:
            policy["older_than"] = at = datetime(2024, 5, 6, tzinfo=UTC) + timedelta(
                seconds=seconds
            )
            kept |= {one for one in mine if moment(mine[one]) >= at}
        gone = set(mine) - with_chains(mine, kept)
        told = self.do(self.calls.call(self.delta, "prune", threads, dry_run=True, **policy))
        assert told == self.forget(gone, "prune", threads, **policy)
        assert told.checkpoints == len(gone)
        if every and {one[0] for one in gone} == set(threads):
            assert_clean(self.delta)

    @rule(threads=several)
    def prune_all(self, threads: list[str]) -> None:
        self.forget(set(self.there(threads)), "prune", threads, strategy="delete")
        for thread in threads:
            self.delete_thread(thread)

    @rule(runs=st.permutations(["run-0", "run-1", "run-2", "run-3"]), count=st.integers(1, 2))
    def delete_for_runs(self, runs: list[str], count: int) -> None:
        runs = runs[:count]
        every = self.there()
        others = (at for at, one in every.items() if one.metadata.get("run_id") not in runs)
        self.forget(set(every) - with_chains(every, others), "delete_for_runs", runs)

    def forget(self, gone: set[Any], name: str, *args: Any, **kwargs: Any) -> Any:
        work = self.saver.forget(lambda: self.calls.call(self.delta, name, *args, **kwargs), gone)
        told = self.do(work)
        for thread in {one[0] for one in gone}:
            self.player.forget(thread, {one[2] for one in gone if one[0] == thread})
        return told

    @rule()
    def compact(self) -> None:
        assert self.do(self.calls.call(self.delta, "compact")) >= 0

    # -- what always holds -------------------------------------------------------------------------

    @invariant()
    def the_heads_are_the_same(self) -> None:
        for thread in THREADS:
            self.call("get_tuple", {"configurable": {"thread_id": thread}})


def moment(found: CheckpointTuple) -> datetime:
    return datetime.fromisoformat(found.checkpoint["ts"])


def drive(backend: Backend, mode: Mode, folder: Path, few: int, **changes: Any) -> None:
    """Run the machine on one kind of database, in one mode."""
    place = {"backend": backend, "mode": mode, "folder": folder, **changes}
    machine: Any = type("SideBySide", (SideBySide,), place)
    if settings().derandomize:  # each kind of database and mode draws its own
        machine._hypothesis_internal_use_seed = crc32(f"{backend.name} {mode}".encode())
    few = few if settings().derandomize else settings().max_examples
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=few,
            stateful_step_count=15,
            phases=[Phase.explicit, Phase.generate, Phase.shrink],
        ),
    )


def test_whatever_is_done_reads_back_as_on_langgraphs_saver(
    backend: Backend, mode: Mode, folder: Path
) -> None:
    drive(backend, mode, folder, FEW if backend.survives_close else FEW // 3)
