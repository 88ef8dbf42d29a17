"""Promise: after any sequence of put, fork, copy, prune and delete, every kept checkpoint reads
back equal, and nothing else is left.

The reference is InMemorySaver with the same calls, from which a model of each policy takes what
should go.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from comparison import Names, assert_same
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from langgraph.checkpoint.base import CheckpointTuple
from prune_reference import (
    Place,
    assert_clean,
    assert_sound,
    chained,
    config_of,
    copy_thread,
    drop,
    everything,
    newest,
    rows,
    with_chains,
)
from puts import (
    NAMESPACES,
    OPENING,
    Branch,
    Call,
    Change,
    Delete,
    Live,
    Put,
    PutAgain,
    PutWrites,
    Reopen,
    changes,
    new_ids,
    writes,
)
from samples import Said
from savers import BACKENDS, Backend, ReferenceShelf, Shelf, run_without_loop

from langmem_ext import DeltaSaver, InvalidInput

THREADS = ("t1", "t2")
COPIES = ("c1", "c2")
RUNS = ("run-1", "run-2", "run-3")

threads = st.sampled_from(["t1"] * 4 + ["t2", *COPIES])
any_namespace = st.sampled_from([""] * 4 + [*NAMESPACES])
leaves = st.sampled_from(
    [Change(channel, "absent", Said(), None, 0, True) for channel in ("log", "files")]
)
counters = st.sampled_from([{}, {}, {"log": [1, 1]}, {"log": [2, 3], "files": [1, 1]}])
runs = st.sampled_from([None, *RUNS])
labels = st.builds(
    lambda run, counters: (
        ({"run_id": run} if run else {})
        | ({"counters_since_delta_snapshot": counters} if counters else {})
    ),
    runs,
    counters,
)
puts = st.builds(
    Put,
    threads,
    any_namespace,
    st.sampled_from([0] * 6 + [1, 2, 5, None]),
    st.lists(st.one_of(changes, changes, leaves), min_size=1, max_size=3).map(tuple),
    labels,
    st.booleans(),
    st.booleans(),
)
several_threads = st.lists(threads, min_size=1, max_size=2, unique=True)


class Forgetting(RuleBasedStateMachine):
    """A saver and the reference, side by side."""

    backend: Backend

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.shelf = Shelf(self.backend, "sync", Path(self.folder.name))
        ids = new_ids(200)
        self.reference, self.subject = (
            Branch(ReferenceShelf(), "sync", ids),
            Branch(self.shelf, "sync", ids),
        )

    @property
    def saver(self) -> DeltaSaver:
        saver: Any = self.shelf.saver
        assert isinstance(saver, DeltaSaver)
        return saver

    @property
    def memory(self) -> Any:
        return self.reference.shelf.saver

    def teardown(self) -> None:
        try:
            self._compare(everything_too=True)
        finally:
            self.shelf.saver.close()  # type: ignore[attr-defined]
            self.folder.cleanup()

    def _call(self, call: Call) -> None:
        expected = run_without_loop(self.reference.carry_out(call, last=False))
        found = run_without_loop(self.subject.carry_out(call, last=False))
        for (what, form), (_, other) in zip(expected, found, strict=True):
            assert_same(form, other, f"after {type(call).__name__}, {what}")

    # -- what a graph does -------------------------------------------------------------------------

    @initialize(metadata=labels)
    def begin(self, metadata: dict[str, Any]) -> None:
        self._call(replace(OPENING, metadata=metadata))

    @rule(
        several=st.lists(puts, min_size=1, max_size=4),
        early=st.lists(writes, max_size=1),
        later=st.lists(st.tuples(st.integers(0, 3), writes), max_size=3),
    )
    def put(self, several: list[Put], early: list[Any], later: list[Any]) -> None:
        for put in several:
            for written in early:
                self._call(PutWrites(put.thread, put.namespace, -1, 0, written))
            self._call(put)
            for task, written in later:
                self._call(PutWrites(put.thread, put.namespace, 0, task, written))

    @rule(
        thread=threads,
        namespace=any_namespace,
        at=st.integers(0, 4),
        task=st.integers(0, 3),
        written=writes,
    )
    def put_writes(self, thread: str, namespace: str, at: int, task: int, written: Any) -> None:
        self._call(PutWrites(thread, namespace, at, task, written))

    @rule(thread=threads, at=st.integers(0, 3))
    def put_again(self, thread: str, at: int) -> None:
        self._call(PutAgain(thread, "", at))

    @rule()
    def reopen(self) -> None:
        self._call(Reopen())

    # -- what forgets ------------------------------------------------------------------------------

    def _forget(self, gone: Iterable[Place], work: Callable[[], Any], *, clean: bool = True) -> Any:
        """Do the work, which must take these checkpoints and nothing else; what it gives."""
        gone = set(gone)
        before = everything(self.saver)
        chains = {
            place: self._chains(place, found)
            for place, found in before.items()
            if place not in gone
        }
        result = work()
        drop(self.memory, gone)
        for branch in (self.reference, self.subject):
            for (thread, namespace), live in branch.live.items():
                live.put = [put for put in live.put if (thread, namespace, put[0]) not in gone]
                live.values.clear()
        after = everything(self.saver)
        assert set(after) == set(before) - gone
        assert {place: self._chains(place, found) for place, found in after.items()} == chains
        (assert_clean if clean and gone else assert_sound)(self.saver)
        return result

    def _chains(self, place: Place, found: CheckpointTuple) -> Any:
        history = self.saver.get_delta_channel_history(
            config=config_of(place), channels=chained(found)
        )
        return Names(keep=True).unordered({channel: dict(one) for channel, one in history.items()})

    def _prune(
        self,
        threads: list[str],
        keep: Callable[[dict[Place, CheckpointTuple]], set[Place]],
        **policy: Any,
    ) -> None:
        mine = everything(self.memory, threads)
        gone = set(mine) - with_chains(mine, keep(mine))
        told = self.saver.prune(threads, dry_run=True, **policy)
        pruned = self._forget(
            gone,
            lambda: self.saver.prune(threads, **policy),
            clean=len(threads) == 1 and self._only(threads),
        )
        assert pruned == told
        assert (pruned.threads, pruned.checkpoints) == (0, len(gone))

    def _only(self, threads: list[str]) -> bool:
        """Whether nothing can be left over in other threads: they have been pruned, too, or are not
        there.
        """
        return {place[0] for place in everything(self.memory)} <= set(threads)

    @rule(threads=several_threads)
    def keep_latest(self, threads: list[str]) -> None:
        self._prune(threads, lambda mine: newest(mine, 1))

    @rule(threads=several_threads, last=st.integers(1, 4))
    def keep_last(self, threads: list[str], last: int) -> None:
        self._prune(threads, lambda mine: newest(mine, last), keep_last=last)

    @rule(threads=several_threads, last=st.sampled_from([None, 2]), seconds=st.integers(0, 20))
    def older_than(self, threads: list[str], last: int | None, seconds: int) -> None:
        moment = datetime(2024, 5, 6, tzinfo=UTC) + timedelta(seconds=seconds)

        def keep(mine: dict[Place, CheckpointTuple]) -> set[Place]:
            young = {
                place
                for place, found in mine.items()
                if datetime.fromisoformat(found.checkpoint["ts"]) >= moment
            }
            return newest(mine, last or 1) | young

        self._prune(threads, keep, keep_last=last, older_than=moment)

    @rule(threads=several_threads)
    def prune_delete(self, threads: list[str]) -> None:
        gone = set(everything(self.memory, threads))
        told = self.saver.prune(threads, strategy="delete", dry_run=True)
        pruned = self._forget(
            gone, lambda: self.saver.prune(threads, strategy="delete"), clean=False
        )
        assert pruned == told
        assert pruned.checkpoints == len(gone)
        for thread in threads:
            self._call(Delete(thread))

    @rule(wanted=st.lists(st.sampled_from([*RUNS, "run-4"]), min_size=1, max_size=2, unique=True))
    def delete_for_runs(self, wanted: list[str]) -> None:
        all_of_them = everything(self.memory)
        kept = with_chains(
            all_of_them,
            (at for at, found in all_of_them.items() if found.metadata.get("run_id") not in wanted),
        )
        self._forget(
            set(all_of_them) - kept, lambda: self.saver.delete_for_runs(wanted), clean=False
        )

    @rule(thread=threads)
    def delete_thread(self, thread: str) -> None:
        self._call(Delete(thread))

    @rule(source=threads, onto=st.sampled_from(COPIES))
    def copy(self, source: str, onto: str) -> None:
        known = {name for (name,) in rows(self.saver, "SELECT id FROM thread")}
        if source == onto or {place[0] for place in everything(self.memory)} >= {source, onto}:
            with pytest.raises(InvalidInput):
                self.saver.copy_thread(source, onto)
            return
        if source not in known:
            self.saver.copy_thread(source, onto)
            return
        if onto in known:
            self._call(
                Delete(onto)
            )  # it is empty, or has nothing but writes of a checkpoint that is not there
        self.saver.copy_thread(source, onto)
        copy_thread(self.memory, source, onto)
        for branch in (self.reference, self.subject):
            for (thread, namespace), live in list(branch.live.items()):
                if thread == source:
                    put = [
                        (id, (_elsewhere(config, onto), *rest)) for id, (config, *rest) in live.put
                    ]
                    branch.live[onto, namespace] = Live(put=put)

    @rule()
    def compact(self) -> None:
        assert self.saver.compact() >= 0

    # -- what always holds -------------------------------------------------------------------------

    @invariant()
    def every_kept_checkpoint_reads_back_equal(self) -> None:
        self._compare()
        assert_sound(self.saver)

    @precondition(lambda self: self.subject.used % 3 == 0)
    @invariant()
    def a_fresh_saver_reads_the_same(self) -> None:
        with DeltaSaver.open(self.shelf.url) as fresh:
            self._same(everything(self.memory), everything(fresh))

    def _compare(self, *, everything_too: bool = False) -> None:
        self._same(everything(self.memory), everything(self.saver))
        if everything_too:
            expected = run_without_loop(self.reference.observe(set(self.reference.live)))
            found = run_without_loop(self.subject.observe(set(self.subject.live)))
            for (what, form), (_, other) in zip(expected, found, strict=True):
                assert_same(form, other, what)

    def _same(
        self, expected: dict[Place, CheckpointTuple], found: dict[Place, CheckpointTuple]
    ) -> None:
        assert set(found) == set(expected)
        names = Names(keep=True)
        for place, one in expected.items():
            assert_same(
                names.checkpoint(one), names.checkpoint(found[place]), f"checkpoint {place}"
            )


def _elsewhere(config: Any, thread: str) -> Any:
    return {**config, "configurable": {**config["configurable"], "thread_id": thread}}


def cases(backend: Backend) -> Any:
    """The tests of one kind of database."""
    machine: Any = type(f"ForgettingOn{backend.name.title()}", (Forgetting,), {"backend": backend})
    found = machine.TestCase
    found.settings = settings(stateful_step_count=20)
    found.pytestmark = [pytest.mark.postgres] if backend.name == "postgres" else []
    return found


TestOnAFile, TestOnPostgres = (cases(backend) for backend in BACKENDS if backend.survives_close)
