"""Graphs with `DeltaChannel`s, rebuilt from stored writes: values, history and what the rebuild
reads are InMemorySaver's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from comparison import Names, assert_same
from delta_graphs import (
    Answer,
    DeltaSession,
    Edit,
    Reopen,
    Step,
    Turn,
    steps,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.runnables import RunnableConfig
from samples import Said
from savers import Backend, Mode, ReferenceShelf, Shelf, run_without_loop


async def compare(
    steps: Sequence[Step], observe_from: int, backend: Backend, mode: Mode, folder: Path
) -> None:
    """Carry the steps out on both savers and compare what can be read after each, from step
    `observe_from` on.
    """
    shelf = Shelf(backend, mode, folder)
    try:
        reference, subject = DeltaSession(ReferenceShelf(), mode), DeltaSession(shelf, mode)
        for number, step in enumerate(steps):
            observed = number >= observe_from
            expected, found = (
                await reference.carry_out(step, observed=observed),
                await subject.carry_out(step, observed=observed),
            )
            for (what, form), (_, other) in zip(expected, found, strict=True):
                assert_same(form, other, f"step {number} ({type(step).__name__}), {what}")
    finally:
        await shelf.close()


def run(
    steps: Sequence[Step], observe_from: int, backend: Backend, mode: Mode, folder: Path
) -> None:
    """Run a comparison on an event loop of its own, or without any."""
    work = compare(steps, observe_from, backend, mode, folder)
    if mode == "async":
        asyncio.run(work)
    else:
        run_without_loop(work)


@settings(max_examples=settings().max_examples // 2)
@given(drawn=st.lists(steps, min_size=4, max_size=9))
def test_random_turns_read_back_as_on_the_in_memory_saver(
    drawn: list[Step], backend: Backend, mode: Mode, folder: Path
) -> None:
    run(drawn, 0, backend, mode, folder)


def test_a_long_thread_is_rebuilt_across_snapshots_forks_and_a_reopen(
    backend: Backend, mode: Mode, folder: Path
) -> None:
    turn = Turn((Said(content="turn"),), ({"n": 1},), 2, False, False, False, "async", None)
    steps: list[Step] = []
    for number in range(6):
        steps.append(replace(turn, messages=(Said(content=f"turn {number}", id=f"h{number}"),)))
    steps += [
        Reopen(),
        replace(turn, remove=True, durability="exit"),
        replace(turn, at=7, overwrite=True),
        Reopen(),
        Edit((Said(content="edited"),), 3),
        replace(turn, ask=True, durability="sync"),
        Reopen(),
        Answer("yes"),
    ]
    run(steps, len(steps) - 2, backend, mode, folder)


async def prune_and_go_on(
    steps: Sequence[Step], last: int, backend: Backend, mode: Mode, folder: Path
) -> None:
    """Carry the steps out, prune the subject, and compare what it kept with the same before, and
    its next turns with the reference's.
    """
    shelf = Shelf(backend, mode, folder)
    try:
        reference, subject = DeltaSession(ReferenceShelf(), mode), DeltaSession(shelf, mode)
        for step in steps:
            await reference.carry_out(step, observed=False)
            await subject.carry_out(step, observed=False)
        config: RunnableConfig = {"configurable": {"thread_id": "t"}}
        exact = Names(keep=True)
        before = {
            str(one.config): exact.snapshot(one)
            for one in await subject.calls.collect(subject.graph, "get_state_history", config)
        }
        pruned: Any = await subject.calls.call(shelf.saver, "prune", ["t"], keep_last=last)
        kept = {
            str(one.config): exact.snapshot(one)
            for one in await subject.calls.collect(subject.graph, "get_state_history", config)
        }
        assert len(kept) == len(before) - pruned.checkpoints
        assert list(kept)[:last] == list(before)[:last]
        for place, form in kept.items():
            assert_same(before[place], form, f"{place} after pruning")
        turn = Turn(
            (Said(content="and then", id="then"),),
            ({"n": 2},),
            1,
            False,
            False,
            False,
            "sync",
            None,
        )
        for step in (turn, Reopen(), turn):
            for one in (reference, subject):
                one.names = (
                    Names()
                )  # their histories differ now, and with them the order in which ids were seen
            expected, found = [
                (await one.carry_out(step, observed=True))[:2] for one in (reference, subject)
            ]
            for (what, form), (_, other) in zip(expected, found, strict=True):
                assert_same(form, other, f"after pruning, {what}")
    finally:
        await shelf.close()


@settings(max_examples=settings().max_examples // 2)
@given(drawn=st.lists(steps, min_size=4, max_size=9), last=st.integers(1, 4))
def test_random_turns_read_back_after_pruning_as_before(
    drawn: list[Step], last: int, backend: Backend, mode: Mode, folder: Path
) -> None:
    work = prune_and_go_on(drawn, last, backend, mode, folder)
    if mode == "async":
        asyncio.run(work)
    else:
        run_without_loop(work)
