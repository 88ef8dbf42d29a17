"""DeltaStore keeps every rule of the contract on both databases, in both modes, and equals
InMemoryStore in random programs.

The rules are those of `langgraph.store.base`, as `InMemoryStore` carries them out where the base
says nothing, without what it does by accident. The name of a rule's function says what is promised.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import finding_rules
import item_rules
import pytest
import time_rules
from clock import Clock
from savers import MODES, Mode
from store_programs import check_program
from stores import maker
from subject import Stores

from langmem_ext import MessageLog

SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
PROGRAMS = 10_000 if SOAK else 100 if "LANGMEM_EXT_EXAMPLES" in os.environ else 500
"""On each database, half of them in each mode; fewer in the fast set."""

GROUP = 25

RULES = [*item_rules.RULES, *item_rules.ORDER_RULES, *finding_rules.RULES, *time_rules.RULES]


def stores_on(log: MessageLog, clock: Clock, mode: Mode) -> Stores:
    return Stores(maker(log), mode, advance=lambda minutes: clock.wait(minutes=minutes))


@pytest.mark.contract
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_is_kept(
    rule: Callable[[Stores], None], mode: Mode, log: MessageLog, clock: Clock
) -> None:
    rule(stores_on(log, clock, mode))


@pytest.mark.contract
@pytest.mark.parametrize("first", range(0, PROGRAMS, GROUP))
def test_a_program_ends_as_in_memory(first: int, log: MessageLog, clock: Clock) -> None:
    for number in range(first, first + GROUP):
        check_program(stores_on(log, clock, MODES[number % 2]), number)
