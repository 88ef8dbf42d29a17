"""DeltaStore keeps every rule of the contract on both databases, in both modes, and equals
InMemoryStore in random programs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest
from clock import Clock
from langgraph.store.base import Op, Result
from langgraph.store.memory import InMemoryStore
from savers import MODES, Mode
from store_programs import check_program
from store_suite import RULES, Rule, run_store_suite
from stores import maker
from subject import Stores

from langmem_ext import DeltaStore, MessageLog

SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
PROGRAMS = 10_000 if SOAK else 100 if "LANGMEM_EXT_EXAMPLES" in os.environ else 500
"""On each database, half of them in each mode; fewer in the fast set."""

GROUP = 25


def stores_on(log: MessageLog, clock: Clock, mode: Mode) -> Stores:
    return Stores(maker(log), mode, advance=lambda minutes: clock.wait(minutes=minutes))


@pytest.mark.contract
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_is_kept(rule: Rule, mode: Mode, log: MessageLog, clock: Clock) -> None:
    rule.check(stores_on(log, clock, mode))


@pytest.mark.contract
@pytest.mark.parametrize("first", range(0, PROGRAMS, GROUP))
def test_a_program_ends_as_in_memory(first: int, log: MessageLog, clock: Clock) -> None:
    for number in range(first, first + GROUP):
        check_program(stores_on(log, clock, MODES[number % 2]), number)


def test_what_in_memory_store_does_by_accident_is_all_that_it_does_otherwise() -> None:
    report = run_store_suite(
        lambda index=None: InMemoryStore(index=index),
        capabilities={"index", "order", "async"},
        programs=0,
    )
    assert sorted({result.name for result in report.failed}) == [
        "a batch that raises changes nothing",
        "a namespace is there while it has items",
        "a put replaces what is found",
        "equal texts in one batch are both found",
        "sizes of different kinds are not compared",
        "vectors of a wrong length are refused",
        "what cannot be stored is refused",
        "what was returned can be changed",
    ]


def test_a_defect_is_found_and_shown_as_short_as_it_can_be(
    log: MessageLog, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = DeltaStore.batch

    def one_by_one(self: DeltaStore, ops: Iterable[Op]) -> list[Result]:
        return [batch(self, [op])[0] for op in ops]

    monkeypatch.setattr(DeltaStore, "batch", one_by_one)
    report = run_store_suite(
        maker(log), programs=40, advance=lambda minutes: clock.wait(minutes=minutes)
    )
    failed = {result.name: result.problem or "" for result in report.failed}
    assert "a batch reads what was there before it" in failed
    programs = [problem for name, problem in failed.items() if name.startswith("program")]
    assert min(problem.count("\n") for problem in programs) <= 2
