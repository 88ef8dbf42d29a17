"""DeltaStore keeps every rule of the contract on both databases, in both modes, and equals
InMemoryStore in random programs.
"""

from __future__ import annotations

import os

import pytest
from clock import Clock
from savers import MODES, Mode
from store_programs import check_program
from store_suite import RULES, Rule
from stores import maker
from subject import Stores

from langmem_ext import MessageLog

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
